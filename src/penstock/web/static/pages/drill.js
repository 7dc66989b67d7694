// Drill: what an outage would have done to past requests. Nothing is called.

import { useData } from "../data.js";
import { count, duration, money } from "../format.js";
import { ask, withQuery } from "../gateway.js";
import { Empty, Head, Loaded, Panel, SelectField } from "../parts/controls.js";
import { KINDS } from "../parts/status.js";
import { Facts, Table } from "../parts/table.js";
import { html, useEffect, useState } from "../view.js";

const DAY_MS = 86_400_000;
const WINDOWS = [["The last hour", DAY_MS / 24], ["The last 24 hours", DAY_MS], ["The last 7 days", 7 * DAY_MS], ["The last 31 days", 31 * DAY_MS]];
const FAULTS = [["is down", "down", ""], ["takes 4 times as long", "slow", "=4x"], ["takes 20 times as long", "slow", "=20x"],
  ["costs 1.5 times as much", "dearer", "=1.5x"], ["costs twice as much", "dearer", "=2x"]];
const some = (number) => (number ? count(number) : "");
const COLUMNS = [
  { name: "Kind", cell: ({ kind }) => KINDS[kind] ?? kind },
  { name: "Model", kind: "words", cell: ({ model }) => model },
  { name: "Provider", cell: ({ provider }) => provider },
  { name: "Requests", kind: "number", cell: ({ requests }) => count(requests) },
  { name: "Failed over", kind: "number", cell: (row) => some(row.failed_over) },
  { name: "To", kind: "words", cell: (row) => Object.entries(row.served_by).map(([name, number]) => `${name} ${count(number)}`).join(", ") },
  { name: "Waited", kind: "number", cell: ({ waited }) => some(waited) },
  { name: "Failed", kind: "number", cell: ({ failed }) => some(failed) },
  { name: "Takes then", kind: "number", cell: (row) => duration(row.mean_seconds_then * 1000) },
  { name: "Cost", kind: "number", cell: ({ cost }) => money(cost) },
  { name: "Cost then", kind: "number", cell: (row) => money(row.cost_then) },
];

function Report({ report }) {
  const facts = [["Requests", count(report.requests)], ["As they were", count(report.unaffected)], ["Failed over", count(report.failed_over)],
    ["Waited", count(report.waited)], ["Failed", html`<span id="failed">${count(report.failed)}</span>`], ["Not known", some(report.unknown)],
    ["Cost", money(report.cost)], ["Cost then", html`<strong id="cost-then">${money(report.cost_then)}</strong>`]];
  return html`<${Panel} title="In all"><${Facts} of=${facts} /><//>
    <${Panel} label="By kind, model and provider" flush>${report.classes.length ? html`<${Table} label="By kind, model and provider"
        columns=${COLUMNS} rows=${report.classes} rowKey=${({ kind, model, provider }) => `${kind} ${model} ${provider}`} />`
      : html`<${Empty} icon="chart" title="No requests">No provider completed a request in this time.<//>`}<//>`;
}

export function Drill() {
  const [span, setSpan] = useState(DAY_MS);
  const [provider, setProvider] = useState("");
  const [fault, setFault] = useState(0);
  const [end] = useState(() => Date.now());
  const times = { created_after: new Date(end - span).toISOString(), created_before: new Date(end).toISOString() };
  const usual = useData((signal) => ask(withQuery("/v1/drill", times), { signal }), [span]);
  const providers = [...new Set((usual.data?.classes ?? []).map((each) => each.provider).filter(Boolean))].sort();
  useEffect(() => { if (providers.length && !providers.includes(provider)) setProvider(providers[0]); }, [providers.join()]);
  const [, param, suffix] = FAULTS[fault];
  const asked = provider ? { ...times, [param]: `${provider}${suffix}` } : times;
  const loaded = useData((signal) => ask(withQuery("/v1/drill", asked), { signal }), [span, provider, fault]);
  return html`<div class="page">
    <${Head} title="Drill" about="What an outage would have done to past requests: who would have taken over, what would have waited or failed, and the cost. Nothing is called." />
    <div class="filters">
      <${SelectField} label="Provider" name="provider" value=${provider} onInput=${setProvider} options=${providers.map((name) => [name, name])} />
      <${SelectField} label="What happens" name="fault" value=${fault} onInput=${(place) => setFault(Number(place))}
          options=${FAULTS.map(([words], place) => [place, words])} />
      <${SelectField} label="Requests of" name="span" value=${span} onInput=${(ms) => setSpan(Number(ms))}
          options=${WINDOWS.map(([words, ms]) => [ms, words])} />
    </div>
    <${Loaded} of=${loaded}>${(report) => html`<${Report} report=${report} />`}<//>
    <p class="soft"><a href="/docs/drills">How drills work</a></p>
  </div>`;
}
