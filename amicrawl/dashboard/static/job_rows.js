// The rows of the jobs: one for each live job, its slots changed in place.
import { $, $$, icon, safeLink, setText, svg } from "./dom.js";
import { ago, number, rate, short, size } from "./format.js";

const CLASSES = { r1xx: "1", r2xx: "2", r3xx: "3", r4xx: "4", r5xx: "5", runk: "k" };
const ORDER = { running: 0, aborting: 0, paused: 0, queued: 1 };
const POINTS = 60;

export function showState(badge, state) {
  if (badge.dataset.state === state) return;
  badge.dataset.state = state;
  badge.replaceChildren(icon(state), document.createElement("span"));
  badge.lastElementChild.textContent = state;
}

// A bar and its counts, within *holder*, from the responses of a job.
export function showClasses(holder, responses) {
  const total = Object.keys(CLASSES).reduce((sum, name) => sum + (responses[name] ?? 0), 0) || 1;
  const bar = $('[data-f="bar"]', holder);
  let begin = 0;
  for (const [name, mark] of Object.entries(CLASSES)) {
    const count = responses[name] ?? 0;
    let rect = $(`.f${mark}`, bar);
    if (!rect) { rect = svg("rect", { class: `f${mark}`, height: "100%" }); bar.append(rect); }
    rect.setAttribute("x", `${begin}%`);
    rect.setAttribute("width", `${(100 * count) / total}%`);
    begin += (100 * count) / total;
    const slot = $(`[data-f="r${mark}"]`, holder);
    if (slot) { setText(slot, short(count)); slot.parentElement.classList.toggle("zero", count === 0); }
  }
}

export function sparkPath(values) {
  if (values.length < 2) return "";
  const top = Math.max(...values, 0.1);
  const from = POINTS - values.length;
  return values.map((value, index) => `${index ? "L" : "M"}${((from + index) * 60) / (POINTS - 1)} ${(19 - (18 * value) / top).toFixed(1)}`).join("");
}

export class JobRows {
  constructor(body) {
    this.body = body;
    this.template = $("#job-row").content.firstElementChild;
    this.jobs = new Map();
    this.rates = new Map();
    setInterval(() => this.#age(), 1000);
  }

  update({ full, jobs, gone }) {
    if (full) {
      const live = new Set(jobs.map((job) => job.ident));
      for (const row of [...this.body.children]) if (!live.has(row.dataset.ident)) this.#remove(row.dataset.ident);
    }
    for (const ident of gone ?? []) this.#remove(ident);
    for (const job of jobs) this.jobs.set(job.ident, job);
    for (const job of jobs) this.#show(job);
    for (const [ident, job] of this.jobs) this.#course(ident, job);
    this.#arrange();
  }

  row(ident) { return $(`tr[data-ident="${CSS.escape(ident)}"]`, this.body); }

  // The job's own host needs no name in its row.
  #hosts(row, job) {
    const own = job.url.split("/")[2] ?? "";
    const busy = (job.hosts ?? []).filter((host) => host.in_flight).map(({ host, in_flight: count }) => (host === own ? `×${count}` : `${host} ×${count}`));
    const slot = $('[data-f="hosts"]', row);
    setText(slot, busy.join(", "));
    slot.title = busy.join("\n");
  }

  #remove(ident) {
    this.row(ident)?.remove();
    this.jobs.delete(ident);
    this.rates.delete(ident);
  }

  #show(job) {
    let row = this.row(job.ident);
    if (!row) {
      row = this.template.cloneNode(true);
      row.dataset.ident = job.ident;
      this.body.append(row);
    }
    const slot = (name) => $(`[data-f="${name}"]`, row);
    showState(slot("state"), job.state);
    setText(slot("url"), job.url);
    slot("url").setAttribute("href", `/jobs/${encodeURIComponent(job.ident)}`);
    setText(slot("pipeline"), job.pipeline || job.queue || "");
    setText(slot("note"), job.note);
    setText(slot("rate"), rate(job.items_per_s));
    setText(slot("todo"), number(job.todo));
    setText(slot("downloaded"), number(job.downloaded));
    setText(slot("bytes"), size(job.bytes));
    slot("age").dataset.since = job.started_at ?? job.queued_at ?? "";
    showClasses($(".answers", row), job.responses);
    this.#hosts(row, job);
    row.dataset.link = safeLink(job.link) ?? "";
  }

  #course(ident, job) {
    const values = this.rates.get(ident) ?? [];
    values.push(job.items_per_s ?? 0);
    if (values.length > POINTS) values.shift();
    this.rates.set(ident, values);
    $('[data-f="spark"] path', this.row(ident)).setAttribute("d", job.state === "queued" ? "" : sparkPath(values));
  }

  #arrange() {
    const since = (job) => job.started_at ?? job.queued_at ?? 0;
    const wanted = [...this.jobs.values()].sort((one, other) => (ORDER[one.state] ?? 0) - (ORDER[other.state] ?? 0) || since(one) - since(other) || (one.ident < other.ident ? -1 : 1));
    const here = [...this.body.children].map((row) => row.dataset.ident);
    if (wanted.every((job, index) => job.ident === here[index])) return;
    const focus = document.activeElement;
    for (const job of wanted) this.body.append(this.row(job.ident));
    if (this.body.contains(focus)) focus.focus({ preventScroll: true });
  }

  #age() {
    for (const node of $$('[data-f="age"]', this.body)) if (node.dataset.since) setText(node, ago(Number(node.dataset.since)));
  }
}
