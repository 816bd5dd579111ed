// Actions on a job: the confirmation of each, and its request.
import { $, el, mayOperate } from "./dom.js";
import { settingValues } from "./format.js";
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
  abort: { word: "Abort", states: LIVE, danger: true, title: "Abort this job?", text: "It stops for good. What was fetched until then is kept and closed properly.", confirm: "Abort the job", done: "Abort requested" },
  expire: { word: "Forget", states: ["completed", "aborted", "failed"], danger: true, title: "Forget this record?", text: "The record leaves Redis now instead of after two days. The archive stays.", confirm: "Forget it", done: "Forgotten:" },
};

export const SETTINGS = JSON.parse($("#job-settings")?.textContent ?? "[]").filter((one) => one.isLive);

// What the dialog that changes *setting* asks for, checks and sends: all from its declaration.
function settingVerb({ name, title, word, fields }) {
  const isRange = fields.length > 1;
  const current = (job) => settingValues(job, name, fields);
  const value = ({ kind, words }, text) => (kind === "number" ? Number(text) : kind === "flag" ? text === words[0] : text);
  const control = (field, now) => {
    if (field.kind === "flag") return { options: field.words, value: field.words[now ? 0 : 1] };
    return field.kind === "number" ? { inputmode: "numeric", required: true, value: now ?? "" } : { maxlength: field.longest, value: now ?? "" };
  };
  const fault = (field, text) => (field.kind === "number" && (!whole(text) || Number(text) < field.least || Number(text) > field.most)
    ? `${field.label}: a whole number from ${field.least} to ${field.most}.` : "");
  return {
    word, title, states: LIVE, confirm: isRange ? `Set the ${name}` : "Set", done: `${title}, changed for`,
    fields: (job) => fields.map((field, place) => ({ name: field.argument, label: field.label, ...control(field, current(job)[place]) })),
    check: (given) => fields.map((field) => fault(field, given[field.argument])).find(Boolean)
      ?? (isRange && Number(given[fields[0].argument]) > Number(given[fields[1].argument]) ? "The least is greater than the greatest." : ""),
    body: (given) => Object.fromEntries(fields.map((field) => [field.argument, value(field, given[field.argument])])),
  };
}
for (const setting of SETTINGS) VERBS[setting.name] = settingVerb(setting);
export const SUBMITTED = SETTINGS.filter((one) => one.isSubmitted).map((one) => one.name);

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
