// A part of the page that the server draws: fetched again, with what was open and scrolled left so.
import { $, $$, LONGEST_WAIT } from "./dom.js";

// Replace #id by that of *address*; null while its summary has the focus. Throws what the server says is wrong.
export async function redraw(address, id) {
  const response = await fetch(address, { credentials: "same-origin", signal: AbortSignal.timeout(LONGEST_WAIT) });
  if (!response.ok) throw new Error((await response.json()).detail);
  const text = await response.text();
  // Our own page, escaped by the server; the policy of the page keeps any script in it from running.
  const fresh = new DOMParser().parseFromString(text, "text/html").querySelector(`#${id}`);
  const part = $(`#${id}`);
  const open = [...$$("details", part)].map((each) => each.open);
  const scrolled = [...$$(".scroll", part)].map((each) => [each.scrollTop, each.scrollLeft]);
  if (!fresh || part.contains(document.activeElement) && document.activeElement.closest("summary")) return null;
  part.replaceWith(fresh);
  $$("details", fresh).forEach((each, place) => { each.open = open[place] ?? false; });
  $$(".scroll", fresh).forEach((each, place) => { [each.scrollTop, each.scrollLeft] = scrolled[place] ?? [0, 0]; });
  return fresh;
}
