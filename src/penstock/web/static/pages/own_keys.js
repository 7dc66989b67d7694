// The keys that the person who is signed in has made, above those of the organization.

import { useData } from "../data.js";
import { ask } from "../gateway.js";
import { day, money } from "../format.js";
import { Confirm, Empty, Loaded, Panel } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { KeyForm, NewKey, Spend, asTexts, limitsOf, named } from "../parts/key_form.js";
import { When } from "../parts/status.js";
import { Table } from "../parts/table.js";
import { html, useState } from "../view.js";

// What the organization allows, in a sentence.
function rule({ keys, days, usd_per_day: daily, usd_per_month: monthly, models }) {
  if (!keys) return "Your organization lets nobody make keys.";
  const most = [daily !== null && `${money(daily)} a day`, monthly !== null && `${money(monthly)} a month`].filter(Boolean).join(" and ");
  return `For your own programs: up to ${keys} ${keys === 1 ? "key" : "keys"} for ${days} days${most ? `, each with ${most}` : ""}${models
    ? `, for ${models.join(", ")}` : ""}.`;
}

const columns = (onRevoke) => [
  { name: "Name", kind: "words lead", cell: (key) => html`<strong class="medium anywhere">${key.name || "No name"}</strong><br /><code
      class="small soft">…${key.last_four}</code>` },
  { name: "Last request", kind: "nowrap", cell: (key) => html`<${When} at=${key.last_used_at} />` },
  { name: "Expires", kind: "nowrap", cell: (key) => day(key.expires_at) },
  { name: "Spent", cell: (key) => html`<div class="stack tight"><${Spend} spent=${key.spent_today} limit=${key.usd_per_day}
      period="today" /><${Spend} spent=${key.spent_this_month} limit=${key.usd_per_month} period="this month" /></div>` },
  { name: "Limits", kind: "words", cell: (key) => html`<span class="small">${limitsOf({ ...key, expires_at: null }).join(", ") || html`<span
      class="soft">None</span>`}</span>` },
  { name: "Actions", quiet: true, kind: "actions", cell: (key) => html`<button type="button" class="button small danger revoke-own"
      aria-label=${`Revoke ${named(key)}`} onClick=${() => onRevoke(key)}>Revoke</button>` },
];

export function OwnKeys({ onChange }) {
  const loaded = useData(async (signal) => {
    const [keys, limits] = await Promise.all([ask("/v1/own-keys", { signal }), ask("/v1/own-key-limits", { signal })]);
    return { keys: keys.data, limits };
  });
  const [open, setOpen] = useState(null); // { kind: new | made | revoke, key }
  const close = () => setOpen(null);
  const changed = () => { loaded.reload(); onChange(); };
  const make = async (body) => {
    setOpen({ kind: "made", key: await ask("/v1/own-keys", { method: "POST", body }) });
    changed();
  };
  const limits = loaded.data?.limits;
  const button = limits?.keys > 0 && html`<button type="button" class="button" id="new-own-key" onClick=${() => setOpen({ kind: "new" })}><${Icon}
      name="plus" />New key of mine</button>`;
  return html`<${Panel} title="Your keys" about=${limits && rule(limits)} aside=${button || undefined} flush>
      <${Loaded} of=${loaded}>${({ keys }) => (keys.length
        ? html`<${Table} label="Your keys" columns=${columns((key) => setOpen({ kind: "revoke", key }))} rows=${keys} rowKey=${({ id }) => id} />`
        : html`<${Empty} icon="key" title="You have no keys">What you make with a key is listed under your name.<//>`)}<//>
    <//>
    ${open?.kind === "new" && html`<${KeyForm} title="New key of mine" verb="Create" isNew before=${asTexts({})} bounds=${limits} onSave=${make}
        onClose=${close} />`}
    ${open?.kind === "made" && html`<${NewKey} made=${open.key} onClose=${close} />`}
    ${open?.kind === "revoke" && html`<${Confirm} title="Revoke a key" verb="Revoke"
        question=${`Revoke ${named(open.key)}? Programs that use it are refused from now on. This cannot be undone.`}
        action=${() => ask(`/v1/own-keys/${open.key.id}`, { method: "DELETE" })} onClose=${(done) => { close(); if (done) changed(); }} />`}`;
}
