// The page of one job: live details, log and actions.
import { $, $$, el, mayOperate, setText } from "./dom.js";
import { ago, counted, moment, number, rate, serverTime, settingText, size, span } from "./format.js";
import { showClasses, showState } from "./job_rows.js";
import { key } from "./keys.js";
import { LogView } from "./log_view.js";
import { redraw } from "./redraw.js";
import { Stream, away } from "./stream.js";
import { startTester } from "./tester.js";
import { SETTINGS, VERBS, perform, verbButtons } from "./verbs.js";

const ident = $("#job")?.dataset.ident;
const WORDED = { items_per_s: rate, bytes_per_s: size, bytes: size, downloaded: number, todo: number, errors: number, settings_age: number };
let job = null;
let series = "pace";
const drawn = {};

// Lists are redrawn only when they change, so that focus and selection are kept.
function changed(name, value) {
  const text = JSON.stringify(value);
  if (drawn[name] === text) return false;
  drawn[name] = text;
  return true;
}

function showAge() {
  if (!job) return;
  const node = $('[data-t="age"]');
  if (job.finished_at && job.started_at) setText(node, span(job.finished_at - job.started_at));
  else setText(node, job.started_at ? ago(job.started_at) : "–");
}

function showIgnores(ignores) {
  if (!changed("ignores", [ignores, job.state])) return;
  setText($("#ignores-count"), counted(ignores.length, "pattern"));
  $("#no-ignores").hidden = ignores.length > 0;
  const removable = mayOperate() && VERBS.unignore.states.includes(job.state);
  $("#ignores").replaceChildren(...ignores.map(({ pattern, hits }) => el("tr", null,
    el("th", { scope: "row", class: "pattern" }, pattern), el("td", { class: "number" }, number(hits)),
    el("td", { class: "number" }, removable ? el("button", { class: "button bare", type: "button", "aria-label": `Remove ${pattern}`, onclick: () => perform("unignore", job, { pattern }) }, "Remove") : null))));
}

function showLists() {
  if (changed("hosts", job.hosts)) {
    $("#no-hosts").hidden = job.hosts.length > 0;
    $("#hosts").replaceChildren(...job.hosts.map((host) => el("tr", null,
      el("th", { scope: "row", class: "scroll-cell" }, el("span", { class: "clip", title: host.host }, host.host)),
      ...[host.in_flight, host.pages, host.waiting].map((value) => el("td", { class: "number" }, number(value))))));
  }
  showIgnores(job.ignores);
  if (changed("files", job.files)) {
    $("#no-files").hidden = job.files.length > 0;
    setText($("#files-total"), job.files.length ? size(job.files.reduce((sum, file) => sum + (file.bytes ?? 0), 0)) : "");
    $("#files").replaceChildren(...job.files.map((file) => el("tr", null,
      el("th", { scope: "row", class: "wrap mono" }, file.name), el("td", { class: "number" }, size(file.bytes)), el("td", null, file.sealed ? "sealed" : "being written"))));
  }
}

function showSettings() {
  for (const setting of SETTINGS) setText($(`[data-setting="${setting.name}"]`), settingText(setting, job));
  setText($("#note"), job.note);
  setText($('[data-f="pipeline"]'), job.pipeline || job.pipeline_id || "–");
  setText($('[data-f="step"]'), job.step || "–");
  setText($('[data-f="attempt"]'), `${number(job.attempt)}${job.resumed ? `, ${job.resumed}` : ""}`);
  setText($('[data-f="started_at"]'), moment(job.started_at));
  setText($('[data-f="finished_at"]'), moment(job.finished_at));
  for (const button of $$("[data-verb]")) {
    if (!button.closest("#job-verbs")) button.hidden = !mayOperate() || !VERBS[button.dataset.verb].states.includes(job.state);
  }
  $("#tester").hidden = !VERBS.ignore.states.includes(job.state); // nothing is left to ignore
  verbButtons($("#job-verbs"), job, ["pause", "resume", "abort", "expire"]);
}

function showJob(told) {
  if (told.ident !== ident) return;
  const before = job?.state;
  job = { ...job, ...told };
  showState($("#job [data-f=state]"), job.state);
  if (before && before !== job.state) setText($("#spoken"), `The job is now ${job.state}.`);
  for (const node of $$("[data-t]")) {
    const name = node.dataset.t;
    if (WORDED[name]) setText(node, WORDED[name](job[name]));
  }
  showClasses($(".responses"), job.responses);
  setText($("#why"), job.state === "paused" && Array.isArray(job.facts?.paused_by) ? `by ${job.facts.paused_by.join(", ")}` : "");
  if (changed("faults", job.faults)) {
    $("#faults").hidden = job.faults.length === 0;
    $("#fault-list").replaceChildren(...job.faults.map((fault) => el("li", null, fault)));
  }
  showSettings();
  showLists();
  showAge();
  const { ts } = job.history.at(-1) ?? {};
  if (ts && changed("history", ts)) redraw(`/jobs/${ident}/history`, "history").then((fresh) => { if (fresh) showSeries(); else delete drawn.history; }, () => { delete drawn.history; });
}

// The server draws a chart for each series; one is shown.
function showSeries() {
  for (const chart of $$("#history [data-series]")) chart.hidden = chart.dataset.series !== series;
  for (const button of $$("#chart-choice [data-series]")) button.setAttribute("aria-pressed", String(button.dataset.series === series));
  $("#chart-choice").hidden = !$("#history [data-series]");
}

export function start() {
  if (!ident) return;
  const log = new LogView();
  const { last } = $("#history").dataset;
  if (last) changed("history", Number(last));
  showSeries();
  $("#chart-choice").addEventListener("click", (event) => {
    const button = event.target.closest("[data-series]");
    if (!button) return;
    series = button.dataset.series;
    showSeries();
  });
  for (const button of $$("[data-verb]")) button.addEventListener("click", () => perform(button.dataset.verb, job));
  startTester(() => job);
  setInterval(showAge, 1000);
  key("f", "filter the log", () => $("#log-filter").focus());
  key("p", "pause the log, resume it", () => log.toggle());
  key("i", "new ignore pattern", () => $("#pattern").focus());
  key("x", "abort the job", () => $('#job-verbs [data-verb="abort"]')?.click());
  const stream = new Stream({
    hello: ({ time }) => serverTime(time), job: showJob, log: (told) => log.add(told), away: ({ detail }) => away(detail),
    overview: ({ totals }) => away(totals.redis.ok ? null : totals.redis.detail),
    ended: ({ state }) => setText($("#spoken"), `The job has ended: ${state}.`),
  });
  stream.open([ident]);
}
