// Filter and sort jobs by the rules of amicrawl/fleet/dashboard/job_choice.py. No DOM access.
export const ROWS = 100;

const since = (job) => job.started_at ?? job.queued_at ?? 0;
const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
const sum = (responses) => Object.values(responses).reduce((all, count) => all + count, 0);
const by = (value) => (one, other) => compare(value(one), value(other));

const ORDERS = {
  state: (one, other) => compare(one.state === "queued", other.state === "queued") || compare(one.place ?? Infinity, other.place ?? Infinity) || compare(since(one), since(other)),
  url: by((job) => job.url),
  responses: by((job) => -sum(job.responses)),
  ident: by((job) => job.ident),
  delay: by((job) => -(job.delay_max ?? 0)),
  concurrency: by((job) => -(job.concurrency ?? 0)),
  ignores: by((job) => -(job.patterns ?? 0)),
  errors: by((job) => -job.errors),
  rate: by((job) => -(job.items_per_s ?? 0)),
  queued: by((job) => -job.todo),
  fetched: by((job) => -job.downloaded),
  size: by((job) => -job.bytes),
  elapsed: by(since),
};
export const MOVES = new Set(["responses", "rate", "queued", "fetched", "size", "errors"]); // change with every reading

export class Choice {
  constructor(query) {
    for (const name of ["search", "state", "by", "pipeline"]) this[name] = query.get(name) ?? "";
    this.logs = (query.get("logs") ?? "").split(",").filter((ident) => /^[a-z0-9]{16,25}$/.test(ident)); // side by side
    const sort = query.get("sort") ?? "";
    this.sort = Object.hasOwn(ORDERS, sort.replace("-", "")) ? sort : "state";
    this.page = Math.max(Number.parseInt(query.get("page") ?? "1", 10) || 1, 1);
  }

  query() {
    const query = new URLSearchParams();
    for (const name of ["search", "state", "by", "pipeline"]) if (this[name]) query.set(name, this[name]);
    if (this.sort !== "state") query.set("sort", this.sort);
    if (this.page > 1) query.set("page", this.page);
    if (this.logs.length) query.set("logs", this.logs.join());
    return query.toString();
  }

  // Sort by that column; a second time, reverse the order.
  byColumn(name) { this.sort = this.sort === name ? `-${name}` : name; this.page = 1; }

  chosen(jobs) {
    const words = this.search.toLowerCase().split(/\s+/).filter(Boolean);
    const back = this.sort.startsWith("-") ? -1 : 1;
    const order = ORDERS[this.sort.replace("-", "")];
    return [...jobs].filter((job) => this.#has(job, words))
      .sort((one, other) => back * order(one, other) || compare(one.ident, other.ident));
  }

  #has(job, words) {
    if (this.state && job.state !== this.state) return false;
    if (this.by && job.started_by !== this.by) return false;
    if (this.pipeline && (job.pipeline || job.queue || "") !== this.pipeline) return false;
    if (!words.length) return true;
    const hosts = (job.hosts ?? []).map((one) => one.host);
    const text = [job.url, job.ident, job.note, job.started_by, job.pipeline, ...hosts].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  }
}
