// Users: add, change, create tokens, remove. A token is shown once and not stored in the page.
import { $, $$, el } from "./dom.js";
import { Refusal, post, say } from "./api.js";
import { ask, tell } from "./dialog.js";

const role = (value) => ({ name: "role", label: "Role", options: ["view", "operate", "admin"], value });
const password = (hint) => ({ name: "password", label: "Password", type: "password", autocomplete: "new-password", hint });

async function attempt(act) {
  try { await act(); }
  catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
    say(fault.message, "bad");
  }
}

const known = ({ name }) => ([...$$("#users tr")].some((row) => row.dataset.name === name.trim()) ? "There is a user of that name. Change that one." : "");

async function add() {
  const given = await ask({ title: "Add a user", check: known, fields: [{ name: "name", label: "Name", required: true, autocapitalize: "none" }, role("view"), password("Empty: only tokens.")], confirm: "Add" });
  if (given) await attempt(async () => { await post("/users", { name: given.name.trim(), role: given.role, password: given.password || null }); location.reload(); });
}

async function change(row) {
  const { name } = row.dataset;
  const given = await ask({ title: "Change this user", target: name, fields: [role(row.dataset.role), password("Empty: stays as it is.")], confirm: "Change" });
  if (given) await attempt(async () => { await post("/users", { name, role: given.role, password: given.password || null }); location.reload(); });
}

async function token(row) {
  const { name } = row.dataset;
  if (!await ask({ title: "Make a new token?", text: "Any client that has it may do what this user may do.", target: name, confirm: "Make it" })) return;
  await attempt(async () => {
    const { token: made } = await post(`/users/${encodeURIComponent(name)}/token`);
    const field = el("input", { class: "mono", readonly: true, value: made, "aria-label": "Token" });
    await tell("Token", el("p", null, "Copy it now; it is not shown again."), field);
    location.reload();
  });
}

async function remove(row) {
  const { name } = row.dataset;
  if (!await ask({ title: "Remove this user?", text: "Sessions and tokens end with it.", target: name, confirm: "Remove", danger: true })) return;
  await attempt(async () => { await post(`/users/${encodeURIComponent(name)}/remove`); location.reload(); });
}

export function start() {
  $("#add-user").hidden = false;
  $("#add-user").addEventListener("click", add);
  for (const node of $$("#users .buttons")) node.hidden = false;
  $("#users").addEventListener("click", (event) => {
    const act = { change, token, remove }[event.target.closest("[data-user]")?.dataset.user];
    if (act) act(event.target.closest("tr"));
  });
}
