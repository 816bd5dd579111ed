// Log entries as lines, a ring buffer of the last ones, and a filter. No DOM access.
import { safeLink } from "./dom.js";
import { clock } from "./format.js";

const LONGEST = 2000;
const cut = (text) => { const all = String(text ?? ""); return all.length > LONGEST ? `${all.slice(0, LONGEST)}…` : all; };

// Line ends and other controls would break the one-line rows; bidirectional marks would reorder them.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
const plain = (text) => cut(text).replace(CONTROLS, (mark) => (mark === "\n" ? " ⏎ " : mark === "\t" ? " " : "·"));

export function lineOf(ident, entry) {
  const line = { ident, score: Number(entry.score), at: Number(entry.ts), time: clock(entry.ts), kind: "stdout", code: "log", text: "", link: null, more: "" };
  if (entry.type === "download") {
    const status = Number(entry.response_code) || 0;
    line.kind = entry.is_error ? "error" : entry.is_warning ? "warning" : status >= 300 && status < 400 ? "redirect" : "ok";
    line.code = status ? String(status) : "–";
    line.text = plain(entry.url);
    line.link = safeLink(entry.link);
    line.more = entry.wget_code && entry.wget_code !== "OK" ? plain(entry.wget_code) : "";
  } else if (entry.type === "ignore") {
    Object.assign(line, { kind: "ignore", code: "ign", text: plain(entry.url), link: safeLink(entry.link), more: plain(entry.pattern) });
  } else {
    line.text = plain(entry.message).replace(/ ⏎ $/, "");
  }
  return line;
}


export class Ring {
  constructor(room) {
    this.room = room;
    this.lines = new Array(room);
    this.next = 0;
    this.size = 0;
  }

  push(line) {
    this.lines[this.next] = line;
    this.next = (this.next + 1) % this.room;
    if (this.size < this.room) this.size += 1;
  }

  clear() { this.lines.fill(undefined); this.next = 0; this.size = 0; }

  // Put the last *lines* of a job behind those it has here, or in place of those of another log, and all
  // between the lines of the others by their times. Return those that are new, and how many are missing before.
  join(ident, lines) {
    const all = [...this];
    const own = all.filter((line) => line.ident === ident);
    const others = all.filter((line) => line.ident !== ident);
    const last = own.at(-1)?.score ?? 0;
    const isSame = lines.length > 0 && last <= lines.at(-1).score; // the numbers of another log begin again
    const fresh = isSame ? lines.filter((line) => line.score > last) : lines;
    this.clear();
    let next = 0;
    for (const line of isSame ? [...own, ...fresh] : fresh) {
      while (next < others.length && others[next].at <= line.at) this.push(others[next++]);
      this.push(line);
    }
    for (const line of others.slice(next)) this.push(line);
    return { fresh, missing: isSame && last > 0 && fresh.length > 0 ? fresh[0].score - last - 1 : 0 };
  }

  * [Symbol.iterator]() {
    const first = (this.next - this.size + this.room) % this.room;
    for (let index = 0; index < this.size; index += 1) yield this.lines[(first + index) % this.room];
  }

  // The last *most* lines that match, oldest first; scans no further back than needed.
  last(most, passes) {
    const found = [];
    for (let back = 1; back <= this.size && found.length < most; back += 1) {
      const line = this.lines[(this.next - back + this.room) % this.room];
      if (passes(line)) found.push(line);
    }
    return found.reverse();
  }
}

export class Filter {
  constructor() { this.job = ""; this.hidden = new Set(); this.pattern = null; }

  // Return the error in the pattern *text*, or "".
  search(text) {
    if (!text) { this.pattern = null; return ""; }
    try { this.pattern = new RegExp(text, "i"); return ""; }
    catch (fault) { return fault.message; }
  }

  passes = (line) => {
    if (this.job && line.ident !== this.job) return false;
    const kind = line.kind === "ok" || line.kind === "redirect" ? "fine" : line.kind;
    if (this.hidden.has(kind)) return false;
    return !this.pattern || this.pattern.test(line.text) || (line.more !== "" && this.pattern.test(line.more));
  };
}
