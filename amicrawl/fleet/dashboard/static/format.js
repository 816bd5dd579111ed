// Format numbers, sizes, rates and times as amicrawl/fleet/dashboard/wording.py does.
export const UNKNOWN = "–";
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const known = (value) => typeof value === "number" && Number.isFinite(value);

export const number = (value) => (known(value) ? whole.format(value) : UNKNOWN);
export const counted = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;

// At most four characters, for dense rows.
export function short(value) {
  for (const [step, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= 0.9995 * step) return `${(value / step).toFixed(value / step < 9.95 ? 1 : 0)}${unit}`;
  }
  return whole.format(value);
}

export function size(value) {
  if (!known(value)) return UNKNOWN;
  let left = value;
  for (const unit of UNITS) {
    if (Math.abs(left) < 999.5) return unit === "B" || left >= 99.95 ? `${left.toFixed(0)} ${unit}` : `${left.toFixed(1)} ${unit}`;
    left /= 1024;
  }
  return `${left.toFixed(1)} PiB`;
}

export const rate = (value) => (known(value) ? (value < 99.95 ? value.toFixed(1) : whole.format(value)) : UNKNOWN);
export const percent = (value) => (known(value) ? `${value.toFixed(0)} %` : UNKNOWN);

export function span(seconds) {
  if (!known(seconds)) return UNKNOWN;
  const all = Math.max(Math.floor(seconds), 0);
  const two = (value) => String(value).padStart(2, "0");
  if (all < 60) return `${all} s`;
  if (all < 3600) return `${Math.floor(all / 60)} min ${two(all % 60)} s`;
  if (all < 86400) return `${Math.floor(all / 3600)} h ${two(Math.floor((all % 3600) / 60))} min`;
  return `${Math.floor(all / 86400)} d ${two(Math.floor((all % 86400) / 3600))} h`;
}

// Ages are computed by the server's clock: the client's may be wrong.
let ahead = 0;
export const serverTime = (seconds) => { ahead = seconds - Date.now() / 1000; };
export const now = () => Date.now() / 1000 + ahead;
export const ago = (seconds) => (known(seconds) ? span(now() - seconds) : UNKNOWN);

export function moment(seconds) {
  if (!known(seconds) || seconds < 0 || seconds > 253402300799) return UNKNOWN;
  return new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
}
export const clock = (seconds) => (moment(seconds) === UNKNOWN ? "--:--:--" : moment(seconds).slice(11));

serverTime(Number(document.body.dataset.now) || Date.now() / 1000);

// The values of the fields of a setting, as far as *job* has them.
export const settingValues = (job, name, fields) => fields.map((field) => job.settings?.[field.name] ?? job[field.name] ?? job[name] ?? field.default);

// How a page shows the value of a setting; as `setting_value` in wording.py.
export function settingText({ name, fields }, job) {
  const [first, last = first] = settingValues(job, name, fields);
  const { kind, unit, words } = fields[0];
  if (kind === "flag") return words[first ? 0 : 1];
  if (kind === "line") return first || "–";
  return (first === last ? number(first) : `${number(first)} to ${number(last)}`) + (unit ? ` ${unit}` : "");
}
