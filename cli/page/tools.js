// Levers, plan, comparison, files.

import { byId, bytes, categories, colour, count, download, el, isDark, percent, seconds } from "./util.js";
import { address, configText, replace, set, state, writeAddress } from "./state.js";
import { isKey } from "./form.js";
import { latest, run, stop } from "./net.js";

const signed = (part, places = 2) => `${part >= 0 ? "+" : "−"}${Math.abs(100 * part).toFixed(places)} %`;

function adopt(config, who) {
  replace(config, who);
  writeAddress(true);
  byId("tab-memory").click();
}

const failed = (answer) => (answer.err || (answer.status.startsWith("signal") ? `it ended by ${answer.status}` : "")).replace(/^(standard input|-):[\d:]* ?/gm, "");

// ---- levers

const levers = latest();
let leversFor = "";

// "loss.chunks = 8, remat.offload = [q, k]" as keys and values; null: not of keys alone.
function parseLever(name) {
  const changes = {};
  for (const part of name.split(/, (?=[a-z_.]+ = )/)) {
    const m = /^([a-z_.]+) = (.*)$/.exec(part);
    if (!m || !isKey(m[1])) return null;
    const list = /^\[(.*)\]$/.exec(m[2]);
    changes[m[1]] = list ? list[1].split(",").map((v) => v.trim()).filter(Boolean)
      : /^-?\d+(\.\d+)?$/.test(m[2]) ? Number(m[2]) : m[2] === "true" ? true : m[2] === "false" ? false : m[2];
  }
  if (changes["remat.offload"] || changes["remat.save"]) changes["remat.policy"] ??= "names";
  return changes;
}

function leverRow(a, most, step) {
  const changes = parseLever(a.name);
  return el("tr", {}, el("td", { class: "name" }, a.name),
    el("td", { class: "n" }, `${a.freed_bytes >= 0 ? "−" : "+"}${bytes(Math.abs(a.freed_bytes))}`),
    el("td", { class: "bars" }, el("span", { class: "bar", style: { width: `${Math.max(0, (90 * a.freed_bytes) / most)}px` } })),
    el("td", { class: "n cost" }, signed(a.cost_seconds / step)), el("td", { class: "why" }, a.why),
    el("td", { class: "act" }, changes ? el("button", { type: "button", "aria-label": `try ${a.name}`, onclick: () => { set(changes, "lever"); writeAddress(true); } }, "try") : null));
}

function leverTable(list, most, step) {
  return el("div", { class: "scroll" }, el("table", { class: "told" }, el("thead", {}, el("tr", {}, el("th", {}, "lever"), el("th", { class: "n" }, "peak"), el("th", {}, ""), el("th", { class: "n" }, "step"), el("th", {}, "why"), el("th", {}, ""))),
    el("tbody", {}, list.map((a) => leverRow(a, most, step)))));
}

function showAdvice(j) {
  const works = j.levers.filter((a) => a.applies), idle = j.levers.filter((a) => !a.applies);
  const most = Math.max(1, ...works.map((a) => a.freed_bytes), ...j.pairs.map((a) => a.freed_bytes));
  const lacking = j.peak_bytes - j.budget_bytes;
  byId("levers").replaceChildren(
    el("p", {}, lacking > 0 ? `${bytes(lacking)} too much; ${j.suffices ? `the cheapest that suffices: ${j.suffices}` : "no lever and no pair suffices: the plan searches all"}` : `${bytes(-lacking)} free. What each lever would free and cost:`),
    leverTable(works, most, j.step_seconds),
    j.pairs.length ? el("h2", {}, "Pairs that free more than either") : null,
    j.pairs.length ? leverTable(j.pairs, most, j.step_seconds) : null,
    idle.length ? el("details", {}, el("summary", {}, `No effect here (${idle.length})`), el("ul", {}, idle.map((a) => el("li", {}, `${a.name}, because ${a.why}`)))) : null);
}

export async function showLevers() {
  if (leversFor === configText()) return;
  leversFor = configText();
  byId("levers-note").textContent = "Pulling each lever…";
  const answer = await levers.run("advise", { body: configText() }).catch((error) => ({ text: "", err: error.message, status: "" }));
  if (!answer) return;
  if (!answer.status) leversFor = ""; // the server did not answer: asked again
  byId("levers-note").textContent = failed(answer);
  if (answer.text) showAdvice(JSON.parse(answer.text));
}

// ---- plan

const planner = latest();
let job = null;
let planText = "";

function planCard(title, text, config) {
  return el("div", { class: "card" }, el("b", {}, title), el("div", {}, text),
    el("button", { type: "button", onclick: () => adopt(config, "plan") }, "Take it into the form"));
}

function showPlan(j, drawPicture) {
  const p = j.prediction;
  const said = !p && j.status === "limit" ? "The search was cut off before it found a plan: give it more seconds." : { optimal: "Proven: nothing in the space is better.", best: "The best of the policies that were searched.", infeasible: "Nothing in the space fits.", limit: "The search was cut off; this is the best so far." }[j.status] ?? j.status;
  const parts = [el("p", {}, said, j.gap > 0 ? ` No configuration is better by more than ${percent(j.gap)}.` : "",
    ` ${count(j.considered)} configurations in ${seconds(j.seconds)}.`)];
  if (p) {
    parts.push(planCard(j.plan_name ?? "the plan", `${seconds(p.step_seconds)} a step, ${count(p.tokens_per_second)} tokens/s; ${p.verdict}: peak ${bytes(p.peak_bytes)} of ${bytes(p.budget_bytes)}`, j.plan));
    for (const a of j.alternatives ?? [])
      parts.push(planCard(a.name, `${seconds(a.step_seconds)} a step (${signed(a.worse_by)}); peak ${bytes(a.peak_bytes)}`, a.plan));
    if (j.roomier)
      parts.push(planCard(`More room: ${j.roomier.name}`, `${seconds(j.roomier.step_seconds)} a step (${signed(j.roomier.worse_by)}); peak ${bytes(j.roomier.peak_bytes)}`, j.roomier.plan));
    if (j.fastest)
      parts.push(planCard(`Fastest, with less room: ${j.fastest.name}`, `${seconds(j.fastest.step_seconds)} a step (${signed(j.fastest.worse_by)}); peak ${bytes(j.fastest.peak_bytes)}`, j.fastest.plan));
    for (const a of j.refused ?? [])
      parts.push(planCard(`Refused: ${a.name}`, `${seconds(a.step_seconds)} a step (${signed(-a.better_by)}); ${a.verdict === "tight" ? "may not fit" : a.verdict}: peak ${bytes(a.peak_bytes)}, up to ${bytes(a.high_bytes)}, ${bytes(a.too_much_bytes)} too much`, a.plan));
  } else if (j.smallest_peak_bytes) parts.push(el("p", {}, `The smallest peak: ${bytes(j.smallest_peak_bytes)} of ${bytes(j.budget_bytes)}.`));
  if (j.points?.length) parts.push(el("button", { type: "button", onclick: () => drawPicture(planText, "pareto") }, "Time against memory, as a picture"));
  byId("plan").replaceChildren(...parts);
}

async function startPlan(drawPicture) {
  const begun = performance.now();
  const note = byId("plan-note");
  let said = "";
  byId("plan-stop").disabled = false;
  byId("plan-go").disabled = true;
  byId("plan").replaceChildren();
  const told = () => { note.textContent = `searching for ${Math.round((performance.now() - begun) / 1000)} s${said ? `: ${said}` : ""}`; };
  told();
  try {
    const answer = await planner.run("plan", { args: { seconds: byId("plan-seconds").value || "60", objective: byId("plan-objective").value }, body: configText(),
      started: (number) => { job = number; }, progress: (text) => { said = text || said; told(); } });
    if (!answer) return;
    note.textContent = answer.text ? "" : failed(answer) || "stopped before anything was found";
    if (answer.text) { planText = answer.text; showPlan(JSON.parse(answer.text), drawPicture); }
  } catch (error) {
    note.textContent = error.message;
  } finally {
    job = null;
    byId("plan-stop").disabled = true;
    byId("plan-go").disabled = false;
  }
}

// ---- two side by side

const comparer = latest();
let comparedFor = "";

function sideTable(j) {
  const [a, b] = j.configurations;
  const row = (name, x, y, how, swatch) => el("tr", {}, el("td", {}, swatch ? el("span", { class: "swatch", style: { background: colour(swatch) } }) : null, ` ${name}`),
    el("td", { class: "n" }, how(x)), el("td", { class: "n" }, how(y)), el("td", { class: "n" }, typeof x === "number" && x ? signed(y / x - 1, 1) : ""));
  const text = (v) => v;
  return el("table", {}, el("thead", {}, el("tr", {}, ["", "kept aside", "now", "change"].map((h, i) => el("th", { class: i ? "n" : null }, h)))),
    el("tbody", {}, row("verdict", a.verdict, b.verdict, text), row("device", a.device, b.device, text), row("peak", a.peak_bytes, b.peak_bytes, bytes),
      categories.filter((c) => a.categories[c] || b.categories[c]).map((c) => row(c, a.categories[c], b.categories[c], bytes, c)),
      row("step", a.step_seconds, b.step_seconds, seconds), row("tokens/s", a.tokens_per_second, b.tokens_per_second, count), row("MFU", a.mfu, b.mfu, percent)));
}

export async function showCompare() {
  byId("compare-now").disabled = !state.pinned;
  if (!state.pinned) { comparer.cancel(); byId("compare").replaceChildren(el("p", { class: "faint" }, "Keep a configuration aside, change the form, and see both side by side.")); comparedFor = ""; return; }
  const body = `{"a": ${JSON.stringify(state.pinned)}, "b": ${configText()}}`;
  if (body === comparedFor) return;
  comparedFor = body;
  const answer = await comparer.run("compare", { body }).catch((error) => ({ text: "", err: error.message, status: "" }));
  if (!answer) return;
  if (!answer.text) { byId("compare").replaceChildren(el("p", {}, failed(answer))); return; }
  const j = JSON.parse(answer.text);
  const list = (title, rows, how) => [el("h2", {}, title), el("div", { class: "scroll" }, el("table", {}, el("tbody", {}, rows.map((r) => el("tr", {}, el("td", { class: "name" }, r.key ?? r.name), (r.values ?? r.bytes).map((v) => el("td", { class: "n" }, how(v))))))))];
  byId("compare").replaceChildren(el("div", { class: "scroll" }, sideTable(j)),
    ...(j.keys.length ? list("Keys that differ", j.keys, (v) => v || "-") : [el("p", { class: "faint" }, "No key differs.")]),
    ...(j.tensors.length ? list("Tensors at the peak that differ most", j.tensors.slice(0, 25), (v) => (v ? bytes(v) : "-")) : []));
}

// ---- files

const note = (text) => { byId("file-note").textContent = text; };

export async function readFile(file) {
  byId("tab-files").click();
  note(`reading ${file.name}…`);
  try {
    const answer = await run("read", { body: file, progress: () => {} });
    const end = answer.text.indexOf("\n");
    const [kind, what] = answer.text.slice(0, end).split(" ");
    const rest = answer.text.slice(end + 1);
    if (kind === "config" && rest.trim()) takeConfig(JSON.parse(rest), file.name, answer.err);
    else if (kind === "text" && rest.trim()) {
      note(`${file.name}, as hbmsim ${what} tells it:`);
      byId("file-text").replaceChildren(el("pre", { tabindex: 0 }, rest.replaceAll("/dev/stdin", file.name).replaceAll("standard input", file.name)));
    } else note(`${file.name}: ${failed(answer) || "nothing that is known"}`);
  } catch (error) {
    note(`${file.name}: ${error.message}`);
  }
}

function takeConfig(j, name, warnings) {
  const list = (title, items) => (items?.length ? [el("h2", {}, title), el("ul", {}, items.map((t) => el("li", {}, t)))] : []);
  note(`${name}: ${j.imported ? `read as ${j.imported}; it is in the form now` : "it is in the form now"}`);
  byId("file-text").replaceChildren(...list("Assumed", j.assumed), ...list("Not expressed", j.missing), ...list("Understood", j.understood), warnings ? el("p", { class: "faint" }, warnings) : "");
  replace(j.configuration, "file");
  writeAddress(true);
}

const emits = { yaml: ["model.yaml", "text/yaml"], maxtext: ["maxtext.yml", "text/yaml"], levanter: ["levanter.yaml", "text/yaml"], torchtitan: ["torchtitan.toml", "text/plain"], megatron: ["megatron.sh", "text/plain"] };

async function emit(what) {
  note("");
  const answer = await run("emit", { args: { what }, body: configText() });
  if (!answer.text) { note(failed(answer)); return; }
  byId("file-text").replaceChildren(el("div", { class: "controls" },
    el("button", { type: "button", onclick: () => download(emits[what][0], answer.text, emits[what][1]) }, `Save ${emits[what][0]}`),
    el("button", { type: "button", onclick: () => navigator.clipboard.writeText(answer.text) }, "Copy")), el("pre", { tabindex: 0 }, answer.text));
}

async function report() {
  note("making the report (a few seconds)…");
  const answer = await run("report", { args: { seconds: "10" }, body: configText(), progress: () => {} });
  note(answer.text ? "the report is saved" : failed(answer));
  if (answer.text) download("report.html", answer.bytes, "text/html");
}

/** A picture of a result's JSON as the plot command draws it, shown with what saves it. */
export async function drawPicture(json, kind) {
  byId("tab-files").click();
  note(`drawing ${kind}…`);
  const theme = isDark() ? "dark" : "light";
  const args = { kind, theme, size: "1000x580" };
  const answer = await run("picture", { args: { ...args, format: "svg" }, body: json });
  if (!answer.text) { note(failed(answer)); return; }
  note(`${kind}:`);
  const url = URL.createObjectURL(new Blob([answer.text], { type: "image/svg+xml" }));
  const png = async () => download(`${kind}.png`, (await run("picture", { args: { ...args, format: "png" }, body: json })).bytes, "image/png");
  byId("file-text").replaceChildren(el("div", { class: "controls" },
    el("button", { type: "button", onclick: () => download(`${kind}.svg`, answer.text, "image/svg+xml") }, "Save SVG"),
    el("button", { type: "button", onclick: png }, "Save PNG")), el("div", { class: "picture" }, el("img", { src: url, alt: `${kind} of this configuration` })));
}

// ---- the panels

export function startTools(view) {
  byId("panel-levers").append(el("h2", {}, "Levers"), el("p", { id: "levers-note", class: "faint", role: "status" }), el("div", { id: "levers" }));
  byId("panel-plan").append(el("h2", {}, "The fastest that fits"),
    el("p", { class: "faint" }, "Searches mesh, remat and offload by tensor, stack, loss chunks, accumulation and the optimizer's place (or what plan.search names), from the configuration in the form."),
    el("div", { class: "controls" }, el("label", {}, "best is", el("select", { id: "plan-objective" }, ["tokens_per_second", "step_time", "memory", "devices"].map((o) => el("option", {}, o)))),
      el("label", {}, "seconds at most", el("input", { id: "plan-seconds", value: "60", inputmode: "numeric", size: 5 })),
      el("button", { type: "button", id: "plan-go", class: "main", onclick: () => startPlan(drawPicture) }, "Plan"),
      el("button", { type: "button", id: "plan-stop", disabled: true, onclick: () => job && stop(job) }, "Stop: the best so far")),
    el("p", { id: "plan-note", class: "faint", role: "status" }), el("div", { id: "plan" }));
  byId("panel-compare").append(el("h2", {}, "Two side by side"),
    el("div", { class: "controls" },
      el("button", { type: "button", id: "compare-pin", class: "main", onclick: () => { state.pinned = structuredClone(state.config); writeAddress(true); showCompare(); } }, "Keep this one aside"),
      el("button", { type: "button", id: "compare-now", onclick: () => { const other = state.pinned; state.pinned = structuredClone(state.config); replace(other, "swap"); writeAddress(true); } }, "Swap"),
      el("button", { type: "button", id: "compare-clear", onclick: () => { state.pinned = null; writeAddress(true); showCompare(); } }, "Forget it")),
    el("div", { id: "compare" }));
  const input = el("input", { type: "file", id: "file", onchange: () => { if (input.files[0]) readFile(input.files[0]); input.value = ""; } });
  byId("panel-files").append(el("h2", {}, "In"),
    el("p", { class: "faint" }, "Drop anywhere on this page, or choose: Hugging Face config.json, MaxText yml, torchtitan toml, Megatron arguments, Levanter yaml, a model.yaml; a log with an out-of-memory message, an HLO dump, a memory snapshot of PyTorch. Nothing leaves this machine."),
    el("label", { class: "plain wide" }, "File", input), el("h2", {}, "Out"),
    el("div", { class: "controls" }, Object.keys(emits).map((what) => el("button", { type: "button", id: `emit-${what}`, onclick: () => emit(what).catch((e) => note(e.message)) }, what === "yaml" ? "model.yaml" : `${what} settings`)),
      ["timeline", "breakdown", "addressmap"].map((kind) => el("button", { type: "button", id: `picture-${kind}`, onclick: () => view() && drawPicture(JSON.stringify(view().result), kind).catch((e) => note(e.message)) }, `picture: ${kind}`)),
      el("button", { type: "button", id: "report", onclick: () => report().catch((e) => note(e.message)) }, "report.html")),
    el("p", { id: "file-note", role: "status" }), el("div", { id: "file-text" }));
}

export const linkText = () => location.origin + location.pathname + address();
