// One request: what was asked, what came back, how it was made, what it cost.

import { useData } from "../data.js";
import { ask, fileUrl, saveUrl, thumbnailUrl } from "../gateway.js";
import { bytes, count, duration, moment, money } from "../format.js";
import { Confirm, CopyButton, Head, Loaded, Panel, Prose } from "../parts/controls.js";
import { CredentialsBadge } from "../parts/credentials.js";
import { Icon } from "../parts/icons.js";
import { Lightbox } from "../parts/lightbox.js";
import { Output } from "../parts/media.js";
import { KINDS, Status, When } from "../parts/status.js";
import { Facts, Table } from "../parts/table.js";
import { CodeDialog } from "../playground/snippets.js";
import { TASKS } from "../playground/tasks.js";
import { pageUrl } from "../route.js";
import { html, useState } from "../view.js";

const REFRESH_MS = 1500;
const METRICS = {
  image: "Image", second: "Second", megapixel: "Megapixel", input_token: "Input token", cached_token: "Cached input token",
  output_token: "Output token", character: "Character", reported: "As the provider reported",
};
const WITH_CODE = ["image", "edit", "upscale", "video", "chat", "speech", "sound", "transcription"];
const isOpen = ({ status }) => status === "pending" || status === "processing";
// A rough price of a token has many zeros; per million it can be read.
function unitPrice({ metric, unit_price: price }) {
  if (price === null) return "";
  return metric.endsWith("token") ? `${money(price * 1e6)} per million` : money(price);
}

function Asked({ payload, record }) {
  const { prompt: written, input, messages, model, metadata, inputs, ...others } = payload?.request ?? {};
  const prompt = written ?? (typeof input === "string" ? input : undefined);
  const rest = typeof input === "string" || input === undefined ? others : { input, ...others };
  const parameters = Object.entries(rest).filter(([, value]) => value !== null && value !== undefined);
  if (!payload?.request) return html`<p class="soft">
      ${record.purged_at ? "This request was purged." : record.status === "rejected" ? "Bodies of rejected requests are not stored."
        : html`The body of this request is not stored. Turn it on with the <code>payloads</code> setting.`}</p>`;
  return html`
    ${prompt && html`<p class="quote anywhere">${prompt}</p>`}
    ${messages && html`<div class="stack tight">${messages.map(({ role, content }, place) => html`<div key=${place}><span
        class="small soft">${role}</span>
      <p class="quote anywhere">${typeof content === "string" ? content : JSON.stringify(content)}</p></div>`)}</div>`}
    ${inputs && html`<p class="small soft">With ${inputs.map(({ role }) => role.replace("_", " ")).join(", ")} as input. Input files are not kept.</p>`}
    <${Facts} of=${parameters.map(([name, value]) => [html`<code>${name}</code>`, typeof value === "object" ? html`<code>
        ${JSON.stringify(value)}</code>` : String(value)])} />`;
}

function said(response) {
  if (typeof response === "string") return response;
  return response?.choices?.[0]?.message?.content ?? null;
}

// What was sent; the record has metadata also where none was given.
function bodyOf({ metadata, inputs, ...rest }) {
  return Object.keys(metadata ?? {}).length ? { ...rest, metadata } : rest;
}

// Input files are not kept: the code reads files of these names instead.
function inputsOf({ inputs = [] }) {
  const named = inputs.map(({ role, content_type: type }, place) => ({ role, name: `${role}${inputs.length > 1 ? place + 1 : ""}.${type.split("/")[1].replace("jpeg", "jpg")}` }));
  return { inputs: named.filter(({ role }) => role !== "mask"), mask: named.some(({ role }) => role === "mask") ? "mask.png" : null };
}

function StoredOutput({ output, alt }) {
  const [size, setSize] = useState(output.width ? [output.width, output.height] : null);
  const [shown, setShown] = useState(null);
  const url = fileUrl(output.url);
  return html`<${Output} url=${url} onOpen=${() => setShown(output.id)} small=${thumbnailUrl(output, 1280)} type=${output.content_type} alt=${alt} onSize=${(width, height) => setSize([width, height])} />
    <figcaption class="row small soft figures">${size && html`<span>${size.join(" × ")}</span>`}<span>${bytes(output.size_bytes)}</span>
      <a href=${saveUrl(output.url, alt)} download>Save</a>
      ${output.expires_at && html`<span>Kept until ${moment(output.expires_at)}</span>`}<${CredentialsBadge}
          of=${output.content_credentials} /></figcaption>
    ${shown && html`<${Lightbox} key=${shown} id=${shown} onChange=${() => {}} onShow=${setShown} onClose=${() => setShown(null)} />`}
    ${output.revised_prompt && html`<details class="small"><summary>Revised prompt</summary><p class="soft">
        ${output.revised_prompt}</p></details>`}`;
}

function CameBack({ record, payload }) {
  const text = said(payload?.response);
  if (record.error_message) return html`<div class="notice bad"><${Icon} name="alert" /><div>
      <${Prose} text=${record.error_message} />${record.error_code && html`<br /><code class="small">${record.error_code}</code>`}</div></div>`;
  if (isOpen(record)) return html`<div class="pending" role="status"><span class="spinner"></span>
      ${record.progress === null ? "Being made" : `${record.progress} %`}
    ${record.progress !== null && html`<progress max="100" value=${record.progress} aria-label="Progress"></progress>`}</div>`;
  const outputs = record.outputs ?? [];
  return html`
    ${outputs.length > 0 && html`<div class=${`outputs ${outputs.length > 1 ? "many" : "alone"}`}>${outputs.map((output) => html`<figure
        key=${output.id}>
      <${StoredOutput} output=${output} alt=${payload?.request?.prompt ?? record.prompt ?? `Output of ${record.model}`} /></figure>`)}</div>`}
    ${text && html`<p class="quote anywhere">${text}</p>`}
    ${!outputs.length && !text && html`<p class="soft">
        ${record.purged_at ? "The result was purged." : "No response is stored."}</p>`}`;
}

// When an attempt ended. A provider is asked about a cancelled job later, so that one ends with its request.
function endOf(record, { status, ended_at: at }) {
  if (status !== "cancelled" || record.duration_ms === null || !at) return at;
  return new Date(Math.min(new Date(at), new Date(record.created_at).getTime() + record.duration_ms)).toISOString();
}

// Where an attempt lies in the time of its request.
function Bar({ record, attempt }) {
  const began = new Date(record.created_at).getTime();
  const last = record.attempts.map((each) => new Date(endOf(record, each) ?? each.started_at).getTime());
  const end = Math.max(began + (record.duration_ms ?? 0), ...last, began + 1);
  const share = (at) => ((new Date(at) - began) / (end - began)) * 100;
  const from = Math.min(99, Math.max(0, share(attempt.started_at)));
  const to = endOf(record, attempt);
  const width = Math.max(1, (to ? share(to) : 100) - from);
  const colour = attempt.failure ? "bad" : attempt.status === "completed" ? "good" : "";
  return html`<span class="span"><i class=${colour} style=${{ left: `${from}%`, width: `${Math.min(width, 100 - from)}%` }}></i></span>`;
}

const attemptColumns = (record) => [
  { name: "Provider", cell: (attempt) => html`<span class="medium">${attempt.provider_name ?? attempt.provider}</span><br /><span
      class="soft small anywhere">${attempt.model}</span>` },
  { name: "Outcome", cell: ({ status }) => html`<${Status} of=${status} />` },
  { name: "Timeline", kind: "spare", cell: (attempt) => html`<${Bar} record=${record} attempt=${attempt} />` },
  { name: "Duration", kind: "number", cell: (attempt) => {
    const to = endOf(record, attempt);
    return to ? duration(Math.max(0, new Date(to) - new Date(attempt.started_at))) : "–";
  } },
  { name: "Details", kind: "words long", cell: ({ failure, http_status: status, upstream_id: id }) => (failure
    ? html`<span class="bad">${failure.reason}</span>${status ? html` <code class="small nowrap">HTTP ${status}</code>` : ""}
        ${failure.message && html`<br /><span class="soft small anywhere">${failure.message}</span>`}`
    : id ? html`<span class="small soft">Provider ID: <code class="anywhere">${id}</code></span>` : "") },
];
const COSTS = [
  { name: "What", cell: ({ metric }) => METRICS[metric] ?? metric },
  { name: "Quantity", kind: "number", cell: ({ quantity }) => count(quantity) },
  { name: "Price", kind: "number", cell: unitPrice },
  { name: "Cost", kind: "number", cell: ({ amount }) => money(amount) },
];
const DELIVERIES = [
  { name: "Attempt", kind: "number", cell: ({ number }) => number },
  { name: "When", cell: ({ at }) => html`<${When} at=${at} />` },
  { name: "Result", cell: ({ result }) => result },
  { name: "Duration", kind: "number", cell: ({ duration_ms: ms }) => duration(ms) },
];

function Purge({ record, onDone }) {
  const [asking, setAsking] = useState(false);
  const purge = () => ask(`/v1/requests/${record.id}/payloads`, { method: "DELETE" });
  return html`<button type="button" class="button danger" id="purge" disabled=${Boolean(record.purged_at) || isOpen(record)}
      onClick=${() => setAsking(true)}>
      <${Icon} name="trash" />${record.purged_at ? "Purged" : "Purge"}</button>
    ${asking && html`<${Confirm} title="Purge this request" verb="Purge" action=${purge}
        onClose=${(done) => { setAsking(false); if (done) onDone(); }}
      question="Deletes its prompt, response and files for good. Cost, times and status stay." />`}`;
}

function Details({ record, payload, reload }) {
  const [code, setCode] = useState(false);
  const path = Object.hasOwn(TASKS, record.kind) ? record.kind : "image";
  const hasCode = payload?.request && WITH_CODE.includes(record.kind);
  const attempts = record.attempts ?? [];
  const lines = record.cost_lines ?? [];
  return html`
    <${Head} title=${record.model ?? "Request"} back=${{ href: pageUrl("requests"), label: "Requests" }}
      about=${html`<${Status} of=${record.status} /> <span class="figures beside">${moment(record.created_at)}</span>`}>
      ${payload?.request && Object.hasOwn(TASKS, record.kind) && html`<a class="button" id="again" href=${pageUrl(`playground/${path}`, { from: record.id })}><${Icon}
          name="again" />Run again</a>`}
      ${hasCode && html`<button type="button" class="button" id="code-of-request" onClick=${() => setCode(true)}><${Icon}
          name="code" />Code</button>`}
      <${Purge} record=${record} onDone=${reload} />
    <//>
    ${code && html`<${CodeDialog} task=${path} lanes=${[{ model: record.model, body: bodyOf(payload.request) }]} run=${inputsOf(payload.request)}
        onClose=${() => setCode(false)} />`}
    <div class="split">
      <div class="stack wide">
        <${Panel} title="Request"><div class="stack" id="asked"><${Asked} payload=${payload} record=${record} /></div><//>
        <${Panel} title="Result"><div class="stack" id="came-back"><${CameBack} record=${record} payload=${payload} /></div><//>
        ${attempts.length > 0 && html`<${Panel} title="Attempts" about="Each call to a provider, in order." flush><${Table}
            label="Attempts" columns=${attemptColumns(record)} rows=${attempts} /><//>`}
        ${lines.length > 0 && html`<${Panel} title="Cost" aside=${html`<strong class="figures">${money(record.cost)}</strong>`} flush>
            <${Table} label="Cost lines" columns=${COSTS} rows=${lines} /><//>`}
        ${record.webhook && html`<${Panel} title="Webhook" aside=${html`<${Status} of=${record.webhook.status} />`}>
          <div class="stack"><${Facts} of=${[["Event", record.webhook.event], ["URL", record.webhook.url], ["Message", html`<code>
              ${record.webhook.id}</code>`]]} />
          ${record.webhook.deliveries.length > 0 && html`<${Table} label="Deliveries" columns=${DELIVERIES}
              rows=${record.webhook.deliveries} />`}</div><//>`}
      </div>
      <aside class="panel" aria-label="Facts"><div class="body"><${Facts} of=${[
        ["ID", html`<span class="id"><code title=${record.id}>${record.id}</code><${CopyButton} text=${record.id} kind="small plain" /></span>`],
        ["Kind", KINDS[record.kind]],
        ["Provider", record.provider],
        ["Executed model", record.executed_model],
        ["Cost", html`<span class="figures">${money(record.cost)}</span>`],
        ["Duration", duration(record.duration_ms)],
        ["Tokens in", record.input_tokens && html`${count(record.input_tokens)}${record.cached_tokens ? ` (${count(record.cached_tokens)} cached)` : ""}`],
        ["Tokens out", record.output_tokens && count(record.output_tokens)],
        ["Key", record.key_name ?? record.key_id],
        ["User", record.user],
        ["Session", record.session_id],
        ...Object.entries(record.labels ?? {}).map(([name, value]) => [name, value]),
        ["Drill", record.drill && html`<code>${record.drill}</code>`],
        ["Trace id", record.trace_id && html`<code>${record.trace_id}</code>`],
        ["Endpoint", record.endpoint && html`<code>${record.endpoint}</code>`],
        ["Request size", record.request_size_bytes !== null && bytes(record.request_size_bytes)],
        ["Response size", record.response_size_bytes !== null && bytes(record.response_size_bytes)],
        ["Purged", record.purged_at && moment(record.purged_at)],
      ]} /></div></aside>
    </div>
    <details><summary>The record as JSON</summary><div class="snippet"><pre tabindex="0" aria-label="The record as JSON">
        ${JSON.stringify(record, null, 2)}</pre><${CopyButton} text=${JSON.stringify(record, null, 2)} /></div></details>`;
}

export function RequestPage({ id }) {
  const [done, setDone] = useState(false);
  const loaded = useData(async (signal) => {
    const record = await ask(`/v1/requests/${encodeURIComponent(id)}`, { signal });
    const payload = await ask(`/v1/requests/${record.id}/payloads`, { signal });
    setDone(!isOpen(record));
    return { record, payload };
  }, [id, done], { every: done ? 0 : REFRESH_MS });
  return html`<div class="page">${!loaded.data && html`<${Head} title="Request"
      back=${{ href: pageUrl("requests"), label: "Requests" }} />`}<${Loaded} of=${loaded}>${(data) => html`<${Details} ...${data}
      reload=${loaded.reload} />`}<//></div>`;
}
