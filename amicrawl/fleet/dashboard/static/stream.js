// The live connection: one EventSource, reopened when other jobs are to be followed.
import { read } from "./api.js";
import { $, setText } from "./dom.js";

const WORDS = { live: "live", wait: "connecting", lost: "not connected" };

// Show how the page stands with the dashboard: live, wait or lost.
export function show(state) {
  const link = $("#link");
  link.hidden = false;
  if (link.dataset.state === state) return;
  const before = link.dataset.state;
  link.dataset.state = state;
  setText(link, WORDS[state]);
  if (state === "lost") setText($("#spoken"), "The connection is lost; trying again.");
  else if (state === "live" && before === "lost") setText($("#spoken"), "Connected again.");
}

export class Stream {
  constructor(handlers) {
    this.handlers = handlers;
    this.jobs = null;
    this.source = null;
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", (event) => { if (event.persisted) this.open(this.jobs ?? []); });
  }

  follow(jobs) {
    const wanted = [...new Set(jobs)].sort();
    if (this.jobs && wanted.join() === this.jobs.join()) return;
    this.open(wanted);
  }

  open(jobs) {
    this.close();
    this.jobs = jobs;
    const query = jobs.length ? `?jobs=${jobs.map((one) => (one === "*" ? one : encodeURIComponent(one))).join(",")}&replay=200` : "";
    const source = new EventSource(`/api/v1/events${query}`);
    this.source = source;
    show("wait");
    source.addEventListener("open", () => show("live"));
    source.addEventListener("error", () => {
      show("lost");
      if (source.readyState !== EventSource.CLOSED) return;
      // The browser does not retry a refused connection. After the end of a session, this leads to signing in.
      read("/status").catch(() => {});
      this.again = setTimeout(() => this.open(this.jobs), 5000);
    });
    for (const [name, handle] of Object.entries(this.handlers)) {
      source.addEventListener(name, (event) => { if (source === this.source) handle(JSON.parse(event.data)); });
    }
  }

  close() {
    clearTimeout(this.again);
    this.source?.close();
    this.source = null;
  }
}

export function away(detail) {
  $("#away").hidden = detail === null;
  if (detail !== null) setText($("#away-detail"), detail);
}
