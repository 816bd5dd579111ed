// Test a new ignore pattern against the latest URLs of the job before it is added.
import { $, el, mayOperate, setText } from "./dom.js";
import { Refusal, post } from "./api.js";
import { counted, number } from "./format.js";
import { perform } from "./verbs.js";

function show(result) {
  const output = $("#tested");
  output.classList.toggle("bad", !result.valid);
  const words = result.valid ? `Found in ${number(result.matched)} of the last ${counted(result.tested, "URL")}${result.matched ? ":" : "."}` : `Not a pattern: ${result.why}`;
  setText(output, words);
  $("#matches").hidden = !(result.urls ?? []).length;
  $("#matches").replaceChildren(...(result.urls ?? []).map((url) => el("li", null, url)));
}

async function tryPattern(job, pattern) {
  if (!pattern) {
    $("#matches").hidden = true;
    setText($("#tested"), "");
    return;
  }
  let result;
  try { result = await post(`/jobs/${encodeURIComponent(job.ident)}/test-pattern`, { pattern }); }
  catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
    result = { valid: false, why: fault.message };
  }
  // The pattern may be another one by now, or have been added.
  if ($("#pattern").value === pattern) show(result);
}

export function startTester(current) {
  const form = $("#tester");
  const input = $("#pattern");
  $("[data-needs-operate]", form).hidden = !mayOperate();
  let soon = null;
  const later = () => { clearTimeout(soon); soon = setTimeout(() => { if (current()) tryPattern(current(), input.value); }, 400); };
  input.addEventListener("input", later);
  $("#try-pattern").addEventListener("click", () => { if (current()) tryPattern(current(), input.value); });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!current() || !input.value || !mayOperate()) return;
    if (await perform("ignore", current(), { pattern: input.value })) {
      clearTimeout(soon);
      input.value = "";
      $("#matches").hidden = true;
      setText($("#tested"), "Added. The crawl follows within a second or two.");
    }
  });
}
