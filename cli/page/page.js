// hbmsim serve: the page. Each change of the form goes to the program that the commands are, and
// what it answers is shown.

import { byId, el, seconds } from "./util.js";
import { configText, onChange, readAddress, replace, showBack, state, writeAddress } from "./state.js";
import { makeForm, markErrors, showForm } from "./form.js";
import { draw, sentence, showMemory, startMemory } from "./memory.js";
import { leaveMap, showMap, startMap } from "./map.js";
import { drawPicture, linkText, readFile, showCompare, showLevers, startTools } from "./tools.js";
import { latest } from "./net.js";

const tabs = [["memory", "Memory"], ["map", "Fit map"], ["levers", "Levers"], ["plan", "Plan"], ["compare", "Compare"], ["files", "Files"]];
const simulate = latest();
let view = null;      // of the configuration that is shown
let speaking = 0;

// ---- what a change does

function trouble(text) {
  const node = byId("trouble");
  node.hidden = !text;
  node.textContent = text;
  markErrors(text);
}

// The place in the page's own text tells nothing.
const plain = (err) => err.replace(/^(standard input|-)(:\d+)*: (error: )?/gm, "").replace(/^.*warning: .*$/gm, "").trim();

function speak(text) {
  clearTimeout(speaking);
  speaking = setTimeout(() => { byId("live").textContent = text; }, 700);
}

const afterFrame = (act) => requestAnimationFrame(() => setTimeout(act));

async function update() {
  const begun = performance.now();
  byId("verdict").classList.add("old");
  let answer;
  try {
    answer = await simulate.run("simulate", { body: configText() });
  } catch (error) {
    trouble(error instanceof TypeError ? "hbmsim serve has ended: start it again and load this page from the address that it prints." : error.message);
    return;
  }
  if (!answer) return; // another change came
  if (!answer.text) {
    const text = plain(answer.err) || `it ended by ${answer.status}`;
    trouble(text);
    speak(`Cannot be: ${text}`);
    showOther();
    return;
  }
  trouble("");
  view = JSON.parse(answer.text);
  byId("verdict").classList.remove("old");
  byId("what").textContent = `${view.result.name} on ${view.result.configuration.hardware.count} × ${view.result.device}`;
  document.title = `${view.result.verdict}: ${view.result.name} · hbmsim`;
  let seen = begun;
  afterFrame(() => { seen = performance.now(); });
  showForm(view.result.configuration);
  showMemory(view);
  afterFrame(() => { document.documentElement.dataset.latency = (seen - begun).toFixed(1); }); // for tests
  speak(`${view.result.verdict}: ${sentence(view.result)}; ${seconds(view.result.step_seconds)} a step`);
  showOther();
}

function showOther() {
  if (state.tab === "map") showMap();
  if (state.tab === "levers") showLevers();
  if (state.tab === "compare") showCompare();
}

// ---- tabs

function showTab() {
  if (!tabs.some(([name]) => name === state.tab)) state.tab = "memory";
  for (const [name] of tabs) {
    const chosen = name === state.tab;
    byId(`panel-${name}`).hidden = !chosen;
    byId(`tab-${name}`).setAttribute("aria-selected", chosen);
    byId(`tab-${name}`).tabIndex = chosen ? 0 : -1;
  }
  if (state.tab !== "map") leaveMap();
  if (view) draw();
  if (view) showOther();
}

function makeTabs() {
  const choose = (name) => {
    if (state.tab === name) return;
    state.tab = name;
    writeAddress(true);
    showTab();
  };
  byId("tabs").append(...tabs.map(([name, title]) => el("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, onclick: () => choose(name) }, title)));
  byId("tabs").addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const at = tabs.findIndex(([name]) => name === state.tab);
    const [name] = tabs[(at + move + tabs.length) % tabs.length];
    choose(name);
    byId(`tab-${name}`).focus();
  });
}

// ---- the page as a whole

function applyTheme() {
  const choice = byId("theme").value;
  const dark = choice === "dark" || (choice === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.classList.toggle("dark", dark);
}

function startTheme() {
  byId("theme").value = localStorage.getItem("hbmsim-theme") ?? "auto";
  byId("theme").addEventListener("change", () => { localStorage.setItem("hbmsim-theme", byId("theme").value); applyTheme(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
  applyTheme();
}

function listenDrops() {
  let depth = 0;
  const show = (on) => { byId("drop").hidden = !on; };
  addEventListener("dragenter", (event) => { event.preventDefault(); depth++; show(true); });
  addEventListener("dragleave", () => { if (--depth <= 0) { depth = 0; show(false); } });
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    depth = 0;
    show(false);
    const file = event.dataTransfer.files[0];
    if (file) readFile(file);
  });
}

// Where there is no room beside the results the form is folded away above them.
function startFold() {
  const narrow = matchMedia("(max-width: 859px)");
  const fold = () => { byId("fold").open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
}

async function copyLink() {
  const button = byId("link");
  try { await navigator.clipboard.writeText(linkText()); button.textContent = "Copied"; } catch { prompt("The address:", linkText()); }
  setTimeout(() => { button.textContent = "Copy link"; }, 1500);
}

async function start() {
  const first = await (await fetch("start.json")).json();
  startTheme();
  startFold();
  makeTabs();
  if (!readAddress()) state.config = first.configuration;
  makeForm(first);
  startMemory();
  startMap((json, kind) => drawPicture(json, kind));
  startTools(() => view);
  listenDrops();
  byId("undo").addEventListener("click", () => history.back());
  byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("results").focus(); }); // the address is the state's
  byId("link").addEventListener("click", copyLink);
  addEventListener("popstate", () => { showBack(); if (readAddress()) { replace(state.config, "back"); showTab(); } });
  onChange((who) => { if (who !== "typing") showForm(); update(); });
  writeAddress(false);
  showTab();
  update();
}

start();
