// The page of all jobs: totals, rows, and the log of all jobs or of the selected one.
import { $, $$, el, mayOperate, setText } from "./dom.js";
import { number, rate, serverTime, size } from "./format.js";
import { Choice } from "./job_choice.js";
import { startFilter } from "./job_filter.js";
import { JobRows } from "./job_rows.js";
import { key } from "./keys.js";
import { LogPanes, MOST } from "./log_panes.js";
import { LogView } from "./log_view.js";
import { Marks } from "./marks.js";
import { Stream, away } from "./stream.js";
import { SUBMITTED, verbButtons } from "./verbs.js";

const VERBS = ["pause", "resume", "ignore", ...SUBMITTED, "abort"];
const WORDED = { items_per_s: rate, bytes_per_s: size, lines_per_s: rate };

let rows;
let choice;
let log;
let panes;
let marks;
let filter;
let stream;
let chosen = "";
let listed = null;
const names = new Map(); // of every job that was here: lines of one that has ended keep its name

const shortName = (url) => url.replace(/^https?:\/\/(www\.)?/i, "").replace(/\/$/, "").slice(0, 60);

function showTotals(totals) {
  for (const node of $$("#totals [data-t]")) setText(node, (WORDED[node.dataset.t] ?? number)(totals[node.dataset.t]));
  away(totals.redis.ok ? null : totals.redis.detail);
  const title = totals.running ? `${totals.running} running` : "Jobs";
  if (document.title !== `${title} · amicrawl`) document.title = `${title} · amicrawl`;
}

function live() { return [...rows.jobs.values()].filter((job) => job.state !== "queued"); }

function listJobs() {
  const jobs = live();
  const now = jobs.map((job) => job.ident).join();
  if (now === listed) return;
  listed = now;
  const select = $("#log-job");
  select.replaceChildren(el("option", { value: "" }, "All running jobs"), ...jobs.map((job) => el("option", { value: job.ident }, shortName(job.url))));
  select.value = jobs.some((job) => job.ident === chosen) ? chosen : "";
}

const follow = () => stream.follow([chosen || "*", ...panes.idents]);

function offerBeside() {
  const job = rows.jobs.get(chosen);
  $("#log-beside").hidden = !job || job.state === "queued" || panes.idents.includes(chosen) || panes.idents.length >= MOST;
}

function arranged() {
  choice.logs = panes.idents;
  filter.keepUrl();
  offerBeside();
  follow();
}

function choose(ident) {
  chosen = ident;
  for (const row of $$("#jobs tr")) row.setAttribute("aria-selected", String(row.dataset.ident === ident));
  const job = rows.jobs.get(ident);
  $("#log-job").value = job && job.state !== "queued" ? ident : "";
  $("#log").toggleAttribute("data-many", !ident);
  setText($("#log-title"), job ? `Log of ${shortName(job.url)}` : "Log");
  verbButtons($("#job-verbs"), job, VERBS);
  log.only(ident);
  offerBeside();
  follow();
}

function overview(told) {
  const states = new Map([...rows.jobs.values()].map((job) => [job.ident, job.state]));
  rows.update(told);
  showTotals(told.totals);
  filter.show();
  marks.show();
  for (const ident of panes.idents) panes.rename(ident);
  if (chosen && !rows.jobs.has(chosen)) choose("");
  else if (chosen && !states.has(chosen)) choose(chosen);
  for (const job of told.jobs) {
    names.set(job.ident, shortName(job.url));
    const before = states.get(job.ident);
    if (before && before !== job.state) setText($("#spoken"), `${shortName(job.url)}: ${job.state}`);
  }
  listJobs();
  verbButtons($("#job-verbs"), rows.jobs.get(chosen), VERBS);
  follow();
}

function ended({ ident, state }) {
  const job = rows.jobs.get(ident);
  if (job) setText($("#spoken"), `${shortName(job.url)}: ${state}`);
}

function watchRows() {
  const body = $("#jobs");
  // A click selects a row, a second one on the selected row deselects it; by keys, the row with the focus is selected.
  let before = "";
  body.addEventListener("pointerdown", () => { before = chosen; });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row && !event.target.closest("a, button, .mark")) choose(row.dataset.ident === before ? "" : row.dataset.ident);
  });
  body.addEventListener("focusin", (event) => {
    // Not the focus of a click that comes back with its window: the job may have been deselected since.
    if (event.target.matches("tr:focus-visible") && !rows.isMoving) choose(event.target.dataset.ident);
  });
  $("#log-job").addEventListener("change", (event) => choose(event.target.value));
}

export function start() {
  choice = new Choice(new URLSearchParams(location.search));
  rows = new JobRows($("#jobs"), choice);
  rows.drawn = () => { for (const row of $$("#jobs tr")) row.setAttribute("aria-selected", String(row.dataset.ident === chosen)); };
  const name = (ident) => names.get(ident) ?? ident.slice(0, 7);
  marks = new Marks(rows);
  filter = startFilter(rows, choice, () => marks.show());
  panes = new LogPanes($("#logs"), { name, changed: arranged });
  stream = new Stream({
    hello: ({ time }) => serverTime(time), overview, ended,
    log: (told) => { if (!chosen || told.ident === chosen) log.add(told); panes.log(told); }, away: ({ detail }) => away(detail),
  });
  log = new LogView({ names: name });
  watchRows();
  $("#log-beside").addEventListener("click", () => panes.add(chosen));
  key("/", "search the jobs", () => $("#job-search").focus());
  key("[", "previous page of jobs", () => filter.turn(-1));
  key("]", "next page of jobs", () => filter.turn(1));
  key("a", "log of all jobs", () => choose(""));
  key("l", "log of the chosen job beside the others", () => { if (!$("#log-beside").hidden) panes.add(chosen); });
  key("m", "mark the chosen job, unmark it", () => { if (chosen && mayOperate()) marks.set(chosen, !marks.idents.has(chosen)); });
  key("Shift+M", "mark all listed jobs, or none", () => { if (mayOperate()) marks.all(marks.idents.size === 0); });
  key("f", "filter the log", () => $("#log-filter").focus());
  key("p", "pause the log, resume it", () => log.toggle());
  key("v", "open the chosen job's URL", () => {
    const link = rows.row(chosen)?.dataset.link;
    if (link) open(link, "_blank", "noopener,noreferrer");
  });
  for (const [name, verb, words] of [["i", "ignore", "ignore URLs of the chosen job"], ["x", "abort", "abort the chosen job"]]) {
    key(name, words, () => $(`#job-verbs [data-verb="${verb}"]`)?.click());
  }
  key("s", "submit a job", () => location.assign("/submit"));
  const focused = document.activeElement.closest?.("#jobs tr");
  if (focused) chosen = focused.dataset.ident; // chosen while the page was still loading
  for (const ident of choice.logs) panes.add(ident);
  follow();
}
