// The form for a new job: basic checks here, all others on the server.
import { $, el } from "./dom.js";
import { Refusal, post } from "./api.js";

// What the form says, by the names of its fields; those of settings follow from their declaration.
function body(form) {
  const said = {};
  for (const input of form.elements) {
    const { name, type } = input;
    if (!name || input.disabled) continue;
    const text = input.value.trim();
    if (input.dataset.list !== undefined) said[name] = [...(said[name] ?? []), ...(input.checked ? [text] : [])];
    else if (input.dataset.lines !== undefined) said[name] = text.split("\n").map((line) => line.trim()).filter(Boolean);
    else if (type === "radio") said[name] = said[name] || (input.checked && text !== "");
    else if (type === "checkbox") said[name] = input.checked;
    else if (text !== "") said[name] = type === "number" ? Number(text) : text;
  }
  return said;
}

function blame(sentence, links = []) {
  $("#submit-fault").replaceChildren(...(sentence ? [el("div", { class: "message bad" }, sentence, ...links)] : []));
}

function urlFault(url) {
  if (!url) return "Which URL?";
  return /^(https?|ftp):\/\/\S+$/i.test(url) ? "" : "A URL begins with http://, https:// or ftp:// and has no spaces.";
}

export function start() {
  const form = $("#submit-form");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const asked = body(form);
    const fault = urlFault(asked.url ?? "");
    $("#url-fault").textContent = fault;
    $("#url-fault").hidden = fault === "";
    $("#url").setAttribute("aria-invalid", String(fault !== ""));
    if (fault) { $("#url").focus(); return; }
    // What is not a number has no value, and would be left out without a word.
    const unread = [...form.elements].find((input) => input.validity.badInput);
    if (unread) { blame(`${unread.labels[0].textContent}: this is not a number.`); unread.focus(); return; }
    const button = $('button[type="submit"]', form);
    button.disabled = true;
    blame("");
    try {
      const { ident } = await post("/jobs", asked);
      location.assign(`/jobs/${encodeURIComponent(ident)}`);
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      const known = refusal.problem.ident;
      const details = (refusal.problem.errors ?? []).map((one) => ` ${one.where}: ${one.what}`).join(";");
      blame(refusal.message + details, known ? [" ", el("a", { href: `/jobs/${encodeURIComponent(known)}` }, "Open it")] : []);
    } finally { button.disabled = false; }
  });
}
