// Marked jobs, and actions on all of them: a preview says which, and which not; what it lists is what is changed.
import { $, el, setText } from "./dom.js";
import { Refusal, post, say } from "./api.js";
import { ask } from "./dialog.js";
import { counted, number } from "./format.js";
import { SUBMITTED, VERBS } from "./verbs.js";

const BULK = ["pause", "resume", "ignore", "ignore-set", ...SUBMITTED, "abort"];
const AT_ONCE = 4; // requests in flight
const jobsIn = (jobs) => counted(jobs.length, "job");

function preview(fit, others) {
  const list = (jobs) => el("ul", { class: "preview", tabindex: "0", "aria-label": jobsIn(jobs) }, ...jobs.map((job) => el("li", null, `${job.state}  ${job.url}`)));
  const out = others.length ? el("details", null, el("summary", null, `Not changed for their state: ${jobsIn(others)}`), list(others)) : null;
  return el("div", null, list(fit), out);
}

// Do *name* for each of *jobs* that allows it, once the preview is confirmed.
export async function performAll(name, jobs) {
  const verb = VERBS[name];
  const fit = jobs.filter((job) => verb.states.includes(job.state));
  if (!fit.length) { say(`${verb.word}: the state of the marked jobs does not allow it.`, "warn"); return; }
  const values = await ask({
    title: `${verb.word}: ${jobsIn(fit)}`, text: verb.text, content: preview(fit, jobs.filter((job) => !fit.includes(job))),
    fields: typeof verb.fields === "function" ? verb.fields(fit[0]) : [], confirm: `${verb.word}: ${jobsIn(fit)}`, danger: verb.danger, check: verb.check,
  });
  if (values === null) return;
  const left = [...fit];
  const refused = [];
  const work = async () => {
    for (let job = left.shift(); job; job = left.shift()) {
      try { await post(`/jobs/${encodeURIComponent(job.ident)}/${name}`, verb.body?.(values, job) ?? {}); }
      catch (fault) {
        if (!(fault instanceof Refusal)) throw fault;
        refused.push(`${job.url}: ${fault.message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  if (refused.length < fit.length) say(`${verb.done} ${number(fit.length - refused.length)} of ${jobsIn(fit)}`);
  if (refused.length) say(`Refused for ${number(refused.length)}, as ${refused[0]}`, "bad");
}

export class Marks {
  constructor(rows) {
    this.rows = rows;
    this.idents = new Set();
    this.last = "";
    rows.isMarked = (ident) => this.idents.has(ident);
    for (const name of BULK) {
      $("#bulk").append(el("button", { class: `button${VERBS[name].danger ? " danger" : ""}`, type: "button", "data-bulk": name, onclick: () => performAll(name, this.jobs) }, VERBS[name].word));
    }
    $("#bulk").append(el("button", { class: "button bare", type: "button", onclick: () => this.all(false) }, "Unmark"));
    $("#mark-all").addEventListener("change", (event) => this.all(event.target.checked));
    let range = false;
    rows.body.addEventListener("click", (event) => { range = event.shiftKey; }, true);
    rows.body.addEventListener("change", (event) => this.set(event.target.closest("tr").dataset.ident, event.target.checked, range));
  }

  get jobs() { return [...this.idents].map((ident) => this.rows.jobs.get(ident)); }

  // With *range*, all from the one that was marked last.
  set(ident, on, range = false) {
    const { order } = this.rows;
    const ends = [order.indexOf(range ? this.last : ident), order.indexOf(ident)].sort((one, other) => one - other);
    const some = ends[0] < 0 ? [ident] : order.slice(ends[0], ends[1] + 1);
    for (const each of some) if (on) this.idents.add(each); else this.idents.delete(each);
    this.last = ident;
    this.show();
  }

  all(on) {
    this.idents = new Set(on ? this.rows.order : []);
    this.show();
  }

  // Draw the marks, without those of jobs that are no longer there.
  show() {
    for (const ident of this.idents) if (!this.rows.jobs.has(ident)) this.idents.delete(ident);
    for (const [ident, row] of this.rows.rows) if (row.slots) row.slots.mark.checked = this.idents.has(ident);
    $("#bulk").hidden = this.idents.size === 0;
    const here = this.rows.order.filter((ident) => this.idents.has(ident)).length;
    const beyond = this.idents.size - here;
    setText($("#bulk-count"), `${number(this.idents.size)} marked${beyond ? `, ${number(beyond)} of them not listed` : ""}`);
    $("#mark-all").checked = here > 0 && here === this.rows.order.length;
    $("#mark-all").indeterminate = here > 0 && here < this.rows.order.length;
  }
}
