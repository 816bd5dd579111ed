// The log view: a bounded window over a ring buffer of lines, redrawn a few times a second.
import { $, $$, el, setText } from "./dom.js";
import { counted, number } from "./format.js";
import { Filter, Ring, lineOf } from "./log_lines.js";

const KEPT = 5000; // lines behind the window, for a filter to look through
const SHOWN = 400; // lines on the page while it is held, to scroll back through
const MOVING = 60; // lines on the page while they run past: as many as the tallest log shows
const PAUSE = 120; // ms between two drawings, at least

function row() {
  const item = el("li", null, el("time"), el("span", { class: "job" }), el("span", { class: "code" }),
    el("span", null, el("a", { rel: "noopener noreferrer", target: "_blank" }), " ", el("span", { class: "more" })));
  return item;
}

export class LogView {
  constructor({ names = () => "", root = $("#log-card") } = {}) {
    this.part = Object.fromEntries([...$$("[data-log]", root)].map((node) => [node.dataset.log, node]));
    this.list = this.part.list;
    this.ring = new Ring(KEPT);
    this.filter = new Filter();
    this.names = names;
    this.held = new Set(); // why nothing moves: "pointer", "focus", "key", "scroll"
    this.arrived = 0; // lines the filter lets through that came since the last drawing
    this.dropped = 0;
    this.stale = true; // the whole window has to be drawn again
    this.joined = false; // the same, once it moves: new lines are not only at the end
    this.drawn = 0;
    this.cost = 0;
    this.isScheduled = false;
    this.opened = null; // the line that is shown in full
    this.list.replaceChildren();
    this.#controls();
    this.#holds();
  }

  add({ ident, reset, dropped, entries }) {
    let lines = entries.map((entry) => lineOf(ident, entry));
    let missing = dropped || 0;
    if (reset) {
      const joined = this.ring.join(ident, lines);
      lines = joined.fresh;
      missing += joined.missing;
      this.joined = true;
    } else for (const line of lines) this.ring.push(line);
    this.dropped += missing;
    this.arrived += lines.filter(this.filter.passes).length;
    this.schedule();
  }

  only(ident) { this.filter.job = ident; this.again(); }
  again() { this.stale = true; this.schedule(); }

  schedule() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    // A slow machine draws less often rather than nothing else: a quarter of its time at most.
    const wait = Math.max(PAUSE - (performance.now() - this.drawn), 3 * this.cost, 0);
    setTimeout(() => requestAnimationFrame(() => { this.isScheduled = false; this.draw(); }), wait);
  }

  draw() {
    const begin = performance.now();
    const moving = this.held.size === 0;
    if (this.joined && moving) this.stale = true;
    if (this.stale) this.#fillAll(moving ? MOVING : SHOWN);
    else if (moving && this.arrived) this.#append(this.ring.last(Math.min(this.arrived, MOVING), this.filter.passes));
    if (moving || this.stale) {
      this.stale = false;
      this.joined = false;
      this.arrived = 0;
      this.list.scrollTop = this.list.scrollHeight;
    }
    this.#tell();
    this.drawn = performance.now();
    this.cost = this.drawn - begin;
  }

  hold(why, on) {
    if (on === this.held.has(why)) return;
    const moved = this.held.size === 0;
    if (on) this.held.add(why); else this.held.delete(why);
    if (moved) this.#lengthen();
    setText($("span", this.part.pause), this.held.has("key") ? "Resume" : "Pause");
    this.part.pause.setAttribute("aria-pressed", String(this.held.has("key")));
    this.schedule();
  }

  toggle() { this.hold("key", !this.held.has("key")); }

  // Keep the scroll position: older lines are inserted above.
  #lengthen() {
    const below = this.list.scrollHeight - this.list.scrollTop;
    const lines = this.ring.last(SHOWN + this.arrived, this.filter.passes);
    this.#show(this.arrived ? lines.slice(0, -this.arrived) : lines);
    this.list.scrollTop = this.list.scrollHeight - below;
  }

  #fillAll(most) { this.#show(this.ring.last(most, this.filter.passes)); }

  #show(lines) {
    while (this.list.childElementCount > lines.length) this.list.lastElementChild.remove();
    lines.forEach((line, index) => this.#fill(this.list.children[index] ?? this.list.appendChild(row()), line));
    // A filter or a new connection may have taken the open line away, which no click could close then.
    if (this.opened && !lines.includes(this.opened)) {
      this.opened = null;
      this.hold("open", false);
    }
  }

  #append(lines) {
    const fresh = document.createDocumentFragment();
    for (const line of lines) {
      const reused = this.list.childElementCount + fresh.childElementCount >= MOVING ? this.list.firstElementChild : null;
      const item = reused ?? row();
      this.#fill(item, line);
      fresh.append(item);
    }
    this.list.append(fresh);
    while (this.list.childElementCount > MOVING) this.list.firstElementChild.remove();
  }

  #fill(item, line) {
    const [time, job, code, rest] = item.children;
    const [link, more] = rest.children;
    item.dataset.kind = line.kind;
    item.classList.toggle("open", line === this.opened);
    item.line = line;
    time.textContent = line.time;
    job.textContent = this.names(line.ident);
    code.textContent = line.code;
    link.textContent = line.text;
    if (line.link) link.setAttribute("href", line.link); else link.removeAttribute("href");
    more.textContent = line.more;
  }

  #tell() {
    const words = { pointer: "pointer over the log", focus: "log in focus", key: "by key", scroll: "scrolled back", open: "a line is open" };
    const { held } = this.part;
    held.hidden = this.held.size === 0;
    if (this.held.size) setText(held, `Paused: ${words[[...this.held][0]]}${this.arrived ? `, ${number(this.arrived)} new` : ""}`);
    const skipped = this.dropped ? ` · ${number(this.dropped)} skipped` : "";
    setText(this.part.count, `${counted(this.ring.size, "line")} kept${skipped}`);
  }

  #holds() {
    const list = this.list;
    // A click or tap on a truncated line expands it; the next one collapses it.
    list.addEventListener("click", (event) => {
      const item = event.target.closest("li");
      if (!item || event.target.closest("a[href]") || getSelection().toString()) return;
      for (const other of $$(".open", list)) if (other !== item) other.classList.remove("open");
      this.opened = item.classList.toggle("open") ? item.line : null;
      this.hold("open", this.opened !== null);
    });
    list.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") this.hold("pointer", true); });
    list.addEventListener("pointerleave", () => this.hold("pointer", false));
    list.addEventListener("focusin", () => this.hold("focus", list.matches(":focus-visible, :has(:focus-visible)")));
    list.addEventListener("focusout", () => this.hold("focus", false));
    list.addEventListener("scroll", () => {
      this.hold("scroll", list.scrollTop + list.clientHeight < list.scrollHeight - 30);
    }, { passive: true });
  }

  #controls() {
    const { tools, pause, filter, fault: shown } = this.part;
    tools.hidden = false;
    pause.addEventListener("click", () => this.toggle());
    filter.addEventListener("input", (event) => {
      const fault = this.filter.search(event.target.value);
      event.target.setAttribute("aria-invalid", String(fault !== ""));
      shown.hidden = fault === "";
      setText(shown, fault);
      if (!fault) this.again();
    });
    for (const button of $$("[data-kind]", tools)) {
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        if (on) this.filter.hidden.delete(button.dataset.kind); else this.filter.hidden.add(button.dataset.kind);
        this.again();
      });
    }
  }
}
