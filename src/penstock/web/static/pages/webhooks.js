// Webhooks: messages and their deliveries, a test event, the signing secret.

import { useData } from "../data.js";
import { ask } from "../gateway.js";
import { duration, moment } from "../format.js";
import { Confirm, CopyButton, Dialog, Empty, Head, Loaded, Panel, Problem, TextField } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { Status, When } from "../parts/status.js";
import { Facts, Pager, Table, usePages } from "../parts/table.js";
import { pageUrl } from "../route.js";
import { html, useState } from "../view.js";

const REFRESH_MS = 4000;
const DELIVERIES = [
  { name: "Attempt", kind: "number", cell: ({ number }) => number },
  { name: "When", cell: ({ at }) => moment(at) },
  { name: "Result", kind: "words", cell: ({ result }) => result },
  { name: "Duration", kind: "number", cell: ({ duration_ms: ms }) => duration(ms) },
];

function Secret({ canManage }) {
  const [secret, setSecret] = useState(null);
  const [problem, setProblem] = useState(null);
  const [rotating, setRotating] = useState(false);
  const run = (pending) => pending.then((response) => { setSecret(response); setProblem(null); }, setProblem);
  const previous = secret?.previous_expires_at;
  return html`<${Panel} title="Signing secret" about="Use it to verify the webhook-signature header.">
    <div class="stack">
      ${secret && html`<div class="snippet"><pre id="secret" tabindex="0" aria-label="The secret">${secret.key}</pre><${CopyButton}
          text=${secret.key} /></div>`}
      ${previous && html`<p class="small soft">The previous secret stays valid until ${moment(previous)}.</p>`}
      <div class="row">
        ${secret
          ? html`<button type="button" class="button" id="hide-secret" onClick=${() => setSecret(null)}>Hide</button>`
          : html`<button type="button" class="button" id="show-secret"
              onClick=${() => run(ask("/v1/webhooks/secret"))}>Show the secret</button>`}
        ${canManage && html`<button type="button" class="button" id="rotate" onClick=${() => setRotating(true)}>Rotate</button>`}
      </div>
      <${Problem} problem=${problem} />
    </div>
    ${rotating && html`<${Confirm} title="Rotate the secret" verb="Rotate"
        question="Creates a new secret. For 24 hours, messages are signed with both, so your endpoints have time to switch."
      action=${() => ask("/v1/webhooks/secret/rotate", { method: "POST", body: { overlap_hours: 24 } }).then(setSecret)} onClose=${() => setRotating(false)} />`}
  <//>`;
}

function TestEvent({ onSent }) {
  const [url, setUrl] = useState("");
  const [state, setState] = useState({ busy: false, response: null, problem: null });
  async function test(event) {
    event.preventDefault();
    setState({ busy: true, response: null, problem: null });
    try {
      setState({ busy: false, response: await ask("/v1/webhooks/test", { method: "POST", body: { url: url.trim() } }), problem: null });
      onSent();
    } catch (problem) {
      setState({ busy: false, response: null, problem });
    }
  }
  const { response, problem } = state;
  const isAboutUrl = ["url", "webhook_url"].includes(problem?.param);
  return html`<${Panel} title="Test event" about="Send a signed test event to your endpoint.">
    <form class="stack" onSubmit=${test}>
      <${TextField} label="Endpoint URL" type="url" value=${url} onInput=${setUrl}
          placeholder="https://hooks.your-company.com/penstock" required wrong=${isAboutUrl ? problem.message : undefined} />
      <div><button class="button" id="send-test" disabled=${state.busy || !url.trim()}>Send a test event</button></div>
      ${response && html`<div class=${`notice ${response.delivered ? "good" : "bad"}`} id="test-result" role="status"><${Icon}
          name=${response.delivered ? "check" : "alert"} />
        <div>${response.delivered ? "Delivered" : "Not delivered"}: ${response.result}, <span class="figures">${duration(response.duration_ms)}</span></div></div>`}
      ${!isAboutUrl && html`<${Problem} problem=${problem} />`}
    </form>
  <//>`;
}

function Message({ id, canManage, onClose, onChange }) {
  const loaded = useData((signal) => ask(`/v1/webhooks/messages/${id}`, { signal }), [id], { every: REFRESH_MS });
  const [problem, setProblem] = useState(null);
  async function again() {
    try {
      await ask(`/v1/webhooks/messages/${id}/redeliver`, { method: "POST" });
      setProblem(null);
      loaded.reload();
      onChange();
    } catch (fault) {
      setProblem(fault);
    }
  }
  const message = loaded.data;
  const footer = html`<button type="button" class="button" onClick=${onClose}>Close</button>
    ${canManage && message && html`<button type="button" class="button main" id="redeliver"
        onClick=${again}><${Icon} name="again" />${message.status === "waiting" ? "Send now" : "Send again"}</button>`}`;
  return html`<${Dialog} title="Message" wide onClose=${onClose} footer=${footer}>
    <${Loaded} of=${loaded}>${(data) => html`
      <${Facts} of=${[["Event", data.event], ["Status", html`<${Status} of=${data.status} />`], ["Endpoint", data.url], ["ID", html`<code>
          ${data.id}</code>`],
        ["Request", data.request_id && html`<a href=${pageUrl(`requests/${data.request_id}`)}>
            ${data.request_id}</a>`], ["Next attempt", data.next_at && moment(data.next_at)]]} />
      ${data.deliveries.length ? html`<${Table} label="Deliveries" columns=${DELIVERIES} rows=${data.deliveries} />` : html`<p
          class="soft">No attempts yet.</p>`}
      <details><summary>Payload</summary><div class="snippet"><pre tabindex="0" aria-label="Body of the message">
          ${JSON.stringify(data.body, null, 2)}</pre></div></details>`}<//>
    <${Problem} problem=${problem} />
  <//>`;
}

export function Webhooks({ own }) {
  const [status, setStatus] = useState("");
  const [open, setOpen] = useState(null);
  const [resending, setResending] = useState(false);
  const page = usePages("/v1/webhooks/messages", { limit: 20, status }, { every: REFRESH_MS });
  const canManage = own.scopes.includes("admin");
  const columns = [
    { name: "When", kind: "nowrap", cell: (message) => html`<${When} at=${message.created_at} />` },
    { name: "Event", cell: ({ event }) => html`<code>${event}</code>` },
    { name: "Status", cell: (message) => html`<${Status} of=${message.status} />` },
    { name: "Endpoint", kind: "words", cell: ({ url }) => url },
    { name: "Attempts", kind: "number", cell: ({ deliveries }) => deliveries.length },
    { name: "Last result", kind: "words", cell: ({ deliveries }) => deliveries.at(-1)?.result ?? "" },
    { name: "Details", quiet: true, kind: "actions", cell: (message) => html`<button type="button" class="button small details"
        aria-label=${`Details of ${message.id}`} onClick=${() => setOpen(message.id)}>Details</button>` },
  ];
  return html`<div class="page">
    <${Head} title="Webhooks" about="Signed events about finished videos and asynchronous images, sent to each call's webhook_url." />
    <${Panel} title="Messages" flush aside=${html`<label class="row small">Status <select class="narrow" value=${status}
        onChange=${(event) => setStatus(event.target.value)}>
        ${[["", "Any"], ["waiting", "Waiting"], ["delivered", "Delivered"], ["exhausted", "Gave up"]].map(([value, label]) => html`<option
            key=${value} value=${value}>${label}</option>`)}</select></label>`}>
      <${Loaded} of=${page}>${(data) => (data.data.length
        ? html`<${Table} label="Messages" columns=${columns} rows=${data.data} rowKey=${({ id }) => id} /><${Pager} of=${page} />
          ${canManage && status === "exhausted" && html`<div class="row"><button type="button" class="button" id="redeliver-all"
              onClick=${() => setResending(true)}><${Icon} name="again" />Send all again</button></div>`}`
        : html`<${Empty} icon="hook" title="No messages" action=${html`<a class="button" href="/docs/webhooks">How to receive them</a>`}>Add <code>webhook_url</code> to a call. Its delivery attempts show up here.<//>`)}<//>
    <//>
    <div class="halves">${canManage && html`<${TestEvent} onSent=${page.reload} />`}<${Secret} canManage=${canManage} /></div>
    ${resending && html`<${Confirm} title="Send all again" verb="Send" question="Resends every message that Penstock gave up on, with the same ID and body."
        action=${() => ask("/v1/webhooks/messages/redeliver", { method: "POST" }).then(page.reload)} onClose=${() => setResending(false)} />`}
    ${open && html`<${Message} id=${open} canManage=${canManage} onClose=${() => setOpen(null)} onChange=${page.reload} />`}
  </div>`;
}
