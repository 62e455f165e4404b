// The configuration and the view, both in the address: a link holds all, Back goes back.

import { byId } from "./util.js";

export const state = { config: {}, tab: "memory", pinned: null, x: null, y: null };

const listeners = [];
/** Calls back after each change; who: what made it ("form", "back", "plan" ...). */
export const onChange = (listener) => listeners.push(listener);

export function get(path, root = state.config) {
  return path.split(".").reduce((node, key) => node?.[key], root);
}

function assign(path, value) {
  const keys = path.split(".");
  const last = keys.pop();
  const chain = [state.config];
  for (const key of keys) {
    const up = chain[chain.length - 1];
    if (typeof up[key] !== "object" || up[key] === null || Array.isArray(up[key])) up[key] = {};
    chain.push(up[key]);
  }
  if (value === undefined) delete chain[chain.length - 1][last];
  else chain[chain.length - 1][last] = value;
  for (let i = keys.length - 1; i >= 0; i--)
    if (!Object.keys(chain[i + 1]).length) delete chain[i][keys[i]];
}

const sizes = ["batch.global", "batch.per_device", "batch.tokens"];

// What no longer holds once another key is turned: the count follows the mesh (or an axis of it, the
// rest, follows the count), the compiler the device, the model the card; a batch is said in one way.
function follow(path) {
  if (path.startsWith("mesh.") && !Object.values(get("mesh") ?? {}).includes("rest")) assign("hardware.count", undefined);
  if (sizes.includes(path) && get(path) !== undefined)
    for (const other of sizes) if (other !== path) assign(other, undefined);
  if (path === "hardware.device") {
    if (get("compiler") !== "torch") assign("compiler", undefined);
    assign("hardware.hbm", undefined);
    assign("hardware.reserve", undefined);
  }
  if (path === "model.preset" && get("model.preset"))
    state.config.model = { preset: get("model.preset") };
}

/** Sets keys; undefined takes one away. */
export function set(changes, who = "form") {
  for (const [path, value] of Object.entries(changes)) {
    assign(path, value);
    follow(path);
  }
  listeners.forEach((listener) => listener(who));
}

export function replace(config, who) {
  state.config = structuredClone(config);
  listeners.forEach((listener) => listener(who));
}

// ---- the address

function* leaves(node, path) {
  if (node !== null && typeof node === "object" && !Array.isArray(node))
    for (const [key, value] of Object.entries(node)) yield* leaves(value, path ? `${path}.${key}` : key);
  else yield [path, node];
}

const plain = /^[A-Za-z_][\w.,:+ -]*$/;
const write = (value) =>
  typeof value === "string" && plain.test(value) && !/^(true|false|null)$/.test(value)
    ? value : JSON.stringify(value);
const read = (text) => { try { return JSON.parse(text); } catch { return text; } };
const escape = (text) => encodeURIComponent(text).replace(/%(2C|3A|5B|5D|2F|7B|7D|22)/gi,
  (code) => (code === "%22" ? code : decodeURIComponent(code)));

export function address() {
  const parts = [...leaves(state.config, "")].map(([path, value]) => `${path}=${escape(write(value))}`);
  if (state.tab !== "memory") parts.push(`~tab=${state.tab}`);
  for (const axis of ["x", "y"]) if (state[axis]) parts.push(`~${axis}=${escape(state[axis])}`);
  if (state.pinned) parts.push(`~pinned=${escape(JSON.stringify(state.pinned))}`);
  return `#${parts.join("&")}`;
}

/** Takes the state from the address; false: it has none. */
export function readAddress() {
  const text = location.hash.slice(1);
  if (!text.includes("=")) return false;
  Object.assign(state, { config: {}, tab: "memory", pinned: null, x: null, y: null });
  for (const part of text.split("&")) {
    const at = part.indexOf("=");
    let value;
    try { value = decodeURIComponent(part.slice(at + 1)); } catch { continue; }
    const key = part.slice(0, at);
    if (/__proto__|prototype|constructor/.test(key)) continue;
    if (key === "~pinned") state.pinned = read(value);
    else if (key === "~tab") state.tab = /^[a-z]+$/.test(value) ? value : "memory";
    else if (key === "~x" || key === "~y") state[key[1]] = value;
    else if (key) assign(key, read(value));
  }
  return true;
}

/** commit: a step that Back undoes; else the address alone follows. */
export function writeAddress(commit) {
  const wanted = address();
  if (commit && wanted !== location.hash) history.pushState({ step: (history.state?.step ?? 0) + 1 }, "", wanted);
  else history.replaceState(history.state, "", wanted);
  showBack();
}

/** Back leads to a configuration, never away from the page. */
export function showBack() { byId("undo").disabled = !history.state?.step; }

export const configText = (config = state.config) => JSON.stringify(config);
