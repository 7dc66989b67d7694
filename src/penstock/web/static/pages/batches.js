// Batches: how far each is and what it cost; pause, resume, cancel; the results.

import { useData } from "../data.js";
import { count, moment, money } from "../format.js";
import { ask, send } from "../gateway.js";
import { Confirm, CopyButton, Dialog, Empty, Head, Loaded, Panel, Problem } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { REASONS, Resume } from "../parts/resume.js";
import { Status, When } from "../parts/status.js";
import { Facts, Pager, Table, usePages } from "../parts/table.js";
import { html, useState } from "../view.js";

const REFRESH_MS = 2000;
const EXAMPLE = `curl ${location.origin}/v1/batches -H "Authorization: Bearer $PENSTOCK_KEY" \\
  -F file=@prompts.csv -F endpoint=/v1/images/generations -F max_cost=5`;

const ended = ({ counts }) => counts.completed + counts.failed;

function Progress({ batch }) {
  const { counts } = batch;
  const label = `${count(ended(batch))} of ${count(counts.total)} rows`;
  return html`<div class="stack"><span class="figures small">${label}${counts.failed ? `, ${count(counts.failed)} failed` : ""}</span>
    <progress value=${ended(batch)} max=${counts.total} aria-label=${label} /></div>`;
}

async function save(batch) {
  const response = await send(`/v1/batches/${batch.id}/results`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = `${batch.id}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function Batch({ id, onClose, onChange }) {
  const loaded = useData((signal) => ask(`/v1/batches/${id}`, { signal }), [id], { every: REFRESH_MS });
  const [problem, setProblem] = useState(null);
  const [cancelling, setCancelling] = useState(false);
  const changed = () => { setProblem(null); loaded.reload(); onChange(); };
  const change = (verb) => ask(`/v1/batches/${id}/${verb}`, { method: "POST" }).then(changed);
  const batch = loaded.data;
  const footer = html`<button type="button" class="button" onClick=${onClose}>Close</button>
    ${batch?.status === "in_progress" && html`<button type="button" class="button" id="pause-batch"
        onClick=${() => change("pause").catch(setProblem)}>Pause</button>`}
    ${["in_progress", "paused"].includes(batch?.status) && html`<button type="button" class="button" id="cancel-batch"
        onClick=${() => setCancelling(true)}>Cancel the batch</button>`}
    ${batch && html`<button type="button" class="button main" id="save-results"
        onClick=${() => save(batch).then(() => setProblem(null), setProblem)}><${Icon} name="download" />Results</button>`}`;
  return html`<${Dialog} title="Batch" wide onClose=${onClose} footer=${footer}>
    <${Loaded} of=${loaded}>${(data) => html`<${Progress} batch=${data} />
      <${Facts} of=${[["Name", data.name], ["Status", html`<${Status} of=${data.status} />`],
        ["Paused", data.status === "paused" && (REASONS[data.reason] ?? data.reason)],
        ["Cost", `${money(data.cost)} of about ${money(data.estimated_cost)}`],
        ["Budget", data.max_cost === null ? "none" : money(data.max_cost)], ["At a time", count(data.concurrency)],
        ["Left out", data.counts.skipped ? `${count(data.counts.skipped)} rows that were wrong` : null],
        ["Created", moment(data.created_at)], ["Ended", data.ended_at && moment(data.ended_at)], ["ID", html`<code>${data.id}</code>`]]} />
      ${data.status === "paused" && html`<${Resume} paused=${data} verb="Resume" onDone=${changed} />`}`}<//>
    <${Problem} problem=${problem} />
    ${cancelling && html`<${Confirm} title="Cancel the batch" verb="Cancel the batch"
        question="No more rows begin, for good. Rows that run go on to their ends and are charged."
        action=${() => change("cancel")} onClose=${() => setCancelling(false)} />`}
  <//>`;
}

export function Batches() {
  const [open, setOpen] = useState(null);
  const page = usePages("/v1/batches", { limit: 20 }, { every: REFRESH_MS });
  const columns = [
    { name: "When", kind: "nowrap", cell: (batch) => html`<${When} at=${batch.created_at} />` },
    { name: "Name", kind: "words", cell: ({ name, id }) => name ?? html`<code>${id.slice(0, 18)}…</code>` },
    { name: "Status", cell: ({ status }) => html`<${Status} of=${status} />` },
    { name: "Progress", cell: (batch) => html`<${Progress} batch=${batch} />` },
    { name: "Cost", kind: "number", cell: ({ cost }) => money(cost) },
    { name: "Details", quiet: true, kind: "actions", cell: (batch) => html`<button type="button" class="button small details"
        aria-label=${`Details of ${batch.name ?? batch.id}`} onClick=${() => setOpen(batch.id)}>Details</button>` },
  ];
  return html`<div class="page">
    <${Head} title="Batches" about="Many calls from one file: checked and priced first, run in the background, paid once each." />
    <${Panel} title="All batches" label="Batches" flush>
      <${Loaded} of=${page}>${(data) => (data.data.length
        ? html`<${Table} label="Batches" columns=${columns} rows=${data.data} rowKey=${({ id }) => id} /><${Pager} of=${page} />`
        : html`<${Empty} icon="stack" title="No batches" action=${html`<a class="button" href="/docs/batches">How batches work</a>`}>Send
            a CSV or JSONL file of calls:<//><div class="snippet"><pre tabindex="0" aria-label="How to send a file">${EXAMPLE}</pre><${CopyButton}
            text=${EXAMPLE} /></div>`)}<//>
    <//>
    ${open && html`<${Batch} id=${open} onClose=${() => setOpen(null)} onChange=${page.reload} />`}
  </div>`;
}
