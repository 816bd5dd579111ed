// Common to all pages: colour scheme switch, keyboard shortcuts, relative times; then the page's own module.
import { $, $$, setText } from "./dom.js";
import { ago } from "./format.js";
import { bind, showHelp } from "./keys.js";

const PAGES = {
  jobs: "./jobs_page.js", job: "./job_page.js", pending: "./pending_page.js", pipelines: "./pipelines_page.js",
  submit: "./submit_page.js", users: "./users_page.js", watch: "./watch_page.js",
};

function schemeSwitch() {
  const button = $("#scheme");
  const root = document.documentElement;
  const order = ["system", "light", "dark"];
  const show = () => {
    const name = root.dataset.theme ?? "system";
    button.setAttribute("aria-label", `Colours: ${name === "system" ? "as the system" : name}`);
    button.title = button.getAttribute("aria-label");
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(root.dataset.theme ?? "system") + 1) % order.length];
    if (next === "system") delete root.dataset.theme; else root.dataset.theme = next;
    try { localStorage.setItem("amicrawl-scheme", next); } catch { /* forgotten with the page, then */ }
    show();
  });
  show();
}

function growAges() {
  const tick = () => {
    for (const node of $$("[data-ago]")) if (node.dataset.ago) setText(node, ago(Number(node.dataset.ago)));
  };
  tick();
  setInterval(tick, 1000);
}

schemeSwitch();
growAges();
$("#help").hidden = false;
$("#help").addEventListener("click", showHelp);
bind();
const own = PAGES[document.body.dataset.page];
if (own) {
  const { start } = await import(own);
  start();
}
document.documentElement.dataset.ready = "";
