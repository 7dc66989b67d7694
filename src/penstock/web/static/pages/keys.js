// The keys of the organization: limits, use, and what they spent.

import { ask } from "../gateway.js";
import { Confirm, Empty, Head, Loaded, Panel } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { KeyForm, NewKey, Spend, asTexts, limitsOf, named } from "../parts/key_form.js";
import { Status, When } from "../parts/status.js";
import { Pager, Table, usePages } from "../parts/table.js";
import { ownKeyId } from "../session.js";
import { html, useState } from "../view.js";
import { OwnKeys } from "./own_keys.js";

const YOURS = "Your own keys, and those of your organization, which admins create and change.";
const ONLY_LISTS = "Your key may list keys. Only a key with the admin scope can create and change them.";

function columns({ canManage, onEdit, onRevoke }) {
  const all = [
    { name: "Name", kind: "words", cell: (key) => html`<strong class="medium">${key.name || "No name"}</strong>
        ${key.id === ownKeyId() ? html` <span class="chip accent">your key</span>` : ""}${key.scopes.map((scope) => html` <span
        key=${scope} class="chip">${scope}</span>`)}${key.owner && html`<span class="small soft anywhere"><br />${key.owner.name ?? key.owner.id}</span>`}<br /><code
        class="small soft">…${key.last_four}</code>` },
    { name: "Status", cell: (key) => html`<${Status} of=${key.status} />` },
    { name: "Last request", kind: "nowrap", cell: (key) => html`<${When} at=${key.last_used_at} />` },
    { name: "Spent", cell: (key) => html`<div class="stack tight"><${Spend} spent=${key.spent_today} limit=${key.usd_per_day}
        period="today" /><${Spend} spent=${key.spent_this_month} limit=${key.usd_per_month} period="this month" /></div>` },
    { name: "Limits", kind: "words", cell: (key) => html`<span class="small">${limitsOf(key).join(", ") || html`<span
        class="soft">None</span>`}</span>` },
  ];
  const actions = { name: "Actions", quiet: true, kind: "actions", cell: (key) => key.status === "active" && html`<div class="row">
    <button type="button" class="button small edit" aria-label=${`Edit ${named(key)}`} onClick=${() => onEdit(key)}>Edit</button>
    <button type="button" class="button small danger revoke" aria-label=${`Revoke ${named(key)}`}
        onClick=${() => onRevoke(key)}>Revoke</button></div>` };
  return canManage ? [...all, actions] : all;
}

export function Keys({ own, session }) {
  const [status, setStatus] = useState("active");
  const page = usePages("/v1/keys", { limit: 50, status });
  const [open, setOpen] = useState(null); // { kind: new | made | edit | revoke, key }
  const canManage = own.scopes.includes("admin");
  const close = () => setOpen(null);
  const create = async (body) => {
    setOpen({ kind: "made", key: await ask("/v1/keys", { method: "POST", body }) });
    page.reload();
  };
  const change = async (body) => {
    if (Object.keys(body).length) await ask(`/v1/keys/${open.key.id}`, { method: "PATCH", body });
    close();
    page.reload();
  };
  const shown = columns({
    canManage,
    onEdit: (key) => setOpen({ kind: "edit", key }),
    onRevoke: (key) => setOpen({ kind: "revoke", key }),
  });
  const warning = open?.key?.id === ownKeyId() ? " You are signed in with this key and will be signed out." : "";
  return html`<div class="page">
    <${Head} title="Keys" about=${canManage ? "Give every program its own key, with its own limits." : session.user ? YOURS : ONLY_LISTS}>
      ${canManage && html`<button type="button" class="button main" id="new-key" onClick=${() => setOpen({ kind: "new" })}><${Icon}
          name="plus" />New key</button>`}<//>
    ${session.user && !own.scopes.includes("read") && html`<${OwnKeys} onChange=${page.reload} />`}
    <${Panel} label="Keys" flush>
      <header><div class="tabs" role="group" aria-label="Status">
          ${[["active", "Active"], ["revoked", "Revoked"]].map(([value, label]) => html`
        <button type="button" key=${value} aria-pressed=${String(value === status)} onClick=${() => setStatus(value)}>
            ${label}</button>`)}</div></header>
      <${Loaded} of=${page}>${(data) => (data.data.length
        ? html`<${Table} label="Keys" columns=${shown} rows=${data.data} rowKey=${({ id }) => id} /><${Pager} of=${page} />`
        : html`<${Empty} icon="key" title="No keys here">There is no ${status} key.<//>`)}<//>
    <//>
    ${open?.kind === "new" && html`<${KeyForm} title="New key" verb="Create" isNew mayManage before=${asTexts({})} onSave=${create}
        onClose=${close} />`}
    ${open?.kind === "made" && html`<${NewKey} made=${open.key} onClose=${close} />`}
    ${open?.kind === "edit" && html`<${KeyForm} title=${`Edit ${named(open.key)}`} verb="Save" before=${asTexts(open.key)} onSave=${change}
        onClose=${close} />`}
    ${open?.kind === "revoke" && html`<${Confirm} title="Revoke a key" verb="Revoke"
        question=${`Revoke ${named(open.key)}? Calls with it are refused from now on. This cannot be undone.${warning}`}
      action=${() => ask(`/v1/keys/${open.key.id}`, { method: "DELETE" })} onClose=${(done) => { close(); if (done) page.reload(); }} />`}
  </div>`;
}
