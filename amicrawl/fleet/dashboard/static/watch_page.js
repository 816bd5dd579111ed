// The page of one crawl: its figures are drawn by the server and fetched again every two seconds.
import { $, $$, every, setText } from "./dom.js";
import { say } from "./api.js";
import { redraw } from "./redraw.js";

const EVERY = 2000;

async function refresh() {
  try {
    if (await redraw("/live", "live")) offer();
    $("#away").hidden = true;
  } catch (error) {
    setText($("#away"), `Nothing new can be shown: ${error.message}`);
    $("#away").hidden = false;
  }
}

function offer() {
  const running = Boolean($("#live").dataset.running);
  $("#watch-verbs").hidden = !running;
  $("#steer").hidden = !running;
  setText($("#in-force"), $("#live").dataset.inForce);
  const paused = $("#live").dataset.state === "paused";
  $('[data-verb="pause"]').hidden = paused;
  $('[data-verb="resume"]').hidden = !paused;
}

async function change(verb, value = "") {
  try {
    const response = await fetch("/control", {
      method: "POST", credentials: "same-origin", body: new URLSearchParams({ verb, value }),
      headers: { "X-CSRF-Token": $('meta[name="csrf-token"]').content },
    });
    if (response.ok) say(`${verb} ${value}: the crawl follows within a second.`);
    else say((await response.json()).detail, "bad");
  } catch (error) { say(`It may not have been changed: ${error.message}`, "bad"); }
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
  every(EVERY, refresh);
}
