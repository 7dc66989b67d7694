// The providers: which are on, what is missing for the others, how healthy they are, and a real check.

import { useData } from "../data.js";
import { ask } from "../gateway.js";
import { ago, duration, money, plural } from "../format.js";
import { Confirm, Head, Loaded, Problem } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { address, replaceQuery } from "../route.js";
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

function Health({ provider }) {
  return html`<ul class="plain health">${provider.health.map((row) => html`<li key=${row.model} class="row">
    <span class="grow anywhere">${row.model}</span><${History} history=${row.history} />
    ${row.healthy ? html`<span class="chip good"><span class="dot"></span>Healthy</span>` : html`<span class="chip bad"><span
        class="dot"></span>Paused for ${Math.ceil(row.recovers_in_seconds)} s</span>`}
    <span class="small soft figures nowrap">${row.successes} succeeded, ${row.failures} failed</span>
    ${!row.healthy && row.last_problem && html`<span class="small bad anywhere">Last: ${inWords(row.last_problem)}</span>`}</li>`)}</ul>`;
}

function Check({ provider }) {
  const [price, setPrice] = useState(null);
  const [answer, setAnswer] = useState(null);
  const [problem, setProblem] = useState(null);
  const call = (query = "") => ask(`/v1/providers/${provider.id}/check${query}`, { method: "POST", body: {} });
  const prepare = () => call("?dryRun=true").then((estimate) => { setPrice(estimate); setProblem(null); }, setProblem);
  const question = price && `This makes a real call to ${price.model}. It costs about ${money(price.estimate)} and is listed under Requests.`;
  return html`<div class="stack tight">
    <div><button type="button" class="button small check-provider"
        onClick=${prepare}>Check ${provider.name} now</button></div>
    <${Problem} problem=${problem} />
    ${answer && html`<div class=${`notice ${answer.error ? "bad" : "good"}`} role="status"><${Icon} name=${answer.error ? "alert" : "check"} />
      <div>${answer.error ? answer.error.message : answer.status === "started" ? "Accepted; it is being made." : "It works."}
        <span class="figures"> ${answer.cost === null ? "" : money(answer.cost)} ${duration(answer.duration_ms)} </span>
        ${answer.request_id && html`<a href=${address(`requests/${answer.request_id}`)}>Open request</a>`}</div></div>`}
    ${price && html`<${Confirm} title=${`Check ${provider.name}`} verb="Make the call" question=${question}
      action=${() => call().then(setAnswer)} onClose=${() => setPrice(null)} />`}
  </div>`;
}

function Provider({ provider }) {
  const { missing } = provider;
  return html`<li class="panel provider"><div class="body stack">
    <div class="row ends"><h2>${provider.name}</h2>${provider.on ? html`<span class="chip good"><span
        class="dot"></span>On</span>` : html`<span class="chip">Off</span>`}</div>
    <p class="small soft">${plural(provider.models, "model")}${provider.on || missing.length || !provider.reason ? "" : `. ${provider.reason}.`}</p>
    ${missing.length > 0 && html`<p class="small">Set ${missing.map((name, place) => html`${place ? " and " : ""}<code key=${name}>
        ${name}</code>`)} and start the gateway again.</p>`}
    ${provider.health.length > 0 && html`<${Health} provider=${provider} />`}
    ${provider.on && html`<${Check} provider=${provider} />`}
  </div></li>`;
}

export function Providers({ query }) {
  const loaded = useData((signal) => ask("/v1/providers", { signal }), [], { every: REFRESH_MS });
  const words = (query.get("search") ?? "").toLowerCase();
  return html`<div class="page">
    <${Head} title="Providers" about="A provider is switched on by its own credential in the environment of the gateway." />
    <label class="search"><span class="only-heard">Search providers</span><${Icon} name="search" /><input type="search"
        placeholder="Search providers" value=${query.get("search") ?? ""}
        onInput=${(event) => replaceQuery("providers", { search: event.target.value })} /></label>
    <${Loaded} of=${loaded}>${({ data }) => {
      const found = data.filter(({ id, name }) => `${id} ${name}`.toLowerCase().includes(words));
      return html`
        <section class="stack" aria-label="On"><h2>On</h2><ul class="cards wide">
            ${found.filter(({ on }) => on).map((provider) => html`<${Provider} key=${provider.id} provider=${provider} />`)}</ul></section>
        <section class="stack" aria-label="Off"><h2>Off</h2><ul class="cards">
            ${found.filter(({ on }) => !on).map((provider) => html`<${Provider} key=${provider.id}
            provider=${provider} />`)}</ul></section>`;
    }}<//>
  </div>`;
}
