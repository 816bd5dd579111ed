// Requests that change something, and the notices that report their results.
import { $, LONGEST_WAIT, el } from "./dom.js";

export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `The server responded with ${status}.`);
    this.status = status;
    this.problem = problem;
  }
}

async function bodyOf(response) {
  const text = await response.text();
  let body = {};
  try { body = JSON.parse(text); } catch { body = { detail: response.ok ? "" : `The server responded with ${response.status}.` }; }
  if (response.status === 401) location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
  if (!response.ok) throw new Refusal(response.status, body);
  return body;
}

async function request(path, options) {
  let response;
  try { response = await fetch(`/api/v1${path}`, { credentials: "same-origin", ...options }); }
  catch { throw new Refusal(0, { detail: "The dashboard did not respond. Reload the page to see whether it was done." }); }
  return bodyOf(response);
}

export const read = (path) => request(path, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(LONGEST_WAIT) });

export const post = (path, body = {}) => request(path, {
  method: "POST", body: JSON.stringify(body),
  headers: { "Content-Type": "application/json", Accept: "application/json", "X-CSRF-Token": $('meta[name="csrf-token"]').content },
});

// A notice in the corner (aria-live polite); errors stay until they are closed.
export function say(sentence, kind = "good") {
  $("#spoken").textContent = sentence;
  const note = el("div", { class: `message ${kind}` }, sentence);
  $("#notices").append(note);
  while ($("#notices").childElementCount > 4) $("#notices").firstElementChild.remove();
  note.addEventListener("click", () => note.remove());
  setTimeout(() => note.remove(), kind === "good" ? 4000 : 12000);
}
