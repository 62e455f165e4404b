// Elements, texts of numbers, the tip.

export const byId = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value); // not an attribute: the policy
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return node;
}

export const el = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const digits = (value) => {
  const size = Math.abs(value);
  return value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
};

export function bytes(value) {
  const size = Math.abs(value);
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (unit < 5 && size >= 1024 ** (unit + 1)) unit++;
  return unit ? `${digits(value / 1024 ** unit)} ${units[unit]}` : `${value} B`;
}

export function seconds(value) {
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (size < 1e-3) return `${digits(value * 1e6)} µs`;
  if (size < 1) return `${digits(value * 1e3)} ms`;
  if (size < 120) return `${digits(value)} s`;
  return `${digits(value / 60)} min`;
}

export function count(value) {
  const units = ["", " K", " M", " G", " T", " P"];
  let unit = 0;
  while (unit < 5 && Math.abs(value) >= 1000 ** (unit + 1)) unit++;
  return (unit ? digits(value / 1000 ** unit) : String(Math.round(value))) + units[unit];
}

export const percent = (part) => `${(100 * part).toFixed(1)} %`;

/** A text beside the pointer, or beside an element that has the focus; null: none. */
export function tip(text, at) {
  const node = byId("tip");
  node.hidden = !text;
  if (!text) return;
  node.textContent = text;
  const box = at instanceof Element ? at.getBoundingClientRect() : null;
  const x = box ? box.right : at.clientX;
  const y = box ? box.bottom : at.clientY;
  const left = x + 14 + node.offsetWidth > innerWidth ? x - 14 - node.offsetWidth : x + 14;
  const top = y + 14 + node.offsetHeight > innerHeight ? y - 14 - node.offsetHeight : y + 14;
  node.style.left = `${Math.max(4, Math.min(left, innerWidth - node.offsetWidth - 4))}px`;
  node.style.top = `${Math.max(4, top)}px`;
}

/** Shows text where the pointer is on the element or where it has the focus. */
export function explain(node, text) {
  node.addEventListener("pointermove", (event) => tip(text, event));
  node.addEventListener("pointerleave", () => tip(null));
  node.addEventListener("focus", () => node.matches(":focus-visible") && tip(text, node));
  node.addEventListener("blur", () => tip(null));
  return node;
}

export function download(name, content, type) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export const isDark = () => document.documentElement.classList.contains("dark");

export const categories = ["params", "optimizer", "ema", "inputs", "runtime", "saved", "gradients",
  "logits", "working", "communication", "padding", "fragmentation"];
export const colour = (category) => `var(--${category})`;
