// The history of a job as an SVG area chart; pointer or arrow keys select a point.
import { $, el, setText, svg } from "./dom.js";
import { clock, moment, number, size } from "./format.js";

const WIDTH = 1000;
const HEIGHT = 190;
const LEFT = 0;
const TOP = 16;
const BOTTOM = 22;

// The next round number at or above *value* whose half is round, too.
export function roundUp(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value);
}

// Pages a minute between two points; 0 where a crawl that started again has fewer pages than before.
function pace(before, point) {
  const minutes = before ? (point.ts - before.ts) / 60 : 0;
  return minutes > 0 ? Math.max(point.downloaded - before.downloaded, 0) / minutes : 0;
}

export class Chart {
  constructor(holder, reading) {
    this.holder = holder;
    this.reading = reading;
    this.key = "pace";
    this.points = [];
    this.at = null;
    this.width = 0;
    new ResizeObserver(() => { if (this.holder.clientWidth !== this.width) this.draw(); }).observe(holder);
  }

  show(points, key = this.key) {
    const same = key === this.key && points.length === this.points.length && points.at(-1)?.ts === this.points.at(-1)?.ts && this.drawn;
    this.points = points.map((point, index) => ({ ...point, pace: pace(points[index - 1], point) }));
    if (this.points.length > 1) this.points[0].pace = this.points[1].pace;
    this.key = key;
    if (!same) { this.draw(); this.tabulate(); }
  }

  // The figures for those who do not see the chart: at most 60 points.
  tabulate() {
    const every = Math.floor(this.points.length / 60) + 1;
    $("#history-rows").replaceChildren(...this.points.filter((_, index) => index % every === 0).map((point) => el("tr", null,
      el("th", { scope: "row" }, moment(point.ts)), ...[number(point.downloaded), size(point.bytes), number(point.todo), number(point.errors)].map((text) => el("td", { class: "number" }, text)))));
  }

  words(value) { return this.key === "bytes" ? size(value) : number(value); }

  x(ts) {
    const first = this.points[0].ts;
    const range = this.points.at(-1).ts - first || 1;
    return LEFT + ((ts - first) / range) * (this.width - LEFT);
  }

  draw() {
    this.width = this.holder.clientWidth || WIDTH;
    this.drawn = this.points.length > 1;
    if (!this.drawn) {
      this.holder.replaceChildren(el("p", { class: "empty" }, "Drawn once the crawl has run for a minute or two."));
      return;
    }
    const values = this.points.map((point) => point[this.key] ?? 0);
    const top = roundUp(Math.max(...values));
    const room = HEIGHT - TOP - BOTTOM;
    const y = (value) => TOP + room - (room * value) / top;
    const path = this.points.map((point, index) => `${index ? "L" : "M"}${this.x(point.ts).toFixed(1)} ${y(values[index]).toFixed(1)}`).join("");
    const chart = svg("svg", { class: "line-chart", viewBox: `0 0 ${this.width} ${HEIGHT}`, role: "img", tabindex: "0", "aria-label": this.label(values) });
    for (const part of [0, 0.5, 1]) {
      chart.append(svg("line", { class: "rule", x1: 0, x2: this.width, y1: y(top * part), y2: y(top * part) }));
      if (part) chart.append(svg("text", { x: 0, y: y(top * part) - 4 }, this.words(top * part)));
    }
    chart.append(svg("path", { class: "area", d: `${path}L${this.width} ${y(0)}L0 ${y(0)}Z` }), svg("path", { class: "stroke", d: path }));
    this.#times(chart);
    this.cursor = svg("line", { class: "cursor", y1: TOP, y2: TOP + room, visibility: "hidden" });
    chart.append(this.cursor);
    this.#listen(chart);
    this.holder.replaceChildren(chart);
  }

  label(values) {
    return `History of the crawl from ${clock(this.points[0].ts)} to ${clock(this.points.at(-1).ts)}: ${this.words(values[0])} to ${this.words(values.at(-1))}. Arrow keys read single points.`;
  }

  #times(chart) {
    const first = this.points[0].ts;
    const last = this.points.at(-1).ts;
    const count = this.width < 480 ? 2 : 4;
    // Below a minute from label to label they would be the same.
    const shown = (last - first) / count < 60 ? 8 : 5;
    for (let index = 0; index <= count; index += 1) {
      const ts = first + ((last - first) * index) / count;
      const anchor = index === 0 ? "start" : index === count ? "end" : "middle";
      chart.append(svg("text", { x: this.x(ts), y: HEIGHT - 5, "text-anchor": anchor }, clock(ts).slice(0, shown)));
    }
  }

  #listen(chart) {
    chart.addEventListener("pointermove", (event) => {
      const share = (event.clientX - chart.getBoundingClientRect().left) / chart.clientWidth;
      const ts = this.points[0].ts + share * (this.points.at(-1).ts - this.points[0].ts);
      let nearest = 0;
      this.points.forEach((point, index) => { if (Math.abs(point.ts - ts) < Math.abs(this.points[nearest].ts - ts)) nearest = index; });
      this.read(nearest);
    });
    chart.addEventListener("pointerleave", () => this.read(null));
    chart.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      this.read(Math.min(Math.max((this.at ?? (by > 0 ? -1 : this.points.length)) + by, 0), this.points.length - 1));
    });
  }

  read(index) {
    this.at = index;
    this.cursor.setAttribute("visibility", index === null ? "hidden" : "visible");
    if (index === null) { setText(this.reading, ""); return; }
    const point = this.points[index];
    for (const end of ["x1", "x2"]) this.cursor.setAttribute(end, this.x(point.ts));
    setText(this.reading, `${clock(point.ts)} · ${number(point.pace)} pages a minute · ${number(point.downloaded)} pages · ${size(point.bytes)} · ${number(point.todo)} queued · ${number(point.errors)} errors`);
  }
}
