// The pending queues: reorder by drag, buttons or keys. The server's response is what is shown.
import { $, $$, el, every, icon, mayOperate, setText } from "./dom.js";
import { Refusal, post, read, say } from "./api.js";
import { ask } from "./dialog.js";
import { ago, moment, number } from "./format.js";
import { key } from "./keys.js";
import { show as connection } from "./stream.js";

const MOVES = [["top", "First", "Home"], ["up", "Earlier", "Shift+K"], ["down", "Later", "Shift+J"], ["remove", "Remove", "Delete"]];
let shown = "";
let dragged = null;
let changes = 0;

function row(job, place) {
  const buttons = MOVES.map(([name, word, shortcut]) => el("button", {
    class: `button icon${name === "remove" ? " danger" : ""}`, type: "button", "data-move": name, "aria-label": `${word}: ${job.url}`, title: `${word} (${shortcut})`,
  }, icon(name)));
  return el("tr", { class: "queue-row", "data-ident": job.ident, "data-url": job.url, tabindex: "-1" },
    el("td", { class: "grip" }, icon("grip")), el("td", { class: "place number" }, number(place)),
    el("th", { scope: "row", class: "name" }, el("a", { class: "clip", title: job.url, href: `/jobs/${encodeURIComponent(job.ident)}` }, job.url),
      el("span", { class: "about" }, el("span", { class: "mono" }, job.ident.slice(0, 7)), el("span", null, job.note))),
    el("td", { "data-label": "by" }, job.started_by),
    el("td", { class: "number", "data-label": "queued for" }, el("span", { "data-ago": job.queued_at ?? "", title: moment(job.queued_at) }, ago(job.queued_at))),
    el("td", { class: "acts" }, el("span", { class: "buttons", hidden: !mayOperate() }, ...buttons)));
}

function show(queues) {
  const text = JSON.stringify(queues);
  if (text === shown || dragged) return;
  const focus = document.activeElement.closest?.("tr")?.dataset.ident;
  const move = document.activeElement.dataset?.move;
  shown = text;
  for (const queue of queues) {
    const card = $(`[data-queue="${CSS.escape(queue.name)}"]`);
    if (!card || (card.querySelector("tbody") === null) !== (queue.jobs.length === 0)) { if (queue.jobs.length || card?.querySelector("tbody")) location.reload(); continue; }
    setText($("header .small", card), `${number(queue.jobs.length)} queued`);
    $("tbody", card)?.replaceChildren(...queue.jobs.map((job, index) => row(job, index + 1)));
  }
  for (const card of $$("[data-queue]")) if (card.querySelector("tbody tr") && !queues.some((queue) => queue.name === card.dataset.queue)) location.reload();
  const again = focus && $(`tr[data-ident="${CSS.escape(focus)}"]`);
  if (again) (again.querySelector(`[data-move="${move}"]`) ?? again).focus();
}

const queueOf = (line) => line.closest("[data-queue]").dataset.queue;
const placeOf = (line) => [...line.parentElement.children].indexOf(line);

async function send(path, body, words) {
  changes += 1;
  try {
    const { queues } = await post(path, body);
    changes += 1;
    show(queues);
    setText($("#spoken"), words);
  } catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
    say(fault.message, "bad");
    refresh();
  }
}

async function move(line, where) {
  if (!line || !mayOperate()) return;
  const { ident, url } = line.dataset;
  const queue = queueOf(line);
  if (where === "remove") {
    const sure = await ask({ title: "Remove this job?", text: "It leaves the queue, is not run, and counts as aborted.", target: url, confirm: "Remove", danger: true });
    if (sure) await send("/pending/remove", { queue, ident }, `Removed ${url}`);
    return;
  }
  const last = line.parentElement.childElementCount - 1;
  const position = Math.min(Math.max({ top: 0, up: placeOf(line) - 1, down: placeOf(line) + 1 }[where] ?? where, 0), last);
  if (position !== placeOf(line)) await send("/pending/move", { queue, ident, position }, `${url} is now number ${position + 1}`);
}

function drops(holder) {
  const clear = () => { for (const line of $$("[data-drop]")) delete line.dataset.drop; };
  const under = (event) => {
    const line = document.elementFromPoint(event.clientX, event.clientY)?.closest(".queue-row");
    return line && line !== dragged && line.parentElement === dragged.parentElement ? line : null;
  };
  const after = (line, event) => event.clientY > line.getBoundingClientRect().top + line.offsetHeight / 2;
  holder.addEventListener("pointerdown", (event) => {
    const grip = event.target.closest(".grip");
    if (!grip || !mayOperate() || event.button) return;
    event.preventDefault();
    dragged = grip.parentElement;
    dragged.dataset.dragged = "";
    holder.setPointerCapture(event.pointerId);
  });
  holder.addEventListener("pointermove", (event) => {
    if (!dragged) return;
    clear();
    const line = under(event);
    if (line) line.dataset.drop = after(line, event) ? "after" : "before";
  });
  const end = (event, dropped) => {
    if (!dragged) return;
    const line = dropped ? under(event) : null;
    const moved = dragged;
    delete moved.dataset.dragged;
    clear();
    dragged = null;
    if (!line) return;
    const from = placeOf(moved);
    const to = placeOf(line) + (after(line, event) ? 1 : 0);
    move(moved, to > from ? to - 1 : to);
  };
  holder.addEventListener("pointerup", (event) => end(event, true));
  holder.addEventListener("pointercancel", (event) => end(event, false));
}

async function refresh() {
  if (document.hidden || dragged || $("dialog[open]")) return;
  const before = changes;
  try {
    const { queues } = await read("/pending");
    // A response to a poll during a move may be older than the response to the move.
    if (changes === before) show(queues);
    connection("live");
  } catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
    connection("lost");
  }
}

export function start() {
  const holder = $("#queues");
  if (mayOperate()) for (const node of $$(".acts .buttons")) node.hidden = false;
  holder.addEventListener("click", (event) => {
    const button = event.target.closest("[data-move]");
    if (button) move(button.closest("tr"), button.dataset.move);
  });
  drops(holder);
  const here = () => document.activeElement.closest?.(".queue-row");
  key("Shift+K", "chosen job earlier", () => move(here(), "up"));
  key("Shift+J", "chosen job later", () => move(here(), "down"));
  key("Home", "chosen job first", () => move(here(), "top"));
  key("Delete", "remove the chosen job", () => move(here(), "remove"));
  every(3000, refresh);
}
