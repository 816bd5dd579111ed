// Logs of some jobs side by side, each with a filter and a pause of its own, beside the log of all.
import { $, $$, el, setText } from "./dom.js";
import { LogView } from "./log_view.js";

export const MOST = 6;

export class LogPanes {
  constructor(holder, { name, changed }) {
    this.holder = holder;
    this.name = name;
    this.changed = changed;
    this.views = new Map();
    this.blank = $("#log-card").cloneNode(true);
    for (const node of $$("label, select, #log-beside", this.blank)) node.remove();
    for (const node of [this.blank, ...$$("*", this.blank)]) for (const given of ["id", "aria-labelledby", "aria-describedby", "data-many"]) node.removeAttribute(given);
  }

  get idents() { return [...this.views.keys()]; }

  add(ident) {
    if (this.views.has(ident) || this.views.size >= MOST) return;
    const root = this.blank.cloneNode(true);
    const close = el("button", { class: "button bare", type: "button", "data-close": ident, onclick: () => this.remove(ident) }, "Close");
    $("header", root).append(close);
    this.holder.append(root);
    const view = new LogView({ root });
    this.views.set(ident, { root, view });
    this.rename(ident);
    this.changed();
  }

  rename(ident) {
    const { root, view } = this.views.get(ident);
    const title = this.name(ident);
    if (view.part.title.textContent === title) return;
    setText(view.part.title, title);
    root.setAttribute("aria-label", `${title}: log beside the others`);
    view.list.setAttribute("aria-label", `Log lines of ${title}, newest last`);
    view.part.filter.setAttribute("aria-label", `Filter the log of ${this.name(ident)} by regular expression`);
    $("[data-close]", root).setAttribute("aria-label", `Close the log of ${this.name(ident)}`);
  }

  remove(ident) {
    this.views.get(ident)?.root.remove();
    this.views.delete(ident);
    this.changed();
  }

  log(told) { this.views.get(told.ident)?.view.add(told); }
}
