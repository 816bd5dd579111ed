// The pipelines: refreshed every two seconds, with a button to drain each.
import { $, $$, el, every, icon, mayOperate, setText } from "./dom.js";
import { Refusal, post, read, say } from "./api.js";
import { ask } from "./dialog.js";
import { moment, percent, size } from "./format.js";
import { show as connection } from "./stream.js";

const level = (value) => (typeof value !== "number" || value < 80 ? "good" : value >= 90 ? "bad" : "warn");

function showGauge(gauge, value) {
  gauge.dataset.level = level(value);
  $("rect", gauge).setAttribute("width", `${value ?? 0}%`);
  setText(gauge.lastElementChild.lastChild, percent(value));
}

function showBadge(badge, pipeline) {
  const word = pipeline.is_stale ? "silent" : pipeline.draining ? "draining" : pipeline.status.toLowerCase();
  const state = pipeline.is_stale ? "silent" : pipeline.draining || pipeline.status !== "Running" ? "draining" : "running";
  if (badge.dataset.state === state && badge.textContent === word) return;
  badge.dataset.state = state;
  badge.replaceChildren(icon(state), el("span", null, word));
}

function showJobs(cell, pipeline) {
  const now = JSON.stringify([pipeline.jobs, pipeline.slots]);
  if (cell.dataset.now === now) return;
  cell.dataset.now = now;
  const count = pipeline.slots === null ? `${pipeline.jobs.length}` : `${pipeline.jobs.length} of ${pipeline.slots}`;
  cell.replaceChildren(count, ...pipeline.jobs.slice(0, 4).map((job) => el("a", { class: "clip", href: `/jobs/${encodeURIComponent(job.ident)}` }, job.url)));
}

function show(pipelines) {
  const ids = pipelines.map((one) => one.id).join();
  const here = [...$$("#pipelines tr")].map((row) => row.dataset.id).join();
  if (ids !== here) { if (!$("dialog[open]")) location.reload(); return; }
  for (const pipeline of pipelines) {
    const row = $(`#pipelines tr[data-id="${CSS.escape(pipeline.id)}"]`);
    const cells = row.children;
    showBadge($(".state", row), pipeline);
    showJobs(cells[2], pipeline);
    setText(cells[3], pipeline.load.map((value) => (value === null ? "–" : value.toFixed(2))).join(" · "));
    showGauge($(".gauge", cells[4]), pipeline.mem_usage);
    showGauge($(".gauge", cells[5]), pipeline.disk_usage);
    setText(cells[6], size(pipeline.disk_available));
    const report = $("[data-ago]", row);
    report.dataset.ago = pipeline.ts ?? "";
    report.title = moment(pipeline.ts);
    $("[data-drain]", row).hidden = !mayOperate() || pipeline.draining || pipeline.is_stale;
  }
}

async function refresh() {
  if (document.hidden) return;
  try {
    show((await read("/pipelines")).pipelines);
    connection("live");
  } catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
    connection("lost");
  }
}

async function drain(button) {
  const { name } = button.dataset;
  const sure = await ask({
    title: "Drain this pipeline?", text: "It takes no more jobs, gives back those it has and ends. That cannot be called back.", target: name, confirm: "Drain", danger: true,
  });
  if (!sure) return;
  try {
    await post(`/pipelines/${encodeURIComponent(button.dataset.drain.replace(/^pipeline:/, ""))}/drain`, { on: true });
    say(`${name} drains.`);
    await refresh();
  } catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
    say(fault.message, "bad");
  }
}

export function start() {
  for (const button of $$("[data-drain]")) {
    button.hidden = !mayOperate() || "over" in button.dataset;
    button.addEventListener("click", () => drain(button));
  }
  every(2000, refresh);
}
