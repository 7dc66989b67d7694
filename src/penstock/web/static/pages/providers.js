// The providers: which are on, what is missing for the others, how healthy they are, and a real check.

import { useData } from "../data.js";
import { ask } from "../gateway.js";
import { ago, duration, money, plural } from "../format.js";
import { Confirm, Empty, Head, Loaded, Panel, Problem } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { Table } from "../parts/table.js";
import { pageUrl, replaceQuery } from "../route.js";
import { html, useState } from "../view.js";

const REFRESH_MS = 8000;

const PROBLEMS = {
  rejected: "it rejected a request",
  refused: "it refused the content",
  busy: "it was too busy",
  down: "it was unavailable",
  unsent: "it could not be reached",
  broken: "it failed, or did not accept the gateway's account",
  timeout: "no response came in time",
  unreadable: "its response could not be read",
  unfetched: "its output could not be downloaded",
};
const inWords = (problem) => PROBLEMS[problem] ?? problem;

function History({ history }) {
  const good = history.filter(({ is_success: success }) => success).length;
  return html`<span class="history" role="img" aria-label=${`${good} of the last ${history.length} calls succeeded`}>
    ${history.map(({ at, is_success: success, problem }, place) => html`<i key=${place} class=${success ? "good" : "bad"}
        title=${`${ago(at)}: ${success ? "succeeded" : inWords(problem)}`}></i>`)}</span>`;
}

// In use and working, in use although the last call failed, or paused.
function State({ row, isFailing }) {
  if (!row.healthy) return html`<span class="chip bad"><span class="dot"></span>Paused for ${Math.ceil(row.recovers_in_seconds)} s</span>`;
  if (isFailing) return html`<span class="chip warn"><span class="dot"></span>Failing</span>`;
  return html`<span class="chip good"><span class="dot"></span>Healthy</span>`;
}

function Health({ provider }) {
  return html`<ul class="plain health">${provider.health.map((row) => {
    const isFailing = row.history.at(-1)?.is_success === false;
    return html`<li key=${row.model} class="row">
      <span class="grow anywhere">${row.model}</span><${History} history=${row.history} /><${State} row=${row} isFailing=${isFailing} />
      <span class="small soft figures nowrap">${row.successes} succeeded, ${row.failures} failed</span>
      ${isFailing && row.last_problem && html`<span class="small bad last">Last: ${inWords(row.last_problem)}</span>`}</li>`;
  })}</ul>`;
}

function Check({ provider }) {
  const [price, setPrice] = useState(null);
  const [result, setResult] = useState(null);
  const [problem, setProblem] = useState(null);
  const call = (query = "") => ask(`/v1/providers/${provider.id}/check${query}`, { method: "POST", body: {} });
  const prepare = () => call("?dryRun=true").then((estimate) => { setPrice(estimate); setProblem(null); }, setProblem);
  const question = price && `This makes a real call to ${price.model}. It costs about ${money(price.estimate)} and is listed under Requests.`;
  return html`<div class="stack tight">
    <div><button type="button" class="button small check-provider"
        onClick=${prepare}>Check ${provider.name} now</button></div>
    <${Problem} problem=${problem} />
    ${result && html`<div class=${`notice ${result.error ? "bad" : "good"}`} role="status"><${Icon} name=${result.error ? "alert" : "check"} />
      <div>${result.error ? result.error.message : result.status === "started" ? "Accepted; it is being made." : "It works."}
        <span class="figures"> ${result.cost === null ? "" : money(result.cost)} ${duration(result.duration_ms)} </span>
        ${result.request_id && html`<a href=${pageUrl(`requests/${result.request_id}`)}>Open request</a>`}</div></div>`}
    ${price && html`<${Confirm} title=${`Check ${provider.name}`} verb="Make the call" question=${question}
      action=${() => call().then(setResult)} onClose=${() => setPrice(null)} />`}
  </div>`;
}

function Provider({ provider }) {
  return html`<li class="panel provider"><div class="body stack">
    <div class="row ends"><div><h2>${provider.name}</h2><p class="small soft">${plural(provider.models, "model")}</p></div><span
        class="chip good"><span class="dot"></span>On</span></div>
    ${provider.health.length > 0 ? html`<${Health} provider=${provider} />` : html`<p class="small soft">Not called since the last start.</p>`}
    <${Check} provider=${provider} />
  </div></li>`;
}

const SET_VARIABLE = html`Set the variable in the environment of the gateway and start it again. The documentation has <a
  href="/docs/providers">a page for each provider</a>.`;
const OFF = [
  { name: "Provider", kind: "words lead", cell: ({ name }) => html`<strong class="medium">${name}</strong>` },
  { name: "Models", kind: "number figure", cell: ({ models }) => plural(models, "model") },
  { name: "What is missing", kind: "words state", cell: ({ missing, reason }) => (missing.length
    ? missing.map((name, place) => html`${place ? " and " : ""}<code key=${name}>${name}</code>`) : reason ?? "") },
];

export function Providers({ query }) {
  const loaded = useData((signal) => ask("/v1/providers", { signal }), [], { every: REFRESH_MS });
  const words = (query.get("search") ?? "").toLowerCase();
  return html`<div class="page">
    <${Head} title="Providers" about="A provider is switched on by its own credential in the environment of the gateway." />
    <label class="search"><span class="only-heard">Search providers</span><${Icon} name="search" /><input type="search"
        placeholder="Search providers" value=${query.get("search") ?? ""}
        onInput=${(event) => replaceQuery("providers", { search: event.target.value })} /></label>
    <${Loaded} of=${loaded}>${({ data }) => {
      const sorted = data.toSorted((one, other) => one.name.localeCompare(other.name));
      const found = sorted.filter(({ id, name }) => `${id} ${name}`.toLowerCase().includes(words));
      const on = found.filter((provider) => provider.on);
      const off = found.filter((provider) => !provider.on);
      return html`
        ${on.length > 0 && html`<section class="stack" aria-label="On"><h2>On</h2><ul class="cards wide">
            ${on.map((provider) => html`<${Provider} key=${provider.id} provider=${provider} />`)}</ul></section>`}
        ${off.length > 0 && html`<${Panel} title="Off" about=${SET_VARIABLE} flush>
          <${Table} label="Off" columns=${OFF} rows=${off} rowKey=${({ id }) => id} brief /><//>`}
        ${!found.length && html`<div class="panel"><${Empty} icon="plug" title="No such provider">Any OpenAI-compatible server can be added in
          <code>penstock.toml</code>: <a href="/docs/any-model">any model</a>.<//></div>`}`;
    }}<//>
  </div>`;
}
