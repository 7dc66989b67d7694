// The audit log: who did what, with filters in the URL, the values that changed, and export.

import { send, withQuery } from "../gateway.js";
import { moment } from "../format.js";
import { Dialog, Empty, Head, Loaded, Panel, Problem, TextField } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { When } from "../parts/status.js";
import { Facts, Pager, Table, usePages } from "../parts/table.js";
import { replaceQuery } from "../route.js";
import { html, useState } from "../view.js";

const REFRESH_MS = 5000;
const NAMES = ["action", "actor", "target"];

const shown = (value) => (value === null || value === undefined ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));

// The values that differ, as "name: before → after".
function Changes({ event: { before, after } }) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return html`<div class="anywhere small">${names.map((name) => html`<div key=${name}><span class="soft">${name}:</span> ${
    before && html`${shown(before[name])} → `}${shown(after?.[name])}</div>`)}</div>`;
}

function Event({ event, onClose }) {
  const footer = html`<button type="button" class="button" onClick=${onClose}>Close</button>`;
  return html`<${Dialog} title=${event.action} wide onClose=${onClose} footer=${footer}>
    <${Facts} of=${[["When", moment(event.created_at)], ["By", event.actor], ["From", event.address], ["On", event.target],
      ["Organization", event.org_id], ["Request", event.request_id], ["Values", html`<${Changes} event=${event} />`],
      ["Event", html`<code class="anywhere">${event.id}</code>`], ["Hash", html`<code class="anywhere">${event.hash}</code>`]]} /><//>`;
}

// Saves what is filtered. The call needs the key in a header, so that a plain link cannot do it.
async function save(values) {
  const response = await send(withQuery("/v1/audit", { ...values, format: "jsonl" }));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = `audit-log-${new Date().toISOString().slice(0, 10)}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function AuditLog({ query }) {
  const values = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""]));
  const page = usePages("/v1/audit", { ...values, limit: 50 }, { every: REFRESH_MS });
  const [open, setOpen] = useState(null);
  const [problem, setProblem] = useState(null);
  const filtered = NAMES.some((name) => values[name]);
  const columns = [
    { name: "When", kind: "nowrap", cell: ({ created_at: at }) => html`<${When} at=${at} />` },
    { name: "Action", kind: "words", cell: (event) => html`<button type="button" class="button plain small"
        onClick=${() => setOpen(event)}>${event.action}</button>` },
    { name: "By", kind: "words", cell: ({ actor }) => html`<span class="anywhere small">${actor}</span>` },
    { name: "On", kind: "words", cell: ({ target }) => html`<span class="anywhere small">${target}</span>` },
    { name: "Values", kind: "words spare", cell: (event) => html`<${Changes} event=${event} />` },
  ];
  const field = (name, label, placeholder) => html`<${TextField} label=${label} type="search" value=${values[name]} placeholder=${placeholder}
      onChange=${(event) => replaceQuery("audit-log", { ...values, [name]: event.target.value.trim() })} onInput=${() => {}} />`;
  const aside = html`${page.data && html`<span class="soft small" id="chain" title=${page.data.head.hash}>Chain ends with <code>${
      page.data.head.hash.slice(0, 12)}</code></span>`}
    <button type="button" class="button small" id="export" onClick=${() => save(values).then(() => setProblem(null), setProblem)}><${Icon}
        name="download" />Export</button>`;
  return html`<div class="page">
    <${Head} title="Audit log" about="Who changed keys, organizations, labels, accounts and secrets. Events are chained: a removed one is noticed." />
    <div class="filters" role="search" aria-label="Filter events">
      ${field("action", "Action", "key.revoked")}${field("actor", "By", "A key, or command:root")}${field("target", "On", "Any id")}</div>
    <${Problem} problem=${problem} />
    <${Panel} title="Events" aside=${aside} flush>
      <${Loaded} of=${page}>${(data) => (data.data.length
        ? html`<${Table} label="Events" columns=${columns} rows=${data.data} rowKey=${({ id }) => id} /><${Pager} of=${page} />`
        : filtered
          ? html`<${Empty} icon="search" title="Nothing matches" action=${html`<button type="button" class="button"
              onClick=${() => replaceQuery("audit-log", {})}>Remove the filters</button>`}>No event matches all of these filters.<//>`
          : html`<${Empty} icon="list" title="No events yet">Each change of a key, an organization or a secret appears here.<//>`)}<//>
    <//>
    ${open && html`<${Event} event=${open} onClose=${() => setOpen(null)} />`}
  </div>`;
}
