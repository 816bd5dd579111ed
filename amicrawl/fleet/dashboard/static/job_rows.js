// The rows of the job table: one for each job on the current page, updated in place.
import { MOVES, ROWS } from "./job_choice.js";
import { $, $$, icon, safeLink, setText, svg } from "./dom.js";
import { ago, number, rate, short, size } from "./format.js";

const CLASSES = { r1xx: "1", r2xx: "2", r3xx: "3", r4xx: "4", r5xx: "5", runk: "k" };
const POINTS = 60;

export function showState(badge, state) {
  if (badge.dataset.state === state) return;
  badge.dataset.state = state;
  badge.replaceChildren(icon(state), document.createElement("span"));
  badge.lastElementChild.textContent = state;
}

// Draw the bar and counts of a job's responses within *holder*.
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

const AT_ONCE = 15; // rows that are filled in one frame
const SORTED_EVERY = 5000; // ms between two orders by figures that change all the time: rows must not jump

// The rows of one page of the filtered jobs, of which only those near the viewport are in the DOM.
export class JobRows {
  constructor(body, choice) {
    this.body = body;
    this.choice = choice;
    this.template = $("#job-row").content.firstElementChild;
    this.jobs = new Map();
    this.rates = new Map();
    this.rows = new Map([...body.children].map((row) => [row.dataset.ident, row]));
    this.order = []; // idents of all chosen jobs
    this.stale = new Set(); // jobs whose rows have to be refilled
    this.isScheduled = false;
    this.isMarked = () => false;
    this.drawn = () => {}; // called when the page shows what was requested
    this.isMoving = false; // the focus that comes is the one that a moved row had
    this.sortedAt = 0;
    setInterval(() => this.#age(), 1000);
  }

  update({ full, jobs, gone }) {
    const before = this.jobs.size;
    let regrouped = full;
    if (full) {
      const live = new Set(jobs.map((job) => job.ident));
      for (const ident of [...this.jobs.keys()]) if (!live.has(ident)) this.#forget(ident);
    }
    for (const ident of gone ?? []) this.#forget(ident);
    for (const job of jobs) {
      const known = this.jobs.get(job.ident);
      regrouped ||= !known || known.state !== job.state || known.pipeline !== job.pipeline;
      this.jobs.set(job.ident, job);
    }
    for (const [ident, job] of this.jobs) this.#note(ident, job);
    const isDue = performance.now() - this.sortedAt > SORTED_EVERY && MOVES.has(this.choice.sort.replace("-", ""));
    if (regrouped || gone?.length || this.jobs.size !== before || isDue) this.sort();
    this.draw(jobs.map((job) => job.ident));
  }

  // Filter and sort again, as after a change of the filter.
  sort() {
    this.order = this.choice.chosen(this.jobs.values()).map((job) => job.ident);
    this.sortedAt = performance.now();
    this.choice.page = Math.min(this.choice.page, this.pages);
  }

  get pages() { return Math.max(Math.ceil(this.order.length / ROWS), 1); }
  get first() { return (this.choice.page - 1) * ROWS; }
  row(ident) { return this.rows.get(ident); }

  // Render the rows of this page over the next frames, and refill those of *changed* jobs.
  draw(changed = this.order) {
    for (const ident of changed) this.stale.add(ident);
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => { this.isScheduled = false; this.#draw(); });
  }

  #draw() {
    const shown = this.order.slice(this.first, this.first + ROWS);
    const wanted = new Set(shown);
    const focus = document.activeElement;
    const free = [];
    for (const [ident, row] of this.rows) {
      if (wanted.has(ident)) continue;
      this.rows.delete(ident);
      if (row.contains(focus)) row.remove(); else free.push(row);
    }
    let left = AT_ONCE;
    let index = 0;
    for (const ident of shown) {
      const known = this.rows.get(ident);
      const isStale = !known?.slots || this.stale.has(ident);
      if (isStale && (left -= 1) < 0) continue;
      const row = known ?? free.pop() ?? this.template.cloneNode(true);
      if (!known || !known.slots) this.#adopt(ident, row);
      if (this.body.children[index] !== row) this.body.insertBefore(row, this.body.children[index] ?? null);
      if (isStale) this.#fill(row, this.jobs.get(ident));
      this.stale.delete(ident);
      index += 1;
    }
    for (const row of free) row.remove();
    this.isMoving = true;
    if (focus !== document.activeElement && this.body.contains(focus)) focus.focus({ preventScroll: true });
    this.isMoving = false;
    if (left < 0) this.draw([]); else { this.stale.clear(); this.drawn(); }
  }

  #adopt(ident, row) {
    row.dataset.ident = ident;
    row.slots = Object.fromEntries([...$$("[data-f]", row)].map((slot) => [slot.dataset.f, slot]));
    row.slots.course = $("path", row.slots.spark);
    row.slots.responses = $(".responses", row);
    row.removeAttribute("aria-selected");
    this.rows.set(ident, row);
  }

  #forget(ident) {
    this.jobs.delete(ident);
    this.rates.delete(ident);
  }

  #fill(row, job) {
    const { slots } = row;
    slots.mark.checked = this.isMarked(job.ident);
    slots.mark.setAttribute("aria-label", `Mark ${job.url}`);
    showState(slots.state, job.state);
    setText(slots.ident, job.ident.slice(0, 7));
    setText(slots.delay, job.delay_min === job.delay_max ? number(job.delay_min) : `${number(job.delay_min)}–${number(job.delay_max)}`);
    setText(slots.concurrency, number(job.concurrency));
    setText(slots.patterns, number(job.patterns));
    setText(slots.errors, number(job.errors));
    slots.errors.classList.toggle("some", job.errors > 0);
    setText(slots.url, job.url);
    slots.url.title = job.url;
    slots.url.setAttribute("href", `/jobs/${encodeURIComponent(job.ident)}`);
    setText(slots.step, job.step);
    setText(slots.pipeline, job.pipeline || job.queue || "");
    setText(slots.by, job.started_by);
    setText(slots.note, job.note);
    slots.note.title = job.note;
    setText(slots.rate, rate(job.items_per_s));
    setText(slots.todo, number(job.todo));
    setText(slots.downloaded, number(job.downloaded));
    setText(slots.bytes, size(job.bytes));
    const since = job.started_at ?? job.queued_at;
    slots.age.dataset.since = since ?? "";
    setText(slots.age, ago(since));
    showClasses(slots.responses, job.responses);
    slots.course.setAttribute("d", job.state === "queued" ? "" : sparkPath(this.rates.get(job.ident)));
    this.#hosts(slots.hosts, job);
    row.dataset.link = safeLink(job.link) ?? "";
  }

  // The name of the job's own host is not repeated in its row.
  #hosts(slot, job) {
    const own = job.url.split("/")[2] ?? "";
    const busy = (job.hosts ?? []).filter((host) => host.in_flight).map(({ host, in_flight: count }) => (host === own ? `×${count}` : `${host} ×${count}`));
    setText(slot, busy.join(", "));
    slot.title = busy.join("\n");
  }

  #note(ident, job) {
    const values = this.rates.get(ident) ?? [];
    values.push(job.items_per_s ?? 0);
    if (values.length > POINTS) values.shift();
    this.rates.set(ident, values);
  }

  #age() {
    for (const { slots } of this.rows.values()) if (slots?.age.dataset.since) setText(slots.age, ago(Number(slots.age.dataset.since)));
  }
}
