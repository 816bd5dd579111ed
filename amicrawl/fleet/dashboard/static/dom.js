// Create DOM elements. Text is inserted as text nodes only; no markup is parsed.
export const $ = (selector, within = document) => within.querySelector(selector);
export const $$ = (selector, within = document) => within.querySelectorAll(selector);

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export const el = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

export function setText(node, text) {
  if (node && node.textContent !== String(text)) node.textContent = text;
}

export function icon(name) {
  const known = { aborting: "aborted", stopping: "aborted", draining: "paused" };
  return svg("svg", { class: "icon", "aria-hidden": "true", focusable: "false" }, svg("use", { href: `/static/icons.svg#${known[name] ?? name}` }));
}

// The server sends a link only for http and https; checked here again.
export function safeLink(text) {
  return typeof text === "string" && /^https?:\/\//i.test(text) && text.length <= 8000 ? text : null;
}

export function address(link, text, attributes) {
  const href = safeLink(link);
  return href ? el("a", { href, rel: "noopener noreferrer", target: "_blank", ...attributes }, text) : el("span", attributes, text);
}

// Do *act* every so many ms, one at a time: a server that is slow is not sent more and more requests.
export async function every(pause, act) {
  for (;;) {
    await new Promise((resolve) => { setTimeout(resolve, pause); });
    try { await act(); } catch (fault) { reportError(fault); }
  }
}

export const LONGEST_WAIT = 30000; // ms for a response to a request that changes nothing

export const mayOperate = () => document.body.hasAttribute("data-may-operate");
