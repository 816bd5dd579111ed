// A part of the page that the server draws: fetched again, with what was open, scrolled and in focus left so.
import { $, LONGEST_WAIT } from "./dom.js";

// Make *node* equal to *fresh* without replacing it where that is not necessary.
function follow(node, fresh) {
  if (node.nodeName !== fresh.nodeName) { node.replaceWith(fresh); return; }
  if (node.nodeType !== Node.ELEMENT_NODE) { if (node.data !== fresh.data) node.data = fresh.data; return; }
  for (const { name } of [...node.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) node.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  const before = [...node.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((child, place) => { if (before[place]) follow(before[place], child); else node.append(child); });
  for (const child of before.slice(after.length)) child.remove();
}

// Draw #id as that of *address*; null where there is none. Throws what the server says is wrong.
export async function redraw(address, id) {
  const response = await fetch(address, { credentials: "same-origin", signal: AbortSignal.timeout(LONGEST_WAIT) });
  if (!response.ok) throw new Error((await response.json()).detail);
  const text = await response.text();
  // Our own page, escaped by the server; the policy of the page keeps any script in it from running.
  const fresh = new DOMParser().parseFromString(text, "text/html").querySelector(`#${id}`);
  const part = $(`#${id}`);
  if (fresh) follow(part, fresh);
  return fresh && part;
}
