// The form that chooses which jobs are listed, their order, and the pages of the list.
import { $, $$, el, setText } from "./dom.js";
import { counted, number } from "./format.js";
import { ROWS } from "./job_choice.js";
import { step } from "./keys.js";

const DENSE = 25; // rows from which each takes one line

// Fill the options of a select element; its selection is kept.
function offer(select, names) {
  const now = names.join("\n");
  if (select.dataset.now === now) return;
  select.dataset.now = now;
  const { value } = select;
  const wanted = value && !names.includes(value) ? [...names, value] : names;
  select.replaceChildren(select.firstElementChild, ...wanted.map((name) => el("option", { value: name }, name)));
  select.value = value;
}

// Start the form over *rows*; *changed* is called when other jobs are listed. Returns what the page uses of it.
export function startFilter(rows, choice, changed) {
  function showChoice() {
    const all = [...rows.jobs.values()];
    const several = (value) => [...new Set(all.map(value))].filter(Boolean).sort();
    offer($("#job-by"), several((job) => job.started_by));
    offer($("#job-pipeline"), several((job) => job.pipeline || job.queue));
    const { order, first, pages } = rows;
    $("#no-jobs").hidden = all.length > 0;
    $("#none-chosen").hidden = all.length === 0 || order.length > 0;
    const range = pages > 1 ? `${number(first + 1)}–${number(Math.min(first + ROWS, order.length))} of ` : "";
    const told = counted(all.length, "job");
    setText($("#job-range"), order.length === all.length ? `${range}${told}` : `${range}${number(order.length)} chosen of ${told}`);
    $("#page-before").hidden = choice.page < 2;
    $("#page-after").hidden = choice.page >= pages;
    const dense = Math.min(order.length, ROWS) > DENSE;
    $("#jobs-table").classList.toggle("dense", dense);
    document.body.toggleAttribute("data-dense", dense); // no :has(), which styles all rows anew with every log line
  }

  // The user has changed the filter: apply it, and put it into the URL of the page.
  function chooseAgain() {
    rows.sort();
    rows.draw();
    for (const link of $$("[data-sort]")) {
      const own = choice.sort.replace("-", "") === link.dataset.sort;
      if (own) link.parentElement.setAttribute("aria-sort", choice.sort.startsWith("-") ? "descending" : "ascending");
      else link.parentElement.removeAttribute("aria-sort");
    }
    showChoice();
    changed();
    keepUrl();
  }

  function keepUrl() {
    const query = choice.query();
    history.replaceState(null, "", query ? `?${query}` : "/");
  }

  function turn(by) {
    const page = Math.min(Math.max(choice.page + by, 1), rows.pages);
    if (page === choice.page) return;
    choice.page = page;
    chooseAgain();
    $("#jobs-scroll").scrollTop = 0;
  }

  function watchChoice() {
    const form = $("#job-filter");
    const applied = () => {
      for (const name of ["search", "state", "by", "pipeline"]) choice[name] = form.elements[name].value.trim();
      choice.page = 1;
      chooseAgain();
    };
    form.addEventListener("input", applied);
    form.addEventListener("submit", (event) => { event.preventDefault(); document.activeElement.blur(); step(1); });
    $("#show-all").addEventListener("click", () => { form.reset(); for (const field of form.elements) if (field.name !== "sort") field.value = ""; applied(); $("#job-search").focus(); });
    for (const link of $$("[data-sort]")) {
      link.addEventListener("click", (event) => { event.preventDefault(); choice.byColumn(link.dataset.sort); chooseAgain(); });
    }
    for (const [id, by] of [["#page-before", -1], ["#page-after", 1]]) {
      $(id).addEventListener("click", (event) => { event.preventDefault(); turn(by); });
    }
  }

  watchChoice();
  return { show: showChoice, turn, keepUrl };
}
