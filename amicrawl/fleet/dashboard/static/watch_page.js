// The page of one crawl: its figures are drawn by the server and fetched again every two seconds.
import { $, $$, setText } from "./dom.js";
import { say } from "./api.js";

const EVERY = 2000;

async function refresh() {
  let text;
  try {
    const response = await fetch("/live", { credentials: "same-origin" });
    if (!response.ok) throw new Error((await response.json()).detail);
    text = await response.text();
  } catch (error) {
    setText($("#away"), `Nothing new can be shown: ${error.message}`);
    $("#away").hidden = false;
    return;
  }
  $("#away").hidden = true;
  // Our own page, escaped by the server; the policy of the page keeps any script in it from running.
  const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("#live");
  const live = $("#live");
  const open = [...$$("details", live)].map((each) => each.open);
  const scrolled = [...$$(".scroll", live)].map((each) => [each.scrollTop, each.scrollLeft]);
  if (!fresh || live.contains(document.activeElement) && document.activeElement.closest("summary")) return;
  live.replaceWith(fresh);
  $$("details", fresh).forEach((each, place) => { each.open = open[place] ?? false; });
  $$(".scroll", fresh).forEach((each, place) => { [each.scrollTop, each.scrollLeft] = scrolled[place] ?? [0, 0]; });
  offer();
}

function offer() {
  const running = Boolean($("#live").dataset.running);
  $("#watch-verbs").hidden = !running;
  $("#steer").hidden = !running;
  const paused = $("#live").dataset.state === "paused";
  $('[data-verb="pause"]').hidden = paused;
  $('[data-verb="resume"]').hidden = !paused;
}

async function change(verb, value = "") {
  const response = await fetch("/control", {
    method: "POST", credentials: "same-origin", body: new URLSearchParams({ verb, value }),
    headers: { "X-CSRF-Token": $('meta[name="csrf-token"]').content },
  });
  if (response.ok) say(`${verb} ${value}: the crawl follows within a second.`);
  else say((await response.json()).detail, "bad");
}

export function start() {
  for (const button of $$("#watch-verbs [data-verb]")) {
    button.addEventListener("click", () => {
      const verb = button.dataset.verb;
      if (verb !== "stop" || confirm("Stop the crawl? What is in flight is finished; the same command resumes it.")) change(verb);
    });
  }
  $("#setting").addEventListener("submit", (event) => {
    event.preventDefault();
    change($("#verb").value, $("#value").value);
  });
  offer();
  setInterval(refresh, EVERY);
}
