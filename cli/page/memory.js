// The verdict, and what stands in memory: breakdown, timeline, addresses, tensors.

import { byId, bytes, categories, colour, count, el, explain, percent, seconds, svg, tip } from "./util.js";

let view = null;    // what the program answered (cli/serve_view.h)
let mode = "time";
let range = [0, 1]; // the part of the step that is in sight
let cursor = null;  // 0..1 of what is in sight's whole
let sums = null;    // of each sample over its categories
let alive = [];     // by position of the schedule: the buffers that are alive there

const words = { fits: "fits", tight: "tight", "does not fit": "not" };

// ---- the verdict

function meter(r) {
  const width = 1000, height = 26, high = r.interval?.high_bytes ?? r.peak_bytes;
  const most = Math.max(r.budget_bytes, high) * 1.06;
  const x = (value) => (value / most) * width;
  const parts = [];
  let at = 0;
  for (const c of categories) {
    const size = r.peak.categories[c] ?? 0;
    if (size > 0) parts.push(svg("rect", { x: x(at), y: 2, width: x(size), height: 14, style: { fill: colour(c) } }));
    at += Math.max(0, size);
  }
  if (r.interval)
    parts.push(svg("path", { d: `M${x(r.interval.low_bytes)} 18v8M${x(r.interval.low_bytes)} 22H${x(r.interval.high_bytes)}M${x(r.interval.high_bytes)} 18v8`,
      style: { stroke: "var(--text)", strokeWidth: 2, fill: "none" }, "vector-effect": "non-scaling-stroke" }));
  parts.push(svg("path", { d: `M${x(r.budget_bytes)} 0v26`, style: { stroke: "var(--budget)", strokeWidth: 3 },
    "vector-effect": "non-scaling-stroke" }));
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `${bytes(r.peak_bytes)} of ${bytes(r.budget_bytes)}` },
  svg("rect", { x: 0, y: 2, width, height: 14, rx: 4, style: { fill: "var(--panel)" } }), parts);
}

export function sentence(r) {
  const i = r.interval;
  const rest = r.budget_bytes - r.peak_bytes;
  return `peak ${bytes(r.peak_bytes)} of ${bytes(r.budget_bytes)}` +
    (i ? ` (${bytes(i.low_bytes)} to ${bytes(i.high_bytes)}; ${Math.round(i.confidence * 100)} % of ${i.records} records like this)` : "") +
    (rest >= 0 ? `, ${bytes(rest)} free` : `, ${bytes(-rest)} too much`);
}

function showVerdict(r) {
  const word = byId("word");
  word.textContent = r.verdict === "fits" ? "Fits" : r.verdict === "tight" ? "Tight" : "Does not fit";
  word.className = words[r.verdict];
  byId("sentence").textContent = sentence(r);
  byId("meter").replaceChildren(meter(r));
  const figures = [["step", seconds(r.step_seconds)], ["tokens/s", count(r.tokens_per_second)],
    ["MFU", percent(r.mfu)], ["arguments", bytes(r.argument_bytes)], ["temporaries", bytes(r.temp_bytes)]];
  if (r.host_bytes) figures.push(["on the host", bytes(r.host_bytes)]);
  for (const s of r.timeline?.streams ?? [])
    figures.push([s.name, `${Math.round((100 * s.busy_seconds) / r.step_seconds)} % busy`]);
  byId("figures").replaceChildren(...figures.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

// ---- the breakdown

function topOf(r, category, most) {
  return r.peak.tensors.filter((t) => t.category === category).slice(0, most)
    .map((t) => `${bytes(t.bytes)}  ${t.name}`).join("\n");
}

function showBreakdown(r) {
  const used = categories.filter((c) => r.peak.categories[c] > 0);
  const all = Math.max(r.peak_bytes, r.budget_bytes);
  const bar = el("div", { class: "stack", role: "img", "aria-label": used.map((c) => `${c} ${bytes(r.peak.categories[c])}`).join(", ") },
    used.map((c) => explain(el("div", { style: { background: colour(c), flex: `${r.peak.categories[c] / all} 0 0` } }),
      `${c}: ${bytes(r.peak.categories[c])}\n${topOf(r, c, 6)}`)),
    r.budget_bytes > r.peak_bytes ? explain(el("div", { style: { flex: `${1 - r.peak_bytes / all} 0 0` } }),
      `free: ${bytes(r.budget_bytes - r.peak_bytes)}`) : null);
  const keys = el("ul", { class: "keys" }, used.map((c) => explain(el("li", { tabindex: 0 },
    el("span", { class: "swatch", style: { background: colour(c) } }), c,
    el("b", {}, `${bytes(r.peak.categories[c])}, ${percent(r.peak.categories[c] / r.peak_bytes)}`)), topOf(r, c, 6) || c)));
  byId("breakdown").replaceChildren(bar, keys);
  byId("peak-at").textContent = `at ${r.peak.at}`;
}

let filter = "";
function showTensors(r) {
  const rows = r.peak.tensors.filter((t) => !filter || `${t.name} ${t.category} ${t.why}`.toLowerCase().includes(filter));
  byId("tensors").replaceChildren(el("table", { class: "told", "aria-label": "Tensors at the peak" }, el("thead", {}, el("tr", {}, el("th", {}, "tensor"), el("th", { class: "n" }, "bytes"), el("th", {}, "why"))),
    el("tbody", {}, rows.slice(0, 300).map((t) => el("tr", {},
      el("td", { class: "name" }, el("span", { class: "swatch", title: t.category, style: { background: colour(t.category) } }), ` ${t.name}`),
      el("td", { class: "n" }, bytes(t.bytes)), el("td", { class: "why" }, t.why))))));
}

// ---- the timeline

const plot = { left: 70, right: 10, top: 18, height: 250, lane: 17 };
const axisStep = (most) => {
  const unit = 1024 ** Math.floor(Math.log(most / 3) / Math.log(1024));
  const raw = most / 4 / unit;
  const ten = 2 ** Math.floor(Math.log2(raw));
  return ten * unit;
};

let wide = 0; // of the timeline; asking while the page is half written would lay it out twice
function size() {
  wide ||= byId("timeline").clientWidth;
  return Math.max(260, wide || 800);
}

function samplesOf() {
  const t = view.result.timeline;
  if (!t?.seconds?.length) return null;
  const names = categories.filter((c) => t.categories[c]);
  return { t, names, end: view.result.step_seconds };
}

function totals(t, names) {
  if (sums) return sums;
  sums = new Float64Array(t.seconds.length);
  for (const c of names) t.categories[c].forEach((size, i) => { sums[i] += size; });
  return sums;
}

// Of several samples in one pixel the fullest is drawn: no peak is lost.
function thin(t, names, from, to, end, width) {
  const picked = [];
  let last = -1, best = -1, most = -1;
  const total = (i) => totals(t, names)[i];
  for (let i = 0; i < t.seconds.length; i++) {
    const next = t.seconds[i + 1] ?? end;
    if (next < from || t.seconds[i] > to) continue;
    const pixel = Math.floor(((t.seconds[i] - from) / (to - from)) * width);
    if (pixel !== last && best >= 0) { picked.push(best); most = -1; }
    last = pixel;
    if (total(i) > most) { most = total(i); best = i; }
  }
  if (best >= 0) picked.push(best);
  return picked;
}

function drawAreas(x, y, from, to, width) {
  const { t, names, end } = samplesOf();
  const picked = thin(t, names, from, to, end, width);
  const base = picked.map(() => 0);
  return names.map((c) => {
    const low = base.slice();
    picked.forEach((i, k) => { base[k] += t.categories[c][i]; });
    let d = "";
    picked.forEach((i, k) => {
      const x0 = x(Math.max(from, t.seconds[i])), x1 = x(k + 1 < picked.length ? t.seconds[picked[k + 1]] : Math.min(to, end));
      d += `${d ? "L" : "M"}${x0} ${y(base[k])}H${x1}`;
    });
    for (let k = picked.length - 1; k >= 0; k--) {
      const x1 = x(k + 1 < picked.length ? t.seconds[picked[k + 1]] : Math.min(to, end));
      d += `L${x1} ${y(low[k])}H${x(Math.max(from, t.seconds[picked[k]]))}`;
    }
    return svg("path", { d: `${d}Z`, style: { fill: colour(c) } });
  });
}

function drawPhases(x, from, to) {
  const marks = [];
  let free = -1;
  for (const p of view.result.timeline.phases) {
    if (p.end_seconds < from || p.start_seconds > to) continue;
    const x0 = x(Math.max(from, p.start_seconds)), x1 = x(Math.min(to, p.end_seconds));
    marks.push(svg("path", { d: `M${x0} ${plot.top - 4}V${plot.top + plot.height}`, style: { stroke: "var(--line)", strokeWidth: 1 } }));
    if (x1 - x0 > 7 * p.name.length && x0 > free) {
      marks.push(svg("text", { x: x0 + 3, y: 12, class: "faint" }, p.name));
      free = x0 + 7 * p.name.length;
    }
  }
  return marks;
}

function drawStreams(x, from, to) {
  return view.result.timeline.streams.map((s, i) => {
    const y = plot.top + plot.height + 24 + i * plot.lane;
    let d = "";
    let last = -1;
    for (const [start, end] of s.spans) {
      if (end < from || start > to) continue;
      const x0 = x(Math.max(from, start)), x1 = Math.max(x0 + 0.5, x(Math.min(to, end)));
      if (x1 <= last) continue;
      last = x1;
      d += `M${x0.toFixed(2)} ${y}H${x1.toFixed(2)}v11H${x0.toFixed(2)}Z`;
    }
    return svg("g", {}, svg("path", { d, style: { fill: "var(--link)" } }),
      svg("text", { x: plot.left - 6, y: y + 10, "text-anchor": "end", class: "faint" }, s.name.length > 9 ? `${s.name.slice(0, 8)}…` : s.name));
  });
}

// The budget has its name on the axis, in the place of numbers that would touch it: the line alone lies on data.
function frame(width, most, y, budget) {
  const marks = [];
  const step = axisStep(most);
  const label = (at, text, attributes) => svg("text", { x: plot.left - 6, y: at, "text-anchor": "end", ...attributes }, text);
  for (let v = 0; v <= most; v += step) {
    marks.push(svg("path", { d: `M${plot.left} ${y(v)}H${width - plot.right}`, style: { stroke: "var(--line)" } }));
    if (!budget || Math.abs(y(v) - y(budget)) > 20)
      marks.push(label(y(v) + 4, bytes(v).replace(/\.0+ /, " ").replace(/(\.\d*?)0+ /, "$1 "), { class: "faint" }));
  }
  if (budget)
    marks.push(label(y(budget) - 2, "budget", { class: "budget" }), label(y(budget) + 11, bytes(budget), { class: "budget" }));
  return marks;
}

const budgetLine = (width, at) => ["var(--back)", "var(--budget)"].map((stroke, i) => // edged, so that it is seen on any colour
  svg("path", { d: `M${plot.left} ${at}H${width - plot.right}`, style: { stroke, strokeWidth: i ? 2 : 5, strokeOpacity: i ? 1 : 0.6, strokeDasharray: i ? "6 4" : "" } }));

function timeAxis(x, from, to, width) {
  const marks = [];
  const raw = (to - from) / Math.max(2, (width - plot.left) / 110);
  const ten = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * ten).find((s) => s >= raw);
  for (let v = Math.ceil(from / step) * step; v <= to; v += step)
    marks.push(svg("text", { x: x(v), y: plot.top + plot.height + 15, "text-anchor": "middle", class: "faint" }, v === 0 ? "0" : seconds(v)));
  return marks.slice(0, 14);
}

function drawTime() {
  const data = samplesOf();
  if (!data) return el("p", { class: "faint" }, "There is no timeline of this configuration.");
  const width = size();
  const [from, to] = range.map((f) => f * data.end);
  const inner = width - plot.left - plot.right;
  const x = (s) => plot.left + ((s - from) / (to - from)) * inner;
  const most = Math.max(view.result.peak_bytes, view.result.budget_bytes) * 1.05;
  const y = (b) => plot.top + plot.height * (1 - b / most);
  const height = plot.top + plot.height + 26 + data.t.streams.length * plot.lane;
  const node = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" },
    frame(width, most, y, view.result.budget_bytes), drawAreas(x, y, from, to, inner), drawPhases(x, from, to),
    budgetLine(width, y(view.result.budget_bytes)),
    timeAxis(x, from, to, width), drawStreams(x, from, to),
    svg("path", { id: "cursor", d: "", style: { stroke: "var(--text)", strokeWidth: 1.5 } }));
  return node;
}

function drawAddresses() {
  const heap = view.result.heap;
  if (!heap?.buffers.length) return el("p", { class: "faint" }, "Nothing is placed.");
  const width = size();
  const ops = Math.max(1, view.ops.length);
  const [from, to] = range.map((f) => f * ops);
  const inner = width - plot.left - plot.right;
  const x = (op) => plot.left + ((Math.min(to, Math.max(from, op)) - from) / (to - from)) * inner;
  const most = heap.bytes * 1.02 || 1;
  const tall = plot.height + 100;
  const y = (b) => plot.top + tall * (1 - b / most);
  const boxes = heap.buffers.filter((b) => b.end_op >= from && b.start_op <= to).map((b) => svg("rect", {
    x: x(b.start_op), y: y(b.offset_bytes + b.bytes), width: Math.max(0.6, x(b.end_op + 1) - x(b.start_op)),
    height: Math.max(0.4, y(b.offset_bytes) - y(b.offset_bytes + b.bytes)),
    style: { fill: colour(b.category), stroke: "var(--back)", strokeWidth: 0.4 } }));
  return svg("svg", { viewBox: `0 0 ${width} ${plot.top + tall + 24}`, height: plot.top + tall + 24, "aria-hidden": "true" },
    frame(width, most, y, 0), boxes,
    svg("text", { x: plot.left, y: plot.top + tall + 16, class: "faint" }, `op ${Math.floor(from) + 1}`),
    svg("text", { x: width - plot.right, y: plot.top + tall + 16, "text-anchor": "end", class: "faint" }, `op ${Math.ceil(to)}`),
    svg("path", { id: "cursor", d: "", style: { stroke: "var(--text)", strokeWidth: 1.5 } }));
}

export function draw() {
  if (!view || byId("panel-memory").hidden) return;
  byId("timeline").replaceChildren(mode === "time" ? drawTime() : drawAddresses());
  byId("by-time").setAttribute("aria-pressed", mode === "time");
  byId("by-address").setAttribute("aria-pressed", mode !== "time");
  showCursor();
}

// ---- the moment under the pointer

function sampleAt(second) {
  const at = view.result.timeline.seconds;
  let low = 0, high = at.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (at[middle] <= second) low = middle; else high = middle - 1;
  }
  return low;
}

function indexAlive() {
  alive = view.ops.map(() => null);
}

function aliveAt(position) {
  if (!alive[position])
    alive[position] = view.result.heap.buffers.map((b, i) => [b, i])
      .filter(([b]) => b.start_op <= position && b.end_op >= position)
      .sort((a, b) => b[0].bytes - a[0].bytes);
  return alive[position];
}

const opText = (position) => {
  const op = view.ops[position];
  return op ? `${op[1]}, op ${position + 1} of ${view.ops.length}: ${op[0]}` : "";
};

function momentAt(part) {
  if (mode !== "time") {
    const position = Math.min(view.ops.length - 1, Math.floor(part * view.ops.length));
    return { position, text: opText(position), total: null };
  }
  const second = part * view.result.step_seconds;
  const i = sampleAt(second);
  const t = view.result.timeline;
  const total = categories.reduce((sum, c) => sum + (t.categories[c]?.[i] ?? 0), 0);
  const running = t.streams.map((s) => {
    const span = s.spans.find(([a, b]) => a <= second && b >= second);
    return span ? `${s.name}: ${span[2]}` : null;
  }).filter(Boolean);
  return { position: view.positions[i], sample: i, total, running, text: `${seconds(second)}, ${opText(view.positions[i])}` };
}

function stackRows(position, most) {
  const held = view.result.peak.tensors.filter((t) => ["params", "optimizer", "ema", "inputs", "runtime"].includes(t.category));
  const temps = aliveAt(position).map(([b, i]) => ({ name: b.name, bytes: b.bytes, category: b.category, shape: view.notes[i][0],
    why: view.notes[i][1], life: `ops ${b.start_op + 1} to ${b.end_op + 1}` }));
  const own = new Set(temps.map((t) => t.name));
  return [...temps, ...held.filter((t) => !own.has(t.name)).map((t) => ({ ...t, shape: "", life: "the whole step" }))]
    .sort((a, b) => b.bytes - a.bytes).slice(0, most);
}

function showMoment(part) {
  const m = momentAt(part);
  const rows = stackRows(m.position, 12);
  byId("moment").replaceChildren(
    el("p", { class: "faint" }, m.text, m.total !== null ? el("b", {}, `  ${bytes(m.total)}`) : null),
    el("div", { class: "scroll" }, el("table", { class: "told", "aria-label": "What is alive at this moment" }, el("thead", {}, el("tr", {}, ["alive then", "bytes", "shape", "from, to", "why"].map((h, i) => el("th", { class: i === 1 ? "n" : null }, h)))),
      el("tbody", {}, rows.map((t) => el("tr", {},
        el("td", { class: "name" }, el("span", { class: "swatch", title: t.category, style: { background: colour(t.category) } }), ` ${t.name}`),
        el("td", { class: "n" }, bytes(t.bytes)), el("td", { class: "line" }, t.shape), el("td", { class: "line" }, t.life), el("td", { class: "why" }, t.why)))))));
}

function showCursor() {
  const line = byId("cursor");
  if (!line) return;
  if (cursor === null || cursor < range[0] || cursor > range[1]) { line.setAttribute("d", ""); return; }
  const x = plot.left + ((cursor - range[0]) / (range[1] - range[0])) * (size() - plot.left - plot.right);
  line.setAttribute("d", `M${x} ${plot.top}V${plot.top + plot.height + (mode === "time" ? 0 : 100)}`);
}

function partAt(event) {
  const box = byId("timeline").getBoundingClientRect();
  const inner = box.width - plot.left - plot.right;
  const f = Math.max(0, Math.min(1, (event.clientX - box.left - plot.left) / inner));
  return range[0] + f * (range[1] - range[0]);
}

// Which band, or which buffer, the pointer is on.
function pointed(event, part) {
  const box = byId("timeline").getBoundingClientRect();
  if (mode !== "time") {
    const tall = plot.height + 100;
    const address = (1 - (event.clientY - box.top - plot.top) / tall) * view.result.heap.bytes * 1.02;
    const hit = aliveAt(Math.min(view.ops.length - 1, Math.floor(part * view.ops.length)))
      .find(([b]) => b.offset_bytes <= address && b.offset_bytes + b.bytes > address);
    if (!hit) return null;
    const [b, i] = hit;
    return `${b.name}\n${bytes(b.bytes)} ${view.notes[i][0]}, ${b.category}\nops ${b.start_op + 1} to ${b.end_op + 1}: ${view.ops[b.start_op]?.[0] ?? ""} … ${view.ops[b.end_op]?.[0] ?? ""}\n${view.notes[i][1]}`;
  }
  const r = view.result, m = momentAt(part);
  const lane = Math.floor((event.clientY - box.top - plot.top - plot.height - 22) / plot.lane);
  if (lane >= 0) {
    const s = r.timeline.streams[lane];
    return s ? `${s.name}: ${Math.round((100 * s.busy_seconds) / r.step_seconds)} % busy\n${m.running.find((t) => t.startsWith(`${s.name}:`)) ?? "idle here"}` : null;
  }
  const most = Math.max(r.peak_bytes, r.budget_bytes) * 1.05;
  let value = (1 - (event.clientY - box.top - plot.top) / plot.height) * most;
  const lines = aliveAt(m.position);
  for (const c of categories) {
    const size = r.timeline.categories[c]?.[m.sample] ?? 0;
    if (value >= 0 && value < size) {
      const own = lines.filter(([b]) => b.category === c).slice(0, 5).map(([b, i]) => `${bytes(b.bytes)}  ${b.name}: ${view.notes[i][1] || view.notes[i][0]}`);
      return `${c}: ${bytes(size)} of ${bytes(m.total)}\n${m.text}\n${own.length ? own.join("\n") : topOf(r, c, 4)}`;
    }
    value -= size;
  }
  return `${bytes(m.total)}\n${m.text}`;
}

function zoom(factor, around) {
  const width = Math.min(1, (range[1] - range[0]) * factor);
  if (width < 0.002) return;
  const f = (around - range[0]) / (range[1] - range[0]);
  const low = Math.max(0, Math.min(1 - width, around - f * width));
  range = [low, low + width];
  draw();
}

function pan(part) {
  const width = range[1] - range[0];
  const low = Math.max(0, Math.min(1 - width, range[0] + part * width));
  range = [low, low + width];
  draw();
}

function listen() {
  const node = byId("timeline");
  let from = null;
  node.addEventListener("pointermove", (event) => {
    if (!view) return;
    cursor = partAt(event);
    showCursor();
    tip(pointed(event, cursor), event);
  });
  node.addEventListener("pointerleave", () => tip(null));
  node.addEventListener("pointerdown", (event) => { from = partAt(event); });
  node.addEventListener("pointerup", (event) => {
    const to = partAt(event);
    if (from !== null && Math.abs(to - from) > 0.01 * (range[1] - range[0])) {
      range = [Math.min(from, to), Math.max(from, to)];
      draw();
    } else if (view) { cursor = to; showMoment(cursor); }
    from = null;
  });
  node.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaY) < Math.abs(event.deltaX)) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, partAt(event));
  }, { passive: false });
  node.addEventListener("keydown", (event) => {
    if (!view) return;
    const step = (range[1] - range[0]) / 100;
    const middle = cursor ?? (range[0] + range[1]) / 2;
    const act = { ArrowRight: () => { cursor = Math.min(range[1], middle + step); }, ArrowLeft: () => { cursor = Math.max(range[0], middle - step); },
      Home: () => { cursor = range[0]; }, End: () => { cursor = range[1]; }, "+": () => zoom(0.7, middle), "=": () => zoom(0.7, middle),
      "-": () => zoom(1.4, middle), 0: () => { range = [0, 1]; draw(); }, PageDown: () => pan(0.5), PageUp: () => pan(-0.5) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    showCursor();
    if (cursor !== null) showMoment(cursor);
  });
  const button = (id, act) => byId(id).addEventListener("click", act);
  button("by-time", () => { mode = "time"; cursor = null; range = [0, 1]; draw(); });
  button("by-address", () => { mode = "address"; cursor = null; range = [0, 1]; draw(); });
  button("zoom-in", () => zoom(0.6, (range[0] + range[1]) / 2));
  button("zoom-out", () => zoom(1.7, (range[0] + range[1]) / 2));
  button("zoom-all", () => { range = [0, 1]; draw(); });
  byId("tensor-filter").addEventListener("input", (event) => { filter = event.target.value.toLowerCase(); if (view) showTensors(view.result); });
  new ResizeObserver(() => {
    if (node.clientWidth === wide) return;
    wide = node.clientWidth;
    draw();
  }).observe(node);
}

export function startMemory() { listen(); }

function peakPart() {
  const data = samplesOf();
  if (!data) return null;
  const all = totals(data.t, data.names);
  let best = 0;
  all.forEach((total, i) => { if (total > all[best]) best = i; });
  return (data.t.seconds[best] + 1e-12) / data.end;
}

export function showMemory(answer) {
  view = answer;
  indexAlive();
  sums = null;
  showVerdict(view.result);
  showBreakdown(view.result);
  cursor = mode === "time" ? peakPart() : null;
  draw();
  requestAnimationFrame(() => setTimeout(showLists)); // tables are long: after what is looked at first
}

function showLists() {
  showTensors(view.result);
  if (cursor !== null) showMoment(cursor);
}
