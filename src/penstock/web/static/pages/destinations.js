// The destinations: buckets of the organization into which outputs are copied, and whether they can be written.

import { useData } from "../data.js";
import { ask } from "../gateway.js";
import { ago } from "../format.js";
import { Confirm, Dialog, Empty, Head, Loaded, Panel, Problem, TextField } from "../parts/controls.js";
import { Table } from "../parts/table.js";
import { html, useState } from "../view.js";

const REFRESH_MS = 15_000;
const DEFAULT_PATH = "{date}/{request_id}/{position}.{ext}";
const EMPTY = { name: "", url: "s3://", region: "", endpoint: "", path: DEFAULT_PATH, access_key_id: "", secret_access_key: "" };
const KEYS = ["access_key_id", "secret_access_key"];

// The name, or the bucket where there is none.
const called = ({ name, url }) => name || url;

function State({ destination: { failure, failed_at: since } }) {
  return failure === null
    ? html`<span class="chip good"><span class="dot"></span>Works</span>`
    : html`<span class="chip bad"><span class="dot"></span>Failing</span><br /><span class="small bad">${failure}, ${ago(since)}</span>`;
}

// A new destination, or new keys of one. Both are checked with a file before they are stored.
function Bucket({ destination, onClose, onDone }) {
  const [texts, setTexts] = useState(EMPTY);
  const [flags, setFlags] = useState({ default: false, required: false });
  const [sending, setSending] = useState({ busy: false, problem: null });
  const field = (name, label, more = {}) => html`<${TextField} label=${label} value=${texts[name]}
      onInput=${(text) => setTexts({ ...texts, [name]: text.trim() })} ...${more} />`;
  async function save(event) {
    event.preventDefault();
    setSending({ busy: true, problem: null });
    const filled = Object.fromEntries(Object.entries(texts).filter(([, text]) => text));
    const keys = Object.fromEntries(KEYS.map((name) => [name, texts[name]]));
    const path = destination ? `/v1/destinations/${destination.id}/rotate` : "/v1/destinations";
    await ask(path, { method: "POST", body: destination ? keys : { ...filled, ...flags } }).then(onDone, (problem) => setSending({ busy: false, problem }));
  }
  const flag = (name, words) => html`<label class="check"><input type="checkbox" checked=${flags[name]}
      onChange=${(event) => setFlags({ ...flags, [name]: event.target.checked })} />${words}</label>`;
  const footer = html`<button type="button" class="button" onClick=${onClose}>Cancel</button><button class="button main" form="bucket-form"
      disabled=${sending.busy}>${sending.busy ? "Writing a file…" : destination ? "Replace" : "Add"}</button>`;
  return html`<${Dialog} title=${destination ? "Replace the keys" : "New destination"} onClose=${onClose} footer=${footer}>
    <form id="bucket-form" class="stack" onSubmit=${save}>
      ${destination ? html`<p class="soft">Files that wait to be copied into ${called(destination)} use the new keys, too.</p>` : html`
        ${field("url", "Bucket and folder", { required: true, help: "Such as s3://acme-media/outputs." })}
        ${field("region", "Region (optional)", { help: "Empty: us-east-1." })}
        ${field("endpoint", "Endpoint (optional)", { help: "HTTPS URL of another server than AWS, such as MinIO or R2." })}`}
      ${field("access_key_id", "Access key id", { required: true, autocomplete: "off" })}
      ${field("secret_access_key", "Secret access key", { type: "password", required: true, autocomplete: "off" })}
      ${!destination && html`${field("name", "Name (optional)")}
        ${field("path", "Path of each file", { required: true })}
        ${flag("default", "Copy the outputs of all calls there")}${flag("required", "Fail calls whose outputs cannot be copied; they are charged")}`}
      <p class="small soft">A small file is written, read and deleted before anything is stored.</p>
      <${Problem} problem=${sending.problem} /></form><//>`;
}

function Checked({ result }) {
  const { check } = result;
  const words = check.works ? `A file was written into ${called(result)}${check.can_delete ? " and deleted." : "."} ${check.message ?? ""}`
    : `No file could be written into ${called(result)}: ${check.message}`;
  return html`<div class=${`notice ${check.works ? "good" : "bad"}`} role="status"><div>${words}</div></div>`;
}

export function Destinations() {
  const loaded = useData((signal) => ask("/v1/destinations", { signal }), [], { every: REFRESH_MS });
  const [open, setOpen] = useState(null);
  const [result, setResult] = useState(null);
  const [problem, setProblem] = useState(null);
  const close = () => setOpen(null);
  const done = () => { setOpen(null); setProblem(null); loaded.reload(); };
  const check = ({ id }) => ask(`/v1/destinations/${id}/check`, { method: "POST" }).then((found) => { setResult(found); done(); }, setProblem);
  const change = ({ id }, body) => ask(`/v1/destinations/${id}`, { method: "PATCH", body }).then(done, setProblem);
  const act = (words, about, action) => html`<button type="button" class="button small" aria-label=${`${words} ${about}`} onClick=${action}>${words}</button>`;
  const columns = [
    { name: "Destination", kind: "words lead", cell: ({ name, url, id, endpoint }) => html`<strong class="medium anywhere">${name || url}</strong>
        ${name && html`<br /><span class="small anywhere">${url}</span>`}${endpoint && html`<br /><span class="small soft anywhere">${endpoint}</span>`}
        <br /><code class="small soft">${id}</code>` },
    { name: "Path", kind: "spare words", cell: ({ path }) => html`<code class="small anywhere">${path}</code>` },
    { name: "State", kind: "state", cell: (destination) => html`<${State} destination=${destination} />` },
    { name: "For", kind: "words", cell: ({ default: isDefault, required }) => html`${isDefault ? "All calls" : "Calls that name it"}${
        required && html`<br /><span class="small soft">required</span>`}` },
    { name: "Actions", kind: "actions", cell: (destination) => html`<span class="row">
        ${act("Check", called(destination), () => check(destination))}
        ${act(destination.default ? "End default" : "Make default", called(destination), () => change(destination, { default: !destination.default }))}
        ${act("Replace keys", called(destination), () => setOpen({ kind: "keys", destination }))}
        ${act("Delete", called(destination), () => setOpen({ kind: "delete", destination }))}</span>` },
  ];
  return html`<div class="page">
    <${Head} title="Destinations" about="Buckets of your organization. Outputs are copied there before calls, jobs and webhooks say that they are done." />
    ${result && html`<${Checked} result=${result} />`}
    <${Problem} problem=${problem} />
    <${Panel} title="Buckets" aside=${html`<button type="button" class="button small" onClick=${() => setOpen({ kind: "new" })}>Add a destination</button>`} flush>
      <${Loaded} of=${loaded}>${({ data }) => (data.length
        ? html`<${Table} label="Destinations" columns=${columns} rows=${data} rowKey=${({ id }) => id} />`
        : html`<${Empty} icon="stack" title="No destinations yet">Outputs stay with the gateway, until they expire. <a href="/docs/delivery">Delivery</a><//>`)}<//><//>
    ${open?.kind === "new" && html`<${Bucket} onClose=${close} onDone=${done} />`}
    ${open?.kind === "keys" && html`<${Bucket} destination=${open.destination} onClose=${close} onDone=${done} />`}
    ${open?.kind === "delete" && html`<${Confirm} title="Delete the destination" verb="Delete"
      question=${`Nothing more is copied into ${called(open.destination)}, and its keys are erased. What is there stays.`}
      action=${() => ask(`/v1/destinations/${open.destination.id}`, { method: "DELETE" })} onClose=${done} />`}
  </div>`;
}
