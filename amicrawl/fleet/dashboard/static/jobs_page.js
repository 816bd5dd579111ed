// The page of all jobs: totals, rows, and the log of all jobs or of the selected one.
import { $, $$, el, setText } from "./dom.js";
import { number, rate, serverTime, size } from "./format.js";
import { Choice, ROWS } from "./job_choice.js";
import { JobRows } from "./job_rows.js";
import { key, step } from "./keys.js";
import { LogView } from "./log_view.js";
import { Stream, away } from "./stream.js";
import { verbButtons } from "./verbs.js";

const VERBS = ["pause", "resume", "ignore", "delay", "concurrency", "note", "abort"];
const WORDED = { items_per_s: rate, bytes_per_s: size, lines_per_s: rate };

let rows;
let choice;
let log;
let stream;
let chosen = "";
let listed = null;

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

const DENSE = 25; // rows from which each takes one line

// Fill the options of a select element; its selection is kept.
function offer(select, names) {
  const now = names.join("\n");
  if (select.dataset.now === now) return;
  select.dataset.now = now;
  const { value } = select;
  const wanted = value && !names.includes(value) ? [...names, value] : names;
  select.replaceChildren(select.firstElementChild, ...wanted.map((name) => el("option", { value: name }, name)));
  select.value = value;
}

function showChoice() {
  const all = [...rows.jobs.values()];
  const several = (value) => [...new Set(all.map(value))].filter(Boolean).sort();
  offer($("#job-by"), several((job) => job.started_by));
  offer($("#job-pipeline"), several((job) => job.pipeline || job.queue));
  const { order, first, pages } = rows;
  $("#no-jobs").hidden = all.length > 0;
  $("#none-chosen").hidden = all.length === 0 || order.length > 0;
  const range = pages > 1 ? `${number(first + 1)}–${number(Math.min(first + ROWS, order.length))} of ${number(order.length)}` : number(order.length);
  setText($("#job-range"), order.length === all.length ? `${range} jobs` : `${range} chosen of ${number(all.length)} jobs`);
  $("#page-before").hidden = choice.page < 2;
  $("#page-after").hidden = choice.page >= pages;
  $("#jobs-table").classList.toggle("dense", Math.min(order.length, ROWS) > DENSE);
}

// The user has changed the filter: apply it, and put it into the URL of the page.
function chooseAgain() {
  rows.sort();
  rows.draw();
  for (const link of $$("[data-sort]")) {
    const own = choice.sort.replace("-", "") === link.dataset.sort;
    if (own) link.parentElement.setAttribute("aria-sort", choice.sort.startsWith("-") ? "descending" : "ascending");
    else link.parentElement.removeAttribute("aria-sort");
  }
  showChoice();
  const query = choice.query();
  history.replaceState(null, "", query ? `?${query}` : "/");
}

function turn(by) {
  const page = Math.min(Math.max(choice.page + by, 1), rows.pages);
  if (page === choice.page) return;
  choice.page = page;
  chooseAgain();
  $("#jobs-scroll").scrollTop = 0;
}

function watchChoice() {
  const form = $("#job-filter");
  const changed = () => {
    for (const name of ["search", "state", "by", "pipeline"]) choice[name] = form.elements[name].value.trim();
    choice.page = 1;
    chooseAgain();
  };
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => { event.preventDefault(); document.activeElement.blur(); step(1); });
  $("#show-all").addEventListener("click", () => { form.reset(); for (const field of form.elements) if (field.name !== "sort") field.value = ""; changed(); $("#job-search").focus(); });
  for (const link of $$("[data-sort]")) {
    link.addEventListener("click", (event) => { event.preventDefault(); choice.byColumn(link.dataset.sort); chooseAgain(); });
  }
  for (const [id, by] of [["#page-before", -1], ["#page-after", 1]]) {
    $(id).addEventListener("click", (event) => { event.preventDefault(); turn(by); });
  }
}

const follow = () => stream.follow([chosen || "*"]);

function choose(ident) {
  chosen = ident;
  for (const row of $$("#jobs tr")) row.setAttribute("aria-selected", String(row.dataset.ident === ident));
  const job = rows.jobs.get(ident);
  $("#log-job").value = job && job.state !== "queued" ? ident : "";
  $("#log").toggleAttribute("data-many", !ident);
  setText($("#log-title"), job ? `Log of ${shortName(job.url)}` : "Log");
  verbButtons($("#job-verbs"), job, VERBS);
  log.only(ident);
  follow();
}

function overview(told) {
  const states = new Map([...rows.jobs.values()].map((job) => [job.ident, job.state]));
  rows.update(told);
  showTotals(told.totals);
  showChoice();
  if (chosen && !rows.jobs.has(chosen)) choose("");
  else if (chosen && !states.has(chosen)) choose(chosen);
  for (const job of told.jobs) {
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
  // Focusing a row by a click selects it; only a second click on the selected row deselects it.
  let before = "";
  body.addEventListener("pointerdown", () => { before = chosen; });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row && !event.target.closest("a, button")) choose(row.dataset.ident === before ? "" : row.dataset.ident);
  });
  body.addEventListener("focusin", (event) => {
    if (event.target.matches("tr")) choose(event.target.dataset.ident);
  });
  $("#log-job").addEventListener("change", (event) => choose(event.target.value));
}

export function start() {
  choice = new Choice(new URLSearchParams(location.search));
  rows = new JobRows($("#jobs"), choice);
  rows.drawn = () => { for (const row of $$("#jobs tr")) row.setAttribute("aria-selected", String(row.dataset.ident === chosen)); };
  log = new LogView({ names: (ident) => { const job = rows.jobs.get(ident); return job ? shortName(job.url) : ident.slice(0, 7); } });
  stream = new Stream({
    hello: ({ time }) => serverTime(time), overview, ended,
    log: (told) => log.add(told), away: ({ detail }) => away(detail),
  });
  watchRows();
  watchChoice();
  key("/", "search the jobs", () => $("#job-search").focus());
  key("[", "previous page of jobs", () => turn(-1));
  key("]", "next page of jobs", () => turn(1));
  key("a", "log of all jobs", () => choose(""));
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
  follow();
}
