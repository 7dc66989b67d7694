// The providers: which are on, what is missing for the others, and how healthy they are.

import { useData } from "../data.js";
import { ask } from "../gateway.js";
import { ago, plural } from "../format.js";
import { Head, Loaded } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { replaceQuery } from "../route.js";
import { html } from "../view.js";

const REFRESH_MS = 8000;

function History({ history }) {
  if (!history?.length) return null;
  const good = history.filter(({ ok }) => ok).length;
  return html`<span class="history" role="img" aria-label=${`${good} of the last ${history.length} calls succeeded`}>
    ${history.map(({ at, ok, problem }, place) => html`<i key=${place} class=${ok ? "good" : "bad"} title=${`${ago(at)}: ${ok ? "succeeded" : problem ?? "failed"}`}></i>`)}</span>`;
}

function Health({ provider }) {
  return html`<ul class="plain health">${provider.health.map((row) => html`<li key=${row.model} class="row">
    <span class="grow anywhere">${row.model}</span><${History} history=${row.history} />
    ${row.healthy ? html`<span class="chip good"><span class="dot"></span>Healthy</span>` : html`<span class="chip bad"><span class="dot"></span>Paused for ${Math.ceil(row.recovers_in_seconds)} s</span>`}
    <span class="small soft figures nowrap">${row.successes} succeeded, ${row.failures} failed</span>
    ${!row.healthy && row.last_problem && html`<span class="small bad anywhere">${row.last_problem}</span>`}</li>`)}</ul>`;
}

function Provider({ provider }) {
  const missing = provider.missing ?? [];
  return html`<li class="panel provider"><div class="body stack">
    <div class="row ends"><h2>${provider.name}</h2>${provider.on ? html`<span class="chip good"><span class="dot"></span>On</span>` : html`<span class="chip">Off</span>`}</div>
    <p class="small soft">${plural(provider.models, "model")}${provider.on ? "" : provider.reason ? `. ${provider.reason}.` : ""}</p>
    ${missing.length > 0 && html`<p class="small">Set ${missing.map((name, place) => html`${place ? " and " : ""}<code key=${name}>${name}</code>`)} and start the gateway again.</p>`}
    ${provider.health.length > 0 && html`<${Health} provider=${provider} />`}
  </div></li>`;
}

export function Providers({ query }) {
  const loaded = useData((signal) => ask("/v1/providers", { signal }), [], { every: REFRESH_MS });
  const words = (query.get("search") ?? "").toLowerCase();
  return html`<div class="page">
    <${Head} title="Providers" about="A provider is switched on by its own credential in the environment of the gateway." />
    <label class="search"><span class="only-heard">Search providers</span><${Icon} name="search" /><input type="search" placeholder="Search providers" value=${query.get("search") ?? ""} onInput=${(event) => replaceQuery("providers", { search: event.target.value })} /></label>
    <${Loaded} of=${loaded}>${({ data }) => {
      const found = data.filter(({ id, name }) => `${id} ${name}`.toLowerCase().includes(words));
      return html`
        <section class="stack" aria-label="On"><h2>On</h2><ul class="cards wide">${found.filter(({ on }) => on).map((provider) => html`<${Provider} key=${provider.id} provider=${provider} />`)}</ul></section>
        <section class="stack" aria-label="Off"><h2>Off</h2><ul class="cards">${found.filter(({ on }) => !on).map((provider) => html`<${Provider} key=${provider.id} provider=${provider} />`)}</ul></section>`;
    }}<//>
  </div>`;
}
