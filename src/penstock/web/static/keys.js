// The page of keys: list them with their use, create and revoke.

import { ask, explain, isAdmin, ownId } from "./gateway.js";
import { Pages, at, button, copy, element, fill, moment, money, row, say, show, sure } from "./paint.js";

const MODES = ["off", "record", "replay-or-record", "replay-or-live", "replay-or-error", "replay-or-mock", "mock"];
const LIMITS = { requests_per_minute: "key-minute", concurrent_requests: "key-once", usd_per_day: "key-day" };

export function keys(refresh) {
  const pages = new Pages(
    () => `/v1/keys?limit=20${at("key-status").value && `&status=${at("key-status").value}`}`,
    at("keys-newer"), at("keys-older"), refresh,
  );
  at("key-replay").replaceChildren(element("option", "none", { value: "" }), ...MODES.map((mode) => element("option", mode)));
  at("key-status").addEventListener("change", () => { pages.restart(); refresh(); });
  at("new-key").addEventListener("submit", async (event) => {
    event.preventDefault();
    await create();
    pages.restart();
    refresh();
  });
  at("copy-key").addEventListener("click", () => copy(at("made-key"), "key-said"));
  at("hide-key").addEventListener("click", () => {
    hideKey();
    at("key-name").focus();
  });

  async function revoke(key) {
    const own = key.id === ownId() ? " You are signed in with this key and will be signed out." : "";
    const question = `Revoke ${named(key)}? Calls with it are refused from now on. This cannot be undone.${own}`;
    if (!(await sure(question, "Revoke"))) return;
    try {
      await ask(`/v1/keys/${key.id}`, { method: "DELETE" });
      say("keys-said", `Revoked ${named(key)}.`);
    } catch (problem) {
      say("keys-said", explain(problem), { bad: true });
    }
    refresh();
  }

  return {
    async load() {
      if (!(await isAdmin())) return { list: null };
      const list = await pages.read(ask);
      const uses = await Promise.all(list.data.map((key) => ask(`/v1/requests?limit=1&summary=true&key_id=${key.id}`)));
      return { list, uses };
    },

    paint({ list, uses }) {
      at("keys-closed").hidden = list !== null;
      at("keys-open").hidden = list === null;
      if (list === null) return;
      pages.seen(list);
      at("no-keys").hidden = list.data.length > 0;
      fill(at("keys-list"), list.data.map((key, place) => painted(key, uses[place], revoke)));
    },

    clear() {
      hideKey();
      pages.restart();
      at("new-key").reset();
      at("keys-list").replaceChildren();
      say("keys-said", "");
      at("keys-closed").hidden = at("keys-open").hidden = true;
    },
  };
}

const named = (key) => `${key.name || "the key without a name"} (…${key.last_four})`;

function painted(key, use, revoke) {
  const active = key.status === "active";
  const name = (key.name || "no name") + (key.id === ownId() ? " (your key)" : "");
  const details = button("Details", () => show(key), { of: key.id, label: `Details of ${named(key)}` });
  const end = button("Revoke", () => revoke(key), { of: key.id, kind: "bad", label: `Revoke ${named(key)}` });
  return row(
    [name, key.name ? "words" : "quiet"], [`…${key.last_four}`, "code"],
    active ? ["active", "good"] : [`revoked ${moment(key.revoked_at)}`, "quiet"], [moment(key.created_at)],
    use.data.length ? [moment(use.data[0].created_at)] : ["never", "quiet"],
    [String(use.summary.count), "number"], [money(use.summary.total_cost), "number"],
    [[details, ...(active ? [end] : [])]],
  );
}

// ----------------------------------------------------------------------------------------------------------- creating

async function create() {
  const body = {};
  if (at("key-name").value.trim()) body.name = at("key-name").value.trim();
  if (at("key-admin").checked) body.scopes = ["admin"];
  for (const [field, id] of Object.entries(LIMITS)) if (at(id).value) body[field] = Number(at(id).value);
  if (at("key-replay").value) body.replay_mode = at("key-replay").value;
  try {
    const made = await ask("/v1/keys", { method: "POST", body });
    at("made-key").value = made.key;
    at("made-key-part").hidden = false;
    at("new-key").reset();
    say("key-said", "");
    say("keys-said", "");
    at("copy-key").focus();
  } catch (problem) {
    say("keys-said", explain(problem), { bad: true });
  }
}

function hideKey() {
  at("made-key").value = "";
  at("made-key-part").hidden = true;
}
