// Actions on a job: the confirmation of each, and its request.
import { $, el, mayOperate } from "./dom.js";
import { Refusal, post, say } from "./api.js";
import { ask } from "./dialog.js";

const LIVE = ["queued", "running", "paused"];
const whole = (text) => /^\d+$/.test(text.trim()) && Number.isSafeInteger(Number(text));

export const VERBS = {
  pause: { word: "Pause", states: ["running"], atOnce: true, done: "Paused" },
  resume: { word: "Resume", states: ["paused"], atOnce: true, done: "Resumed" },
  ignore: {
    word: "Ignore", states: LIVE, title: "Ignore URLs", text: "URLs in which the pattern is found are not fetched; queued ones are dropped.",
    fields: () => [{ name: "pattern", label: "Pattern (regular expression)", class: "mono", required: true, maxlength: 2000 }],
    body: ({ pattern }) => ({ pattern }), confirm: "Ignore", done: "Pattern added to",
  },
  unignore: { word: "Remove", states: LIVE, title: "Remove this pattern?", text: "URLs that were dropped for it do not come back by themselves.", body: ({ pattern }) => ({ pattern }), confirm: "Remove", done: "Pattern removed from" },
  "ignore-set": {
    word: "Add a set", states: LIVE, title: "Add a set of patterns",
    fields: () => [{ name: "name", label: "Set", ...(($("#ignore-sets")?.children.length) ? { options: [...$("#ignore-sets").children].map((one) => one.value) } : { required: true }) }],
    body: ({ name }) => ({ name }), confirm: "Add", done: "Set added to",
  },
  delay: {
    word: "Delay", states: LIVE, title: "Delay between two requests",
    fields: (job) => [{ name: "min", label: "Least, in ms", inputmode: "numeric", value: job.delay_min ?? 250, required: true },
      { name: "max", label: "Greatest, in ms", inputmode: "numeric", value: job.delay_max ?? 375, required: true }],
    check: ({ min, max }) => (!whole(min) || !whole(max) ? "Both are whole numbers of milliseconds." : Number(min) > Number(max) ? "The least delay is greater than the greatest." : ""),
    body: ({ min, max }) => ({ min: Number(min), max: Number(max) }), confirm: "Set the delay", done: "Delay changed for",
  },
  concurrency: {
    word: "Concurrency", states: LIVE, title: "Concurrent requests",
    fields: (job) => [{ name: "workers", label: "Concurrent requests", type: "number", min: 1, max: 99, value: job.concurrency ?? 3, required: true }],
    check: ({ workers }) => (!whole(workers) || Number(workers) < 1 ? "A whole number of at least 1." : ""),
    body: ({ workers }) => ({ workers: Number(workers) }), confirm: "Set", done: "Concurrency changed for",
  },
  note: { word: "Note", states: [...LIVE, "aborting"], title: "Note", fields: (job) => [{ name: "note", label: "Note", value: job.note ?? "", maxlength: 1000 }], body: ({ note }) => ({ note }), confirm: "Save", done: "Note saved for" },
  reports: {
    word: "Ignore reports", states: LIVE, title: (job) => (job.reports ? "Leave ignored URLs out of the log?" : "Show ignored URLs in the log?"),
    body: (_, job) => ({ on: !job.reports }), confirm: (job) => (job.reports ? "Leave out" : "Show"), done: "Reports changed for",
  },
  abort: { word: "Abort", states: LIVE, danger: true, title: "Abort this job?", text: "It stops for good. What was fetched until then is kept and closed properly.", confirm: "Abort the job", done: "Abort asked for" },
  expire: { word: "Forget", states: ["completed", "aborted", "failed"], danger: true, title: "Forget this record?", text: "The record leaves Redis now instead of after two days. The archive stays.", confirm: "Forget it", done: "Forgotten:" },
};

const from = (value, job) => (typeof value === "function" ? value(job) : value);

export async function perform(name, job, given = null) {
  const verb = VERBS[name];
  const values = verb.atOnce ? {} : await ask({
    title: from(verb.title, job), text: verb.text, target: given?.pattern ? `${given.pattern}` : job.url,
    fields: given ? [] : from(verb.fields, job) ?? [], confirm: from(verb.confirm, job), danger: verb.danger, check: verb.check,
  });
  if (values === null) return false;
  try {
    const done = await post(`/jobs/${encodeURIComponent(job.ident)}/${name}`, verb.body?.(given ?? values, job) ?? {});
    say(`${verb.done} ${job.url}`);
    for (const warning of done.warnings ?? []) say(warning, "warn");
    return true;
  } catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
    say(fault.message, "bad");
    return false;
  }
}

// The buttons of the actions that *job* allows now; reused while unchanged, to keep the focus.
export function verbButtons(holder, job, names) {
  const allowed = job && mayOperate() ? names.filter((name) => VERBS[name].states.includes(job.state)) : [];
  const now = `${job?.ident}:${allowed.join()}`;
  holder.hidden = allowed.length === 0;
  holder.job = job;
  if (holder.dataset.now === now) return;
  holder.dataset.now = now;
  holder.replaceChildren(...allowed.map((name) => el("button", {
    class: `button${VERBS[name].danger ? " danger" : ""}`, type: "button", "data-verb": name, onclick: () => perform(name, holder.job),
  }, VERBS[name].word)));
}
