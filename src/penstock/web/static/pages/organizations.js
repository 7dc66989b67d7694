// Organizations, their limits and their credit, for operators.

import { useData } from "../data.js";
import { ask } from "../gateway.js";
import { day, money } from "../format.js";
import { CopyButton, Dialog, Empty, Head, Loaded, Panel, Problem, SelectField, TextField } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { When } from "../parts/status.js";
import { Table } from "../parts/table.js";
import { html, useState } from "../view.js";

// A dialog with a form: the texts of its fields go to `onSave`, and its problem is shown in it.
function FormDialog({ title, verb, blank, onSave, onClose, children }) {
  const [texts, setTexts] = useState(blank);
  const [state, setState] = useState({ busy: false, problem: null });
  async function save(event) {
    event.preventDefault();
    setState({ busy: true, problem: null });
    try {
      await onSave(texts);
    } catch (problem) {
      setState({ busy: false, problem });
    }
  }
  const set = (name) => (text) => setTexts({ ...texts, [name]: text });
  const footer = html`<button type="button" class="button" onClick=${onClose}>Cancel</button><button class="button main" form="org-form"
      disabled=${state.busy}>${verb}</button>`;
  return html`<${Dialog} title=${title} onClose=${onClose} footer=${footer}><form id="org-form" class="stack" onSubmit=${save}>
      ${children(texts, set)}<${Problem} problem=${state.problem} /></form><//>`;
}

const CREDITS = [
  { name: "When", cell: ({ created_at: at }) => html`<${When} at=${at} />` },
  { name: "Amount", kind: "number", cell: ({ amount }) => money(amount) },
  { name: "Note", kind: "words", cell: ({ note }) => note ?? "" },
];

function Credits({ org, onClose }) {
  const page = useData((signal) => ask(`/v1/orgs/${org.id}/credits?limit=50`, { signal }));
  return html`<${Dialog} title=${`Credit of ${org.name}`} wide onClose=${onClose} footer=${html`<button type="button" class="button"
      onClick=${onClose}>Close</button>`}>
    <${Loaded} of=${page}>${({ data }) => (data.length
      ? html`<${Table} label="Credits" columns=${CREDITS} rows=${data} />`
      : html`<p class="soft">No credit added yet.</p>`)}<//><//>`;
}

export function Organizations() {
  const page = useData((signal) => ask("/v1/orgs", { signal }));
  const [open, setOpen] = useState(null);
  const close = () => setOpen(null);
  const after = (pending) => pending.then(() => { close(); page.reload(); });
  const post = (path, body) => ask(path, { method: "POST", body });
  const create = ({ name, billing }) => after(post("/v1/orgs", { name: name.trim(), billing_type: billing }));
  const credit = ({ usd, note }) => after(post(`/v1/orgs/${open.org.id}/credits`, { usd: Number(usd), ...(note.trim() && { note: note.trim() }) }));
  const number = (text) => (text.trim() === "" ? null : Number(text));
  const limit = ({ budget, bytes }) => after(ask(`/v1/orgs/${open.org.id}`, { method: "PATCH", body: { usd_per_month: number(budget), storage_bytes: number(bytes) } }));
  const key = async ({ name }) => {
    const made = await post(`/v1/orgs/${open.org.id}/keys`, { name: name.trim(), scopes: ["admin"] });
    setOpen({ kind: "made", made });
  };
  const columns = [
    { name: "Organization", kind: "words", cell: (org) => html`<strong class="medium">${org.name}</strong><span class="id small soft"><code
        title=${org.id}>${org.id}</code></span>` },
    { name: "Billing", cell: ({ billing_type: type }) => type },
    { name: "Available", kind: "number", cell: ({ available }) => money(available) },
    { name: "Held", kind: "number", cell: ({ held }) => money(held) },
    { name: "This month", kind: "number", cell: ({ spent_this_month: spent, usd_per_month: budget }) =>
      (budget === null ? money(spent) : `${money(spent)} of ${money(budget)}`) },
    { name: "Since", kind: "nowrap", cell: ({ created_at: at }) => day(at) },
    { name: "Actions", quiet: true, kind: "actions", cell: (org) => html`<div class="row">
      <button type="button" class="button small add-credit" aria-label=${`Add credit to ${org.name}`}
          onClick=${() => setOpen({ kind: "credit", org })}>Add credit</button>
      <button type="button" class="button small limits" aria-label=${`Limits of ${org.name}`}
          onClick=${() => setOpen({ kind: "limits", org })}>Limits</button>
      <button type="button" class="button small" aria-label=${`Credit history of ${org.name}`}
          onClick=${() => setOpen({ kind: "credits", org })}>History</button>
      <button type="button" class="button small" aria-label=${`New key for ${org.name}`}
          onClick=${() => setOpen({ kind: "key", org })}>New key</button></div>` },
  ];
  return html`<div class="page">
    <${Head} title="Organizations" about="Each has its own keys, balance, requests and recordings. Nothing is shared between them.">
      <button type="button" class="button main" id="new-org" onClick=${() => setOpen({ kind: "new" })}><${Icon}
          name="plus" />New organization</button><//>
    <${Panel} label="Organizations" flush><${Loaded} of=${page}>${({ data }) => (data.length
      ? html`<${Table} label="Organizations" columns=${columns} rows=${data} rowKey=${({ id }) => id} />`
      : html`<${Empty} icon="people" title="No organizations">Create one per customer or team.<//>`)}<//><//>
    ${open?.kind === "new" && html`<${FormDialog} title="New organization" verb="Create" blank=${{ name: "", billing: "prepaid" }}
        onSave=${create} onClose=${close}>${(texts, set) => html`
      <${TextField} label="Name" type="text" required value=${texts.name} onInput=${set("name")} />
      <${SelectField} label="Billing" value=${texts.billing} onInput=${set("billing")}
          options=${[["prepaid", "Prepaid: calls need credit"], ["postpaid", "Postpaid: pay later"]]} />`}<//>`}
    ${open?.kind === "credit" && html`<${FormDialog} title=${`Add credit to ${open.org.name}`} verb="Add" blank=${{ usd: "", note: "" }}
        onSave=${credit} onClose=${close}>${(texts, set) => html`
      <${TextField} label="US dollars" type="number" step="any" required value=${texts.usd} onInput=${set("usd")} />
      <${TextField} label="Note (optional)" type="text" value=${texts.note} onInput=${set("note")} placeholder="Invoice, reason" />`}<//>`}
    ${open?.kind === "limits" && html`<${FormDialog} title=${`Limits of ${open.org.name}`} verb="Save"
        blank=${{ budget: String(open.org.usd_per_month ?? ""), bytes: String(open.org.storage_bytes ?? "") }} onSave=${limit} onClose=${close}>${(texts, set) => html`
      <${TextField} label="US dollars per month" type="number" step="any" value=${texts.budget} onInput=${set("budget")} help="Leave empty for no limit." />
      <${TextField} label="Bytes of stored files" type="number" step="1" value=${texts.bytes} onInput=${set("bytes")}
          help="Leave empty for the default (storage_bytes_per_org). 0 means no limit." />`}<//>`}
    ${open?.kind === "key" && html`<${FormDialog} title=${`New key for ${open.org.name}`} verb="Create" blank=${{ name: "" }} onSave=${key}
        onClose=${close}>${(texts, set) => html`
      <${TextField} label="Name" type="text" required value=${texts.name} onInput=${set("name")}
          help="It may manage the keys of this organization." />`}<//>`}
    ${open?.kind === "made" && html`<${Dialog} title="The new key" onClose=${close} footer=${html`<button type="button" class="button main"
        onClick=${close}>Done</button>`}>
      <p>Copy it now. It is shown only once.</p><div class="snippet"><pre tabindex="0" aria-label="The key">${open.made.key}</pre>
          <${CopyButton} text=${open.made.key} /></div><//>`}
    ${open?.kind === "credits" && html`<${Credits} org=${open.org} onClose=${close} />`}
  </div>`;
}
