// Keyboard shortcuts: single keys while no text field has the focus. Each page adds its own.
import { $, $$, el } from "./dom.js";
import { tell } from "./dialog.js";

const known = [];
const EVERYWHERE = [["j / k", "next, previous row"], ["Enter", "open the chosen row"], ["?", "this list"], ["Esc", "close, or leave a field"]];

export function key(name, words, act) { known.push({ name, words, act }); }

export function showHelp() {
  const rows = [...EVERYWHERE, ...known.map(({ name, words }) => [name, words])];
  tell("Keys", el("dl", { class: "keys" }, ...rows.flatMap(([name, words]) => [
    el("dt", null, ...name.split(" / ").flatMap((one, index) => [index ? " " : "", el("kbd", null, one)])), el("dd", null, words)])));
}

export function rows() { return [...$$("tbody > tr[tabindex]")].filter((row) => row.offsetParent !== null); }

export function step(by) {
  const all = rows();
  if (!all.length) return;
  const here = all.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const chosen = here < 0 ? all.findIndex((row) => row.getAttribute("aria-selected") === "true") : here;
  const next = chosen < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(chosen + by, 0), all.length - 1);
  all[next].focus({ preventScroll: true });
  all[next].scrollIntoView({ block: "nearest" });
}

const typing = (target) => target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");

export function bind() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || $("dialog[open]")) return;
    if (event.key === "Escape") { if (typing(event.target)) event.target.blur(); return; }
    if (typing(event.target)) return;
    const own = known.find(({ name }) => name === (event.shiftKey && event.key.length === 1 && /[A-Z]/.test(event.key) ? `Shift+${event.key}` : event.key));
    if (own) { event.preventDefault(); own.act(); }
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "?") showHelp();
    else if (event.key === "Enter" && event.target.matches("tr[tabindex]")) event.target.querySelector("th a")?.click();
  });
}
