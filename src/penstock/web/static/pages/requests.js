// The list of requests: filters in the URL, live updates, export as CSV.

import { models, once, useData } from "../data.js";
import { send, withQuery } from "../gateway.js";
import { duration, money, plural } from "../format.js";
import { Empty, Head, Loaded, Panel, Problem, Prose, SelectField, TextField } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { Thumb } from "../parts/media.js";
import { KINDS, Status, STATUSES, When } from "../parts/status.js";
import { Pager, Table, usePages } from "../parts/table.js";
import { pageUrl, replaceQuery } from "../route.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { RequestPage } from "./request.js";

const REFRESH_MS = 3000;
const CREDENTIALS = [["signed", "Signed"], ["carried", "Carried over"], ["kept", "Kept"], ["none", "None"], ["removed", "Removed"],
  ["invalid", "Do not hold"], ["failed", "Signing failed"]];
const NAMES = ["status", "kind", "model", "provider", "key_id", "content_credentials", "user", "session_id", "created_after", "created_before", "search"];
const LABEL = "label."; // filters by labels are named after them
const namesIn = (query) => [...NAMES, ...[...query.keys()].filter((name) => name.startsWith(LABEL))];
const TYPING_MS = 300;

const any = (options) => [["", "Any"], ...options];

// The filters as the API takes them: days become moments in this browser's time zone.
function asked(query) {
  const values = Object.fromEntries(namesIn(query).map((name) => [name, query.get(name) ?? ""]));
  if (values.created_after) values.created_after = new Date(`${values.created_after}T00:00:00`).toISOString();
  if (values.created_before) values.created_before = new Date(`${values.created_before}T23:59:59.999`).toISOString();
  return values;
}

function Filters({ query, onChange }) {
  const choices = useData(async () => {
    const [known, keys, labels] = await Promise.all([models(), once("/v1/keys?limit=100"), once("/v1/labels")]);
    return { models: known, keys: keys.data, labels: labels.declared_labels, providers: [...new Set(known.flatMap((model) => model.providers))] };
  });
  const { models: known = [], keys = [], labels = [], providers = [] } = choices.data ?? {};
  const [search, setSearch] = useState(query.get("search") ?? "");
  useEffect(() => {
    const timer = setTimeout(() => { if (search !== (query.get("search") ?? "")) onChange("search", search.trim()); }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [search]);
  const field = (name, label, options) => {
    const chosen = query.get(name) ?? "";
    const isListed = !chosen || options.some(([option]) => option === chosen);
    return html`<${SelectField} label=${label} value=${chosen} options=${any(isListed ? options : [[chosen, chosen], ...options])}
      onInput=${(value) => onChange(name, value)} />`;
  };
  return html`<details class="folded" open=${matchMedia("(min-width: 44rem)").matches || namesIn(query).some((name) => query.get(name))}>
      <summary>Filters</summary>
  <div class="filters" role="search" aria-label="Filter requests">
    <${TextField} label="Search" type="search" value=${search} onInput=${setSearch} placeholder="Words of the prompt, ID, user …" />
    ${field("status", "Status", Object.entries(STATUSES).map(([status, [words]]) => [status, words]))}
    ${field("kind", "Kind", Object.entries(KINDS))}
    ${field("model", "Model", known.map(({ id }) => [id, id]))}
    ${field("provider", "Provider", providers.map((id) => [id, id]))}
    ${field("key_id", "Key", keys.map(({ id, name, last_four: four }) => [id, `${name || "no name"} …${four}`]))}
    ${field("content_credentials", "Content Credentials", CREDENTIALS)}
    ${["user", "session_id"].filter((name) => query.get(name)).map((name) => html`<${TextField} key=${name} type="search"
        label=${name === "user" ? "User" : "Session"} value=${query.get(name)} onInput=${(value) => onChange(name, value)} />`)}
    ${labels.map(({ name, values }) => (values ? field(LABEL + name, name, values.map((value) => [value, value]))
      : html`<${TextField} key=${name} label=${name} type="search" value=${query.get(LABEL + name) ?? ""} placeholder="Any"
          onChange=${(event) => onChange(LABEL + name, event.target.value.trim())} onInput=${() => {}} />`))}
    <${TextField} label="From" type="date" value=${query.get("created_after") ?? ""}
        onInput=${(value) => onChange("created_after", value)} />
    <${TextField} label="To" type="date" value=${query.get("created_before") ?? ""}
        onInput=${(value) => onChange("created_before", value)} />
  </div></details>`;
}

const ENDED_BADLY = ["upstream_failure", "rejected"];

// The prompt with its newest output, and below it what it was or why it failed. Without a stored prompt, the model comes first.
function What({ request: { model, kind, provider, status, outputs, prompt, error_message: message } }) {
  const about = [KINDS[kind], prompt ? model : provider, outputs?.length > 1 && plural(outputs.length, "output")].filter(Boolean).join(" · ");
  return html`<div class="what"><${Thumb} kind=${kind} output=${outputs?.[0]} />
    <div><span class=${`medium ${prompt ? "clamp one" : "anywhere"}`} title=${prompt}>${prompt || (model ?? "No model")}</span>
      ${ENDED_BADLY.includes(status) && message
        ? html`<span class="small bad clamp one"><${Prose} text=${message} /></span>` : html`<span class="small soft clamp one">${about}</span>`}</div></div>`;
}

const COLUMNS = [
  { name: "When", kind: "nowrap time", cell: ({ id, created_at: at }) => html`<a class="row-link" href=${pageUrl(`requests/${id}`)}><${When}
      at=${at} /><span class="only-heard">, request ${id}</span></a>` },
  { name: "Request", kind: "words lead", cell: (request) => html`<${What} request=${request} />` },
  { name: "Status", kind: "state", cell: ({ status }) => html`<${Status} of=${status} />` },
  { name: "Key", kind: "spare", cell: ({ key_name: name, key_id: id }) => html`<span class="cut"
      title=${name}>${name || (id ? `…${id.slice(-4)}` : "")}</span>` },
  { name: "User", kind: "spare rare", cell: ({ user }) => html`<span class="cut" title=${user}>${user ?? ""}</span>` },
  { name: "Duration", kind: "number spare", cell: ({ duration_ms: ms }) => duration(ms) },
  { name: "Cost", kind: "number figure", cell: ({ cost }) => money(cost) },
];

// Most callers name no user: then there is no column for it.
const columnsFor = (requests) => COLUMNS.filter(({ name }) => name !== "User" || requests.some(({ user }) => user));

// Saves what is filtered. The call needs the key in a header, so that a plain link cannot do it.
async function saveCsv(values) {
  const response = await send(withQuery("/v1/requests", { ...values, format: "csv" }));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = `requests-${new Date().toISOString().slice(0, 10)}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function List({ query }) {
  const values = asked(query);
  const page = usePages("/v1/requests", { ...values, limit: 25, summary: true }, { every: REFRESH_MS });
  const [problem, setProblem] = useState(null);
  const seen = useRef(null); // ids of the page before, to mark what is new
  const filtered = namesIn(query).some((name) => query.get(name));
  const change = (name, value) => {
    const next = Object.fromEntries([...namesIn(query), name].map((each) => [each, each === name ? value : query.get(each)]));
    replaceQuery("requests", next);
  };
  const fresh = (request) => (seen.current && !seen.current.has(request.id) ? "new" : "");
  useEffect(() => { if (page.data && page.isFirst) seen.current = new Set(page.data.data.map(({ id }) => id)); }, [page.data]);
  const aside = html`
    ${page.data?.summary && html`<span class="soft figures" id="sum">
        ${plural(page.data.summary.count, "request")}, ${money(page.data.summary.total_cost)}</span>`}
    <button type="button" class="button small" id="csv" onClick=${() => saveCsv(values).then(() => setProblem(null), setProblem)}><${Icon}
        name="download" />Export CSV</button>`;
  return html`<div class="page">
    <${Head} title="Requests" about="Every call made with your organization's keys, newest first." />
    <${Filters} query=${query} onChange=${change} />
    <${Problem} problem=${problem} />
    <${Panel} title="Requests" aside=${aside} flush>
      <${Loaded} of=${page}>${(data) => (data.data.length
        ? html`<${Table} label="Requests" columns=${columnsFor(data.data)} rows=${data.data} rowKey=${({ id }) => id} rowClass=${fresh} brief /><${Pager}
            of=${page} />`
        : filtered
          ? html`<${Empty} icon="search" title="Nothing matches" action=${html`<button type="button" class="button"
              onClick=${() => replaceQuery("requests", {})}>Remove the filters</button>`}>No request matches all of these filters.<//>`
          : html`<${Empty} icon="list" title="No requests yet" action=${html`<a class="button main"
              href=${pageUrl("playground")}>Open the playground</a>`}>Make one in the playground, or call the API. It appears here at once.<//>`)}<//>
    <//>
  </div>`;
}

export function Requests({ path, query }) {
  return path[0] ? html`<${RequestPage} id=${path[0]} />` : html`<${List} query=${query} />`;
}
