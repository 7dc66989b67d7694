// The overview: spend, requests, success and latency over time, the balance, and what fails now.

import { useData } from "../data.js";
import { ask, withQuery } from "../gateway.js";
import { count, duration, money, percent, plural } from "../format.js";
import { CopyButton, Empty, Head, Loaded, Panel, Prose } from "../parts/controls.js";
import { Chart } from "../parts/chart.js";
import { Icon } from "../parts/icons.js";
import { Status, When } from "../parts/status.js";
import { Table } from "../parts/table.js";
import { snippets } from "../playground/snippets.js";
import { SAMPLES } from "../playground/tasks.js";
import { pageUrl, replaceQuery } from "../route.js";
import { html } from "../view.js";

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
const GROUPS = { none: "Everything", model: "By model", provider: "By provider", key: "By key", user: "By user", session: "By session", account: "By account" };
const LABEL = "label:";
const groupTitle = (group) => GROUPS[group] ?? `By ${group.slice(LABEL.length)}`;
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

// How much a figure changed since the time before, which was as long.
function Change({ now, before, about }) {
  if (!before || now === null || now === undefined) return null;
  const share = now / before - 1;
  if (Math.abs(share) < 0.005) return null;
  const words = Math.abs(share) >= 10 ? "more than tenfold" : `${Math.round(Math.abs(share) * 100)} %`;
  return html`<span class="change figures" title=${about}>${share > 0 ? "↑" : "↓"} ${words}<span class="only-heard"> ${about}</span></span>`;
}

function Figure({ label, value, note, change, tone = "", id }) {
  return html`<div class="figure" id=${id}><span class="soft">${label}${change}</span><strong class=${`figures ${tone}`}>${value}</strong><span
      class="small soft figures">${note}</span></div>`;
}

function lasts({ pace, billing_type: billing }) {
  if (billing === "postpaid") return "Postpaid";
  if (!pace || pace.days_left === null || pace.days_left === undefined) return "Nothing spent lately";
  if (pace.days_left > 730) return "Lasts for years";
  return pace.days_left < 1 ? "Less than a day left" : `Lasts about ${plural(Math.floor(pace.days_left), "day")}`;
}

function Figures({ usage, balance, before, about }) {
  const { total } = usage;
  const change = (now, past) => html`<${Change} now=${now} before=${past} about=${about} />`;
  const days = balance.pace?.days_left;
  return html`<section class="panel figures-row" aria-label="Figures">
    <${Figure} id="spend" label="Spend" value=${money(total.cost)} change=${change(total.cost, before?.cost)}
        note=${total.completed ? `${money(total.cost / total.completed)} per request` : ""} />
    <${Figure} id="requests" label="Requests" value=${count(total.requests)} change=${change(total.requests, before?.requests)}
        note=${`${count(total.failed)} failed, ${count(total.rejected)} rejected`} />
    <${Figure} id="success" label="Success" value=${percent(total.success_rate)}
        tone=${total.success_rate !== null && total.success_rate < 0.95 ? "bad" : ""} note="of provider calls" />
    <${Figure} id="latency" label="Latency" value=${duration(total.latency_ms.p50)}
        change=${change(total.latency_ms.p50, before?.latency_ms.p50)}
        note=${`p95 ${duration(total.latency_ms.p95)}`} />
    <${Figure} id="available" label="Balance" value=${balance.billing_type === "prepaid" ? money(balance.available.amount) : "–"}
        tone=${days !== null && days !== undefined && days < 3 ? "bad" : ""} note=${lasts(balance)} />
  </section>`;
}

const BREAKDOWN = (what, filter) => [
  { name: what, kind: "words", cell: (group) => (group.group && filter
    ? html`<a class="quiet" href=${pageUrl("requests", { [filter]: group.group })}>${labelOf(group)}</a>` : labelOf(group)) },
  { name: "Requests", kind: "number", cell: ({ requests }) => count(requests) },
  { name: "Success", kind: "number", cell: ({ success_rate: rate }) => percent(rate) },
  { name: "Median", kind: "number", cell: ({ latency_ms: latency }) => duration(latency.p50) },
  { name: "p95", kind: "number", cell: ({ latency_ms: latency }) => duration(latency.p95) },
  { name: "Tokens", kind: "number", cell: ({ input_tokens: input, output_tokens: output }) => (input + output ? count(input + output) : "–") },
  { name: "Spend", kind: "number", cell: ({ cost }) => money(cost) },
];
// The name of the first column, and the filter of requests that it stands for.
const COLUMNS = {
  model: ["Model", "model"], provider: ["Provider", "provider"], key: ["Key", "key_id"], user: ["User", "user"], session: ["Session", "session_id"], account: ["Account", ""],
};
const columnOf = (group) => COLUMNS[group] ?? [group.slice(LABEL.length), `label.${group.slice(LABEL.length)}`];
const FAILURES = [
  { name: "Why", kind: "words long", cell: ({ message, reason, error_code: code }) => html`<span class="anywhere"><${Prose}
      text=${message ?? reason ?? "No message"} /></span>${message && reason && html`<br /><span class="small soft">${reason}</span>`}
      <br /><code class="small soft">${code}</code>` },
  { name: "Model", kind: "words", cell: ({ model }) => model ?? "" },
  { name: "Provider", cell: ({ provider }) => provider ?? "" },
  { name: "State", cell: ({ status }) => html`<${Status} of=${status} />` },
  { name: "Count", kind: "number", cell: ({ count: number, status, model, provider }) => html`<a
      href=${pageUrl("requests", { status, model, provider })}>${count(number)}<span class="only-heard"> such requests</span></a>` },
  { name: "Last", kind: "nowrap", cell: ({ last_at: at, last_request_id: id }) => html`<a href=${pageUrl(`requests/${id}`)}><${When}
      at=${at} /><span class="only-heard">, request ${id}</span></a>` },
];

function FirstSteps() {
  const code = (key) => snippets("image", { model: "atelier/sketch", prompt: SAMPLES.image[0] }, {}, key).curl;
  return html`<ol class="steps">
    <li class="panel"><h2>Make your first image</h2><p class="soft">The built-in models need no account or API key.</p>
      <a class="button main" href=${pageUrl("playground")}><${Icon} name="play" />Open the playground</a></li>
    <li class="panel"><h2>Call it from a program</h2><p class="soft">Any OpenAI client works. Change its base URL and key.</p>
      <div class="snippet"><pre tabindex="0" aria-label="Example with curl">
          ${code("YOUR_KEY")}</pre><${CopyButton} text=${code("YOUR_KEY")} /></div>
      <p class="small soft"><a href=${pageUrl("keys")}>Make a key</a> for the program.</p></li>
    <li class="panel"><h2>Connect a provider</h2><p
        class="soft">Start the gateway with its credential in the environment, such as <code>OPENAI_API_KEY</code> or <code>FAL_KEY</code>. Its models show up automatically.</p>
      <a class="button" href="/docs/providers">Providers and their variables</a></li>
    <li class="panel"><h2>Give each program its own key</h2><p class="soft">With its own limits and budget.</p><a class="button"
        href=${pageUrl("keys")}>Keys</a></li>
  </ol>`;
}

// From a little below the lowest rate up to all.
const rateRange = () => [0, 1];

function Charts({ usage, bucket }) {
  const times = usage.data.map(({ start }) => new Date(start) / 1000);
  const [short, long] = TIMES[bucket];
  const write = (style) => (seconds) => new Date(seconds * 1000).toLocaleString(undefined, style);
  const rates = [{ name: "Success", values: usage.data.map(({ success_rate: rate }) => rate) }];
  const latencies = [
    { name: "Median", values: usage.data.map(({ latency_ms: { p50 } }) => p50) },
    { name: "p95", values: usage.data.map(({ latency_ms: { p95 } }) => p95) },
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
  const asked = query.get("by") ?? "";
  const group = Object.hasOwn(GROUPS, asked) || asked.startsWith(LABEL) ? asked : "model";
  const labels = useData(async (signal) => (await ask("/v1/labels", { signal })).declared_labels.map(({ name }) => LABEL + name));
  const { bucket, start } = RANGES[range];
  const change = (values) => replaceQuery("overview", { range, by: group, ...values });
  const loaded = useData(async (signal) => {
    const after = new Date(start(Date.now())).toISOString();
    const [usage, balance, failures] = await Promise.all([
      ask(withQuery("/v1/usage", { created_after: after, bucket, group_by: group === "none" ? "" : group }), { signal }),
      ask("/v1/balance", { signal }),
      ask("/v1/usage/failures", { signal }),
    ]);
    const isNew = usage.total.requests === 0 && (await ask("/v1/requests?limit=1", { signal })).data.length === 0;
    return { range, usage, balance, failures: failures.data, isNew };
  }, [range, group], { every: REFRESH_MS });
  const past = useData(async (signal) => {
    const now = Date.now();
    const began = start(now);
    const times = { created_after: new Date(2 * began - now).toISOString(), created_before: new Date(began - 1).toISOString() };
    return { range, total: (await ask(withQuery("/v1/usage", { ...times, bucket: "month" }), { signal })).total };
  }, [range]);
  const isNew = loaded.data?.isNew ?? false;
  return html`<div class="page">
    <${Head} title="Overview">
      ${!isNew && html`<label class="only-heard" for="by">Group</label><select id="by" class="narrow" value=${group}
          onChange=${(event) => change({ by: event.target.value })}>
        ${[...new Set([...Object.keys(GROUPS), ...(labels.data ?? []), group])].map((name) => html`<option key=${name} value=${name}
            selected=${name === group}>${groupTitle(name)}</option>`)}</select>
      <div class="tabs" role="group" aria-label="Period">${Object.entries(RANGES).map(([name, { label }]) => html`
        <button type="button" key=${name} aria-pressed=${String(name === range)} onClick=${() => change({ range: name })}>
            ${label}</button>`)}</div>`}
    <//>
    <${Loaded} of=${loaded}>${({ range: shown, usage, balance, failures }) => (isNew ? html`<${FirstSteps} />` : html`
      <${Figures} usage=${usage} balance=${balance} before=${past.data?.range === shown ? past.data.total : null}
          about=${`compared with the ${RANGES[shown].label} before`} />
      <${Charts} usage=${usage} bucket=${RANGES[shown].bucket} />
      ${group !== "none" && html`<${Panel} title=${groupTitle(group)} flush><${Table} label=${groupTitle(group)}
          columns=${BREAKDOWN(...columnOf(group))} rows=${usage.groups} /><//>`}
      <${Panel} title="Current failures" about="Last 24 hours, most frequent first: what callers got and why the last provider failed." flush>${failures.length
        ? html`<${Table} label="Current failures" columns=${FAILURES} rows=${failures} />`
        : html`<${Empty} icon="check" title="No failures">No request of the last 24 hours failed.<//>`}<//>`)}<//>
  </div>`;
}
