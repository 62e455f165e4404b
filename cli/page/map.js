// The fit map over two keys: cells come as they are run; a click goes there.

import { byId, bytes, el, explain, seconds, tip } from "./util.js";
import { configText, get, onChange, set, state, writeAddress } from "./state.js";
import { axisKeys, effective, keyInfo } from "./form.js";
import { latest } from "./net.js";

const work = latest();
const axes = { x: null, y: null };
let picture = null; // the JSON of sweep, once whole
let drawnFor = "";
let turn = 0;       // which computation is the last one: one that was ended says nothing more

const defaults = { x: "batch.global", y: "batch.seq" };

// Around the value that is: an eighth to eight times, or the words.
function rangeOf(path) {
  const key = keyInfo(path);
  if (key?.kind === "enum") return key.words.join(",");
  if (key?.kind === "bool") return "false,true";
  if (path === "hardware.device" || path === "model.preset") {
    const now = String(effective(path) ?? "");
    const all = [...byId(path === "hardware.device" ? "key-hardware-device" : "key-model-preset").options].map((o) => o.value).filter(Boolean);
    const at = Math.max(0, all.indexOf(now));
    return all.slice(Math.max(0, at - 3), at + 4).join(",");
  }
  const now = Number(effective(path)) || 1;
  const ranks = path === "batch.global" ? ["data", "fsdp", "expert"].reduce((n, a) => n * (effective(`mesh.${a}`) || 1), effective("batch.accumulate") || 1) : 1;
  const fine = [8, 4, 2].find((f) => now % f === 0 && (now / f) % ranks === 0) ?? 1;
  const low = now / fine;
  return `${low}..${Math.min(now * 8, key?.high ?? Infinity)}*2`;
}

function axisText(name) {
  return `${axes[name].key.value}=${axes[name].range.value.trim()}`;
}

function same(path, value) {
  return String(effective(path) ?? "") === value;
}

const mayFit = (cell) => cell.low_bytes <= cell.budget_bytes;

const shade = (cell) => {
  const share = cell.peak_bytes / cell.budget_bytes;
  const part = share <= 1 ? 12 + 70 * share : Math.min(95, 30 + 32 * (share - 1));
  const ink = cell.fits ? "var(--map-yes)" : mayFit(cell) ? "var(--working)" : "var(--map-no)";
  return { back: `color-mix(in srgb, ${ink} ${Math.round(part)}%, var(--back))`, strong: part > 62 };
};

function cellText(cell) {
  if (cell.error) return cell.error;
  return `${cell.fits ? "fits" : mayFit(cell) ? "tight: only the lower part of its interval fits" : "does not fit"}: ` +
    `peak ${bytes(cell.peak_bytes)} (${bytes(cell.low_bytes)} to ${bytes(cell.high_bytes)}) of ${bytes(cell.budget_bytes)}\n` +
    `${seconds(cell.step_ns / 1e9)} a step, ${Math.round(cell.tokens_per_second).toLocaleString("en")} tokens/s`;
}

function go(keys, values) {
  tip(null);
  const parse = (path, text) => (["int", "real"].includes(keyInfo(path)?.kind) ? Number(text) : keyInfo(path)?.kind === "bool" ? text === "true" : text);
  set(Object.fromEntries(keys.map((key, i) => [key, parse(key, values[i])])), "map");
  writeAddress(true);
}

// ---- the grid

function table(x, y) {
  const cells = [];
  const body = y.values.slice().reverse().map((row, r) => el("tr", {}, el("th", { scope: "row" }, row),
    x.values.map((column, c) => {
      const index = (y.values.length - 1 - r) * x.values.length + c;
      const button = el("button", { type: "button", class: "wrong", tabindex: -1, "aria-label": `${x.key} ${column}, ${y.key} ${row}: not yet computed` }, "·");
      button.addEventListener("click", () => go([x.key, y.key], [column, row]));
      cells[index] = { button, column, row };
      return el("td", {}, button);
    })));
  const node = el("table", { class: "map" }, el("caption", {}, `${y.key} ↑, ${x.key} →`),
    el("tbody", {}, body),
    el("tfoot", {}, el("tr", {}, el("td"), x.values.map((v) => el("th", { scope: "col" }, v)))));
  node.addEventListener("keydown", (event) => {
    const at = cells.findIndex((cell) => cell.button === document.activeElement);
    const move = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: x.values.length, ArrowDown: -x.values.length }[event.key];
    if (at < 0 || !move || !cells[at + move]) return;
    event.preventDefault();
    cells[at].button.tabIndex = -1;
    cells[at + move].button.tabIndex = 0;
    cells[at + move].button.focus();
  });
  cells[0].button.tabIndex = 0;
  return { node, cells };
}

function fill(grid, cell, x, y) {
  const { button, column, row } = grid.cells[cell.cell];
  const own = same(x.key, column) && same(y.key, row);
  const text = cellText(cell);
  button.className = `${cell.error ? "wrong" : ""}${own ? " own" : ""}`;
  button.setAttribute("aria-label", `${x.key} ${column}, ${y.key} ${row}${own ? " (the configuration shown)" : ""}: ${text}`);
  if (cell.error) button.textContent = "cannot be";
  else {
    const { back, strong } = shade(cell);
    button.replaceChildren(bytes(cell.peak_bytes), el("br"), seconds(cell.step_ns / 1e9));
    Object.assign(button.style, { background: back, color: strong ? "var(--back)" : "var(--text)" });
  }
  explain(button, `${x.key} ${column}, ${y.key} ${row}${own ? ": here" : ""}\n${text}`);
}

// As the program reads them (solver/sweep_axis.c); it says what is wrong.
function values(text) {
  const m = /^(\d+)\.\.(\d+)([*+])(\d+)$/.exec(text.replace(/\s/g, ""));
  if (!m) return text.split(",").map((v) => v.trim()).filter(Boolean);
  const [, low, high, sign, by] = m;
  const list = [];
  for (let v = Number(low); v <= Number(high) && list.length < 41 && Number(by) > (sign === "*" ? 1 : 0); v = sign === "*" ? v * Number(by) : v + Number(by)) list.push(String(v));
  return list;
}

const keyed = () => JSON.stringify([state.config, axisText("x"), axisText("y")]);

async function compute() {
  const x = { key: axes.x.key.value, values: values(axes.x.range.value) };
  const y = { key: axes.y.key.value, values: values(axes.y.range.value) };
  const note = byId("map-note");
  picture = null;
  byId("map-picture").disabled = true;
  if (!x.values.length || !y.values.length || x.values.length > 40 || y.values.length > 40 || x.key === y.key) {
    note.textContent = "Two different keys, each with 1 to 40 values: 8..64*2, 2048..8192+1024, or a,b,c.";
    return;
  }
  drawnFor = keyed();
  const mine = ++turn;
  const grid = table(x, y);
  byId("map-grid").replaceChildren(grid.node);
  byId("map-stop").disabled = false;
  let done = 0, fit = 0;
  const total = x.values.length * y.values.length;
  try {
    const answer = await work.run("sweep", { args: { x: axisText("x"), y: axisText("y") }, body: configText(), hear: (line) => {
      const cell = JSON.parse(line);
      if (cell.cell === undefined) { picture = line; return; }
      fill(grid, cell, x, y);
      done++;
      fit += cell.fits ? 1 : 0;
      note.textContent = `${done} of ${total}, ${fit} fit`;
    } });
    if (mine !== turn) return;
    if (!answer) { note.textContent = `stopped at ${done} of ${total}, ${fit} fit`; return; }
    note.textContent = answer.err ? answer.err.replace(/^-: error: /, "") : `${total} configurations, ${fit} fit; a click on a cell goes there`;
    const best = picture && JSON.parse(picture).best;
    if (best) grid.cells.find((c) => c.column === String(best.x) && c.row === String(best.y))?.button.classList.add("best");
    byId("map-picture").disabled = !picture;
  } catch (error) {
    note.textContent = error.message;
  } finally {
    if (mine === turn) byId("map-stop").disabled = true;
  }
}

// ---- the panel

function axisControl(name) {
  const keys = axisKeys();
  const key = el("select", { id: `map-${name}` }, keys.map((k) => el("option", { value: k }, k)));
  const range = el("input", { id: `map-${name}-range`, size: 18, spellcheck: "false" });
  axes[name] = { key, range };
  key.addEventListener("change", () => { range.value = rangeOf(key.value); remember(); compute(); });
  range.addEventListener("change", () => { remember(); compute(); });
  return [el("label", {}, name === "x" ? "across" : "up", key), el("label", {}, "values", range)];
}

function remember() {
  state.x = axisText("x");
  state.y = axisText("y");
  writeAddress(true);
}

function takeAxes() {
  for (const name of ["x", "y"]) {
    const [key, ...range] = (state[name] ?? "").split("=");
    axes[name].key.value = key && keyInfo(key) ? key : defaults[name];
    axes[name].range.value = range.length ? range.join("=") : rangeOf(axes[name].key.value);
  }
}

export function startMap(drawPicture) {
  byId("panel-map").append(el("h2", {}, "What fits around it"),
    el("div", { class: "controls" }, axisControl("x"), axisControl("y"),
      el("button", { type: "button", id: "map-go", class: "main", onclick: () => compute() }, "Compute"),
      el("button", { type: "button", id: "map-stop", disabled: true, onclick: () => work.cancel() }, "Stop"),
      el("button", { type: "button", id: "map-picture", disabled: true, onclick: () => drawPicture(picture, "fit") }, "As a picture")),
    el("p", { id: "map-note", class: "faint", role: "status" }), el("div", { id: "map-grid", class: "scroll" }),
    el("p", { class: "faint" }, "Blue: it fits with confidence. Yellow: tight, only the lower part of its interval fits. Orange: it does not fit. Outlined: the configuration shown. ★: the fastest that fits."));
  onChange((who) => { if (who === "back") { takeAxes(); } });
}

export function showMap() {
  if (!axes.x.range.value || !state.x) takeAxes();
  if (drawnFor !== keyed()) compute();
}

/** What was not yet computed is when the map is looked at again. */
export function leaveMap() {
  if (!byId("map-stop").disabled) drawnFor = "";
  work.cancel();
}
