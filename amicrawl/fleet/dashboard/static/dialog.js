// Confirmation dialogs: what will happen, to what, with which values. Resolves to the values, or null.
import { el } from "./dom.js";

function field(spec) {
  const { name, label, hint, options, ...rest } = spec;
  const id = `ask-${name}`;
  let input;
  if (options) {
    input = el("select", { id, name }, ...options.map((one) => el("option", { value: one, selected: one === rest.value }, one)));
  } else {
    input = el("input", { id, name, autocomplete: "off", spellcheck: "false", ...rest });
  }
  return el("div", { class: "field" }, el("label", { for: id }, label), input, hint ? el("span", { class: "hint" }, hint) : null);
}

export function ask({ title, text, target, content, fields = [], confirm, danger = false, check = () => "" }) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    const fault = el("p", { class: "message bad", role: "alert", hidden: true });
    const cancel = el("button", { class: "button", type: "button" }, "Cancel");
    const form = el("form", { method: "dialog" },
      el("h2", { id: "ask-title" }, title), text ? el("p", null, text) : null,
      target ? el("p", { class: "target" }, target) : null, content, ...fields.map(field), fault,
      el("div", { class: "buttons" }, cancel, el("button", { class: `button main${danger ? " danger" : ""}`, type: "submit", value: "yes" }, confirm)));
    const dialog = el("dialog", { "aria-labelledby": "ask-title" }, form);
    let values = null;
    cancel.addEventListener("click", () => dialog.close());
    form.addEventListener("submit", (event) => {
      const given = Object.fromEntries(new FormData(form));
      const wrong = check(given);
      if (wrong) {
        event.preventDefault();
        fault.hidden = false;
        fault.textContent = wrong;
      } else { values = given; }
    });
    dialog.addEventListener("close", () => { dialog.remove(); before?.focus?.(); resolve(values); });
    document.body.append(dialog);
    dialog.showModal();
    // Without a field, Cancel has the focus: Enter alone must not abort a job.
    (dialog.querySelector(".field input, .field select") ?? cancel).focus();
  });
}

export const tell = (title, ...content) => new Promise((resolve) => {
  const close = el("button", { class: "button main", type: "submit" }, "Close");
  const dialog = el("dialog", { "aria-labelledby": "tell-title" },
    el("form", { method: "dialog" }, el("h2", { id: "tell-title" }, title), ...content, el("div", { class: "buttons" }, close)));
  dialog.addEventListener("close", () => { dialog.remove(); resolve(); });
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
});
