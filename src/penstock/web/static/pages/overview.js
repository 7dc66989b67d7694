// The overview: spend, requests, success and latency over time, the balance, and what fails now.

import { useData } from "../data.js";
import { ask, withQuery } from "../gateway.js";
import { count, duration, money, percent, plural } from "../format.js";
import { CopyButton, Empty, Head, Loaded, Panel } from "../parts/controls.js";
import { Chart } from "../parts/chart.js";
import { Icon } from "../parts/icons.js";
import { Status, When } from "../parts/status.js";
import { Table } from "../parts/table.js";
import { address, replaceQuery } from "../route.js";
import { html, useMemo } from "../view.js";

const REFRESH_MS = 15_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
// Periods begin where a bucket of the API begins, so that all bars stand for the same length of time.
const RANGES = {
  day: { label: "24 hours", bucket: "hour", start: (now) => Math.floor(now / HOUR) * HOUR - 23 * HOUR },
  week: { label: "7 days", bucket: "day", start: (now) => Math.floor(now / DAY) * DAY - 6 * DAY },
  month: { label: "30 days", bucket: "day", start: (now) => Math.floor(now / DAY) * DAY - 29 * DAY },
  year: { label: "12 months", bucket: "month", start: (now) => Date.UTC(new Date(now).getUTCFullYear(), new Date(now).getUTCMonth() - 11) },
};
const GROUPS = { none: "Everything", model: "By model", provider: "By provider", key: "By key" };
// How the beginning of a bucket is written on an axis and in full. Days and months are those of UTC, as in the API.
const TIMES = {
  hour: [{ hour: "2-digit", minute: "2-digit" }, { weekday: "short", hour: "2-digit", minute: "2-digit" }],
  day: [{ day: "numeric", month: "short", timeZone: "UTC" }, { dateStyle: "medium", timeZone: "UTC" }],
  month: [{ month: "short", timeZone: "UTC" }, { month: "long", year: "numeric", timeZone: "UTC" }],
};
const MOST_SERIES = 5; // the rest is added up

const labelOf = ({ group, name }) => name ?? group ?? "none";

// One series for each of the largest groups, one for all others together.
function series(usage, figure) {
  if (!usage.group_by) return [{ name: "All", values: usage.data.map((bucket) => bucket[figure]) }];
  const largest = usage.groups.slice(0, MOST_SERIES);
  const valueOf = (bucket, { group }) => bucket.groups.find((other) => other.group === group)?.[figure] ?? 0;
  const found = largest.map((group) => ({ name: labelOf(group), values: usage.data.map((bucket) => valueOf(bucket, group)) }));
  if (usage.groups.length <= MOST_SERIES) return found;
  const rest = usage.data.map((bucket, place) => Math.max(0, bucket[figure] - found.reduce((sum, { values }) => sum + values[place], 0)));
  return [...found, { name: "Others", values: rest }];
}

function Figure({ label, value, note, tone = "", id }) {
  return html`<div class="figure" id=${id}><span class="soft">${label}</span><strong class=${`figures ${tone}`}>${value}</strong><span
      class="small soft figures">${note}</span></div>`;
}

function lasts({ pace, billing_type: billing }) {
  if (billing === "postpaid") return "Postpaid";
  if (!pace || pace.days_left === null || pace.days_left === undefined) return "Nothing spent lately";
  if (pace.days_left > 730) return "Lasts for years";
  return pace.days_left < 1 ? "Less than a day left" : `Lasts about ${plural(Math.floor(pace.days_left), "day")}`;
}

function Figures({ usage, balance }) {
  const { total } = usage;
  const days = balance.pace?.days_left;
  return html`<section class="panel figures-row" aria-label="Figures">
    <${Figure} id="spend" label="Spend" value=${money(total.cost)}
        note=${total.completed ? `${money(total.cost / total.completed)} per request` : ""} />
    <${Figure} id="requests" label="Requests" value=${count(total.requests)}
        note=${`${count(total.failed)} failed, ${count(total.rejected)} rejected`} />
    <${Figure} id="success" label="Success" value=${percent(total.success_rate)}
        tone=${total.success_rate !== null && total.success_rate < 0.95 ? "bad" : ""} note="of what providers tried" />
    <${Figure} id="latency" label="Latency" value=${duration(total.latency_ms.p50)}
        note=${`95 % within ${duration(total.latency_ms.p95)}`} />
    <${Figure} id="available" label="Balance" value=${balance.billing_type === "prepaid" ? money(balance.available.amount) : "–"}
        tone=${days !== null && days !== undefined && days < 3 ? "bad" : ""} note=${lasts(balance)} />
  </section>`;
}

const BREAKDOWN = (what) => [
  { name: what, kind: "words", cell: (group) => labelOf(group) },
  { name: "Requests", kind: "number", cell: ({ requests }) => count(requests) },
  { name: "Success", kind: "number", cell: ({ success_rate: rate }) => percent(rate) },
  { name: "Median", kind: "number", cell: ({ latency_ms: latency }) => duration(latency.p50) },
  { name: "95 % within", kind: "number", cell: ({ latency_ms: latency }) => duration(latency.p95) },
  { name: "Tokens", kind: "number", cell: ({ input_tokens: input, output_tokens: output }) => (input + output ? count(input + output) : "–") },
  { name: "Spend", kind: "number", cell: ({ cost }) => money(cost) },
];
const FAILURES = [
  { name: "Why", kind: "words", cell: ({ message, reason, error_code: code }) => html`<span class="anywhere">${message ?? reason ?? "No message"}</span>
      <br /><code class="small soft">${code}</code>` },
  { name: "Model", kind: "words", cell: ({ model }) => model ?? "" },
  { name: "Provider", cell: ({ provider }) => provider ?? "" },
  { name: "State", cell: ({ status }) => html`<${Status} of=${status} />` },
  { name: "Count", kind: "number", cell: ({ count: number }) => count(number) },
  { name: "Last", kind: "nowrap", cell: ({ last_at: at, last_request_id: id }) => html`<a href=${address(`requests/${id}`)}><${When}
      at=${at} /><span class="only-heard">, request ${id}</span></a>` },
];

function FirstSteps() {
  const code = [
    `curl ${location.origin}/compat/v1/images/generations`,
    '  -H "Authorization: Bearer $PENSTOCK_KEY" -H "Content-Type: application/json"',
    `  -d '{"model": "atelier/sketch", "prompt": "a lighthouse at dusk, calm sea"}'`,
  ].join(" \\\n");
  return html`<ol class="steps">
    <li class="panel"><h2>Make your first image</h2><p class="soft">The built-in models need no account and no credential.</p>
      <a class="button main" href=${address("playground")}><${Icon} name="play" />Open the playground</a></li>
    <li class="panel"><h2>Call it from a program</h2><p class="soft">Every OpenAI client works: only its base URL and key change.</p>
      <div class="snippet"><pre tabindex="0" aria-label="Example with curl">${code}</pre><${CopyButton} text=${code} /></div></li>
    <li class="panel"><h2>Connect a provider</h2><p
        class="soft">Start the gateway with its credential in the environment, such as <code>OPENAI_API_KEY</code> or <code>FAL_KEY</code>. Its models appear by themselves.</p>
      <a class="button" href=${address("models")}>All models</a></li>
    <li class="panel"><h2>Give each program its own key</h2><p class="soft">With its own limits and budget.</p><a class="button"
        href=${address("keys")}>Keys</a></li>
  </ol>`;
}

// From a little below the lowest rate up to all.
const rateRange = (low) => [Math.max(0, Math.floor((low ?? 0) * 20 - 1) / 20), 1];

function Charts({ usage, bucket }) {
  const times = usage.data.map(({ start }) => new Date(start) / 1000);
  const [short, long] = TIMES[bucket];
  const write = (style) => (seconds) => new Date(seconds * 1000).toLocaleString(undefined, style);
  const rates = [{ name: "Success", values: usage.data.map(({ success_rate: rate }) => rate) }];
  const latencies = [
    { name: "Median", values: usage.data.map(({ latency_ms: { p50 } }) => p50) },
    { name: "95 % within", values: usage.data.map(({ latency_ms: { p95 } }) => p95) },
  ];
  const shared = { times, timeText: write(long), axisText: write(short) };
  return html`<div class="charts">
    <${Panel} title="Spend"><${Chart} title="Spend" ...${shared} series=${series(usage, "cost")} format=${money} /><//>
    <${Panel} title="Requests"><${Chart} title="Requests" ...${shared} series=${series(usage, "requests")} format=${count} /><//>
    <${Panel} title="Success rate"><${Chart} title="Success rate" ...${shared} series=${rates} kind="lines" format=${percent}
        range=${rateRange} /><//>
    <${Panel} title="Latency"><${Chart} title="Latency" ...${shared} series=${latencies} kind="lines" format=${duration} /><//>
  </div>`;
}

export function Overview({ query }) {
  const range = Object.hasOwn(RANGES, query.get("range") ?? "") ? query.get("range") : "week";
  const group = Object.hasOwn(GROUPS, query.get("by") ?? "") ? query.get("by") : "model";
  const { bucket, start } = RANGES[range];
  const change = (values) => replaceQuery("overview", { range, by: group, ...values });
  const loaded = useData(async (signal) => {
    const after = new Date(start(Date.now())).toISOString();
    const [usage, balance, failures] = await Promise.all([
      ask(withQuery("/v1/usage", { created_after: after, bucket, group_by: group === "none" ? "" : group }), { signal }),
      ask("/v1/balance", { signal }),
      ask("/v1/usage/failures", { signal }),
    ]);
    return { usage, balance, failures: failures.data };
  }, [range, group], { every: REFRESH_MS });
  const isNew = useMemo(() => loaded.data && range !== "day" && loaded.data.usage.total.requests === 0, [loaded.data]);
  return html`<div class="page">
    <${Head} title="Overview">
      ${!isNew && html`<label class="only-heard" for="by">Group</label><select id="by" class="narrow" value=${group}
          onChange=${(event) => change({ by: event.target.value })}>
        ${Object.entries(GROUPS).map(([name, label]) => html`<option key=${name} value=${name} selected=${name === group}>
            ${label}</option>`)}</select>
      <div class="tabs" role="group" aria-label="Period">${Object.entries(RANGES).map(([name, { label }]) => html`
        <button type="button" key=${name} aria-pressed=${String(name === range)} onClick=${() => change({ range: name })}>
            ${label}</button>`)}</div>`}
    <//>
    <${Loaded} of=${loaded}>${({ usage, balance, failures }) => (isNew ? html`<${FirstSteps} />` : html`
      <${Figures} usage=${usage} balance=${balance} />
      <${Charts} usage=${usage} bucket=${bucket} />
      ${group !== "none" && html`<${Panel} title=${GROUPS[group]} flush><${Table} label=${GROUPS[group]}
          columns=${BREAKDOWN({ model: "Model", provider: "Provider", key: "Key" }[group])} rows=${usage.groups} /><//>`}
      <${Panel} title="What fails now" about="In the last 24 hours, the most frequent first." flush>${failures.length
        ? html`<${Table} label="What fails now" columns=${FAILURES} rows=${failures} />`
        : html`<${Empty} icon="check" title="Nothing fails">No request of the last 24 hours failed.<//>`}<//>`)}<//>
  </div>`;
}
