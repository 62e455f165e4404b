// The form, made of the table of keys that the program reads by.

import { byId, el } from "./util.js";
import { get, set, state, writeAddress } from "./state.js";

// What people turn first; all other keys stand below, section by section.
const first = ["model.preset", "hardware.device", "mesh.data", "mesh.fsdp", "mesh.tensor",
  "mesh.sequence", "mesh.expert", "mesh.pipeline", "batch.global", "batch.seq", "batch.accumulate",
  "remat.policy", "stack.form", "loss.chunks", "optimizer.name", "optimizer.offload",
  "precision.params", "compiler"];
const titles = { "model.preset": "model", "hardware.device": "device", "batch.global": "batch, sequences",
  "batch.seq": "sequence, tokens", "batch.accumulate": "accumulate", "remat.policy": "remat",
  "stack.form": "stack of layers", "loss.chunks": "loss, chunks", "optimizer.name": "optimizer",
  "optimizer.offload": "its states", "precision.params": "parameters as" };
const hidden = new Set(["hbmsim", "include", "model.import"]);

const rows = new Map(); // path -> {row, input, key, show}
let full = {};          // the configuration with all its keys, as the program read it

const idOf = (path) => `key-${path.replace(/[^a-z0-9]+/gi, "-")}`;
const asText = (value) =>
  value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);

function parse(key, text) {
  if (text === "") return undefined;
  if (key.kind === "int" || key.kind === "real") return Number.isFinite(Number(text)) ? Number(text) : text;
  if (key.kind === "bool") return text === "true";
  if (key.kind === "enum" || key.kind === "text") return text;
  try { return JSON.parse(text); } catch { return text; }
}

// ---- controls: each {node, show(own, whole)}

function listControl(path, key, words) {
  const node = el("select", { id: idOf(path) });
  const show = (own, whole) => {
    const value = asText(own);
    const all = value && !words.includes(value) ? [...words, value] : words;
    const def = whole === undefined ? "default" : `default: ${asText(whole)}`;
    node.replaceChildren(el("option", { value: "" }, own === undefined ? def : "default"),
      ...all.map((word) => el("option", { value: word, selected: word === value }, word)));
  };
  return { node, show };
}

function textControl(path, key) {
  const number = key.kind === "int";
  const node = el("input", { id: idOf(path), type: "text", inputmode: number || key.kind === "real" ? "decimal" : "text",
    spellcheck: "false" });
  const show = (own, whole) => {
    if (document.activeElement !== node || node.value === "") node.value = asText(own);
    node.placeholder = asText(whole);
  };
  if (!number || !first.includes(path)) return { node, show };
  const turn = (factor) => () => {
    const now = Number(node.value) || Number(node.placeholder) || 1;
    const next = factor < 1 ? Math.max(key.low, Math.floor(now * factor)) : Math.min(key.high, now * factor);
    node.value = "";
    set({ [path]: next });
    writeAddress(true);
  };
  const button = (text, factor, what) =>
    el("button", { type: "button", title: `${what} ${titles[path] ?? path}`, "aria-label": `${what} ${path}`, onclick: turn(factor) }, text);
  return { node, show, shell: el("div", { class: "with" }, node, button("½", 0.5, "halve"), button("×2", 2, "double")) };
}

function maskControl(path, key) {
  const boxes = key.words.map((word) => el("input", { type: "checkbox", value: word }));
  const node = el("div", { class: "mask", role: "group", id: idOf(path), "aria-label": path },
    key.words.map((word, i) => el("label", {}, boxes[i], word)));
  const show = (own, whole) => {
    const chosen = Array.isArray(own) ? own : Array.isArray(whole) ? whole : [];
    boxes.forEach((box) => { box.checked = chosen.includes(box.value); });
  };
  return { node, show, value: () => boxes.filter((box) => box.checked).map((box) => box.value) };
}

function blockControl(path) {
  const node = el("textarea", { id: idOf(path), rows: 4, spellcheck: "false" });
  const show = (own, whole) => {
    if (document.activeElement !== node) node.value = own === undefined ? "" : JSON.stringify(own, null, 1);
    node.placeholder = JSON.stringify(whole) ?? "";
  };
  return { node, show };
}

function control(path, key, start) {
  if (path === "model.preset") return listControl(path, key, start.presets);
  if (path === "hardware.device") return listControl(path, key, start.devices);
  if (key.kind === "enum") return listControl(path, key, key.words);
  if (key.kind === "bool") return listControl(path, key, ["true", "false"]);
  if (key.kind === "mask" && key.words) return maskControl(path, key);
  if (key.kind === "blocks" || key.kind === "per_block") return blockControl(path);
  return textControl(path, key);
}

// ---- a row

function change(path, key, c, commit) {
  rows.get(path).touched = true;
  const value = c.value ? c.value() : parse(key, c.node.value);
  if (JSON.stringify(value) !== JSON.stringify(get(path))) set({ [path]: value }, commit ? "form" : "typing");
  if (commit) writeAddress(true);
}

function makeRow(path, key, start) {
  const c = control(path, key, start);
  const name = titles[path] ?? (first.includes(path) ? path : path.split(".").pop());
  const reset = el("button", { type: "button", class: "reset", "aria-label": `${path}: back to its default`,
    title: "back to its default", onclick: () => { c.node.value = ""; set({ [path]: undefined }); writeAddress(true); c.node.focus?.(); } }, "×");
  const wide = c.node.classList.contains("mask");
  const label = wide ? el("span", { class: "name" }, name) : el("label", { for: idOf(path), title: path }, name);
  const row = el("div", { class: "row" }, label, wide ? el("span") : c.shell ?? c.node, reset, wide ? c.node : null);
  c.node.addEventListener("input", () => change(path, key, c, false));
  c.node.addEventListener("change", () => change(path, key, c, true));
  row.addEventListener("focusin", () => explainKey(path, key));
  rows.set(path, { row, node: c.node, show: c.show, key });
  return row;
}

function explainKey(path, key) {
  const range = key.words && key.kind !== "mask" ? key.words.join(", ")
    : key.low !== undefined ? `${key.low} to ${key.high > 1e15 ? "any" : key.high}` : "";
  const def = key.default === undefined || key.default === null ? ""
    : `; default: ${key.default.replace(/^=/, "")}`;
  byId("doc").textContent = `${path}: ${key.doc}${range ? ` (${range}${def})` : def}`;
}

// ---- the tensors that a layer makes: kept, recomputed, offloaded

function tensorTable(words) {
  const boxes = new Map();
  const apply = (word, how) => {
    const lists = { save: new Set(now("save")), offload: new Set(now("offload")) };
    for (const list of Object.values(lists)) list.delete(word);
    if (how !== "recompute") lists[how].add(word);
    const order = (list) => words.filter((w) => list.has(w));
    set({ "remat.policy": "names", "remat.save": order(lists.save), "remat.offload": order(lists.offload) });
    writeAddress(true);
  };
  const now = (list) => get(`remat.${list}`) ?? get(`remat.${list}`, full) ?? [];
  const body = words.map((word) => {
    const select = el("select", { id: `tensor-${word}`, onchange: () => apply(word, select.value) },
      el("option", { value: "recompute" }, "recompute"), el("option", { value: "save" }, "keep"),
      el("option", { value: "offload" }, "offload"));
    boxes.set(word, select);
    return el("div", { class: "row" }, el("label", { for: `tensor-${word}` }, word), select, el("span"));
  });
  const show = () => {
    for (const [word, select] of boxes)
      select.value = now("offload").includes(word) ? "offload" : now("save").includes(word) ? "save" : "recompute";
  };
  return { node: el("details", { id: "tensor-policy" }, el("summary", {}, "Remat, tensor by tensor"),
    el("div", {}, el("p", { class: "faint" }, "Of each layer: kept for the backward pass, recomputed, or offloaded to the host. A choice makes the policy 'names'."), body)), show };
}

// ---- all of it

let tensors = null;

export function makeForm(start) {
  const form = byId("form");
  const sections = new Map(start.schema.map((s) => [s.path, s]));
  const keyOf = (path) => {
    const dot = path.lastIndexOf(".");
    return sections.get(dot < 0 ? "" : path.slice(0, dot))?.keys.find((k) => k.name === path.slice(dot + 1));
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.append(el("fieldset", { id: "first" }, el("legend", {}, "Configuration"),
    first.filter(keyOf).map((path) => makeRow(path, keyOf(path), start))),
    el("p", { class: "doc", id: "doc" }, "Bold: set here. × takes it back to its default."));
  tensors = tensorTable(keyOf("remat.save").words);
  form.append(tensors.node);
  for (const section of start.schema) {
    if (/\[\]|NAME/.test(section.path)) continue;
    const own = section.keys.filter((key) => key.kind !== "section")
      .map((key) => [section.path ? `${section.path}.${key.name}` : key.name, key])
      .filter(([path]) => !hidden.has(path) && !first.includes(path));
    if (!own.length) continue;
    form.append(el("details", {}, el("summary", {}, section.path || "other"),
      el("div", {}, el("p", { class: "faint" }, section.doc), own.map(([path, key]) => makeRow(path, key, start)))));
  }
  showForm();
}

/** Shows the state's values; whole: as the program read them, with the defaults. */
export function showForm(whole) {
  if (whole) full = whole;
  for (const [path, entry] of rows) {
    const own = get(path, state.config), now = get(path, full);
    const said = JSON.stringify([own, now]);
    if (entry.said === said && !entry.touched) continue; // most of a hundred rows, at each change
    Object.assign(entry, { said, touched: false });
    entry.row.classList.toggle("set", own !== undefined);
    entry.show(own, now);
  }
  tensors?.show();
  byId("fold-what").textContent = `${[...rows.keys()].filter((path) => get(path) !== undefined).length} keys set`;
}

/** Marks the keys that a message names; the first is brought into sight where focus is elsewhere. */
export function markErrors(text) {
  const named = new Set([...(text ?? "").matchAll(/([a-z_][a-z_0-9]*(?:\.[a-z_0-9]+)*):/g)].map((m) => m[1]));
  for (const [path, { node }] of rows) {
    if (named.has(path)) node.setAttribute("aria-invalid", "true");
    else node.removeAttribute("aria-invalid");
  }
}

/** Paths that an axis of the map may have, those of the form's top first. */
export function axisKeys() {
  const able = [...rows].filter(([, { key }]) => ["int", "enum", "bool"].includes(key.kind) || key.name === "device" || key.name === "preset");
  return able.map(([path]) => path);
}
export const keyInfo = (path) => rows.get(path)?.key;
/** The value that holds: an axis's "rest" is the number that it comes to. */
export const effective = (path) => (get(path) === "rest" ? undefined : get(path)) ?? get(path, full);
export const isKey = (path) => rows.has(path);
