// The form for a new job: basic checks here, all others on the server.
import { $, $$, el } from "./dom.js";
import { Refusal, post } from "./api.js";

const text = (form, name) => form.elements[name]?.value.trim() || null;
const whole = (form, name) => (text(form, name) === null ? null : Number(text(form, name)));

function body(form) {
  return {
    url: form.elements.url.value.trim(), shallow: form.elements.depth.value === "shallow", is_list: form.elements.is_list.checked,
    no_offsite_links: form.elements.no_offsite_links.checked, large: form.elements.large.checked,
    note: text(form, "note"), user_agent: text(form, "user_agent"), pipeline: text(form, "pipeline"), again: form.elements.again.checked,
    delay_min: whole(form, "delay_min"), delay_max: whole(form, "delay_max"), concurrency: whole(form, "concurrency"),
    ignore_sets: [...$$('[name="ignore_sets"]:checked', form)].map((box) => box.value),
    ignores: form.elements.ignores.value.split("\n").map((line) => line.trim()).filter(Boolean),
  };
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
    const fault = urlFault(asked.url);
    $("#url-fault").textContent = fault;
    $("#url-fault").hidden = fault === "";
    $("#url").setAttribute("aria-invalid", String(fault !== ""));
    if (fault) { $("#url").focus(); return; }
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
