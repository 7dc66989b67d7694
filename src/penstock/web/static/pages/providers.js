// The providers: which are on, what is missing for the others, how healthy they are, and a real check.

import { models, useData } from "../data.js";
import { ask } from "../gateway.js";
import { ago, duration, money, plural } from "../format.js";
import { Confirm, Dialog, Empty, Head, Loaded, Panel, Problem, SelectField, TextField } from "../parts/controls.js";
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
const REJECTIONS = ["rejected", "refused"];
const inWords = (problem) => PROBLEMS[problem] ?? problem;

function History({ history }) {
  const good = history.filter(({ is_success: success }) => success).length;
  return html`<span class="history" role="img" aria-label=${`${good} of the last ${history.length} calls succeeded`}>
    ${history.map(({ at, is_success: success, problem }, place) => html`<i key=${place} class=${success ? "good" : REJECTIONS.includes(problem) ? "warn" : "bad"}
        title=${`${ago(at)}: ${success ? "succeeded" : inWords(problem)}`}></i>`)}</span>`;
}

// In use and working, in use although the last call failed, or paused.
function State({ row, isFailing }) {
  if (!row.healthy) return html`<span class="chip bad"><span class="dot"></span>Paused for ${Math.ceil(row.recovers_in_seconds)} s</span>`;
  if (isFailing) return html`<span class="chip warn"><span class="dot"></span>Failing</span>`;
  if (!row.successes) return html`<span class="chip"><span class="dot"></span>No success yet</span>`;
  return html`<span class="chip good"><span class="dot"></span>Healthy</span>`;
}

function Health({ provider }) {
  return html`<ul class="plain health">${provider.health.map((row) => {
    const { is_success: isSuccess, problem } = row.history.at(-1) ?? {};
    const isFailing = isSuccess === false && !REJECTIONS.includes(problem);
    return html`<li key=${row.model} class="row">
      <span class="grow anywhere">${row.model}${row.account && html`<span class="small soft"> ${row.account}</span>`}</span><${History} history=${row.history} /><${State} row=${row} isFailing=${isFailing} />
      <span class="small soft figures nowrap">${[`${row.successes} succeeded`, row.rejected && `${row.rejected} rejected`, `${row.failures} failed`].filter(Boolean).join(", ")}</span>
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
      <div>${result.error ? result.error.message : result.status === "started" ? "Accepted and in progress." : "It works."}
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

// A new account, or a new credential of one.
function Credential({ account, providers, onClose, onDone }) {
  const [texts, setTexts] = useState({ provider: providers[0]?.id ?? "", name: "", credential: "", concurrent: "", usd: "" });
  const [state, setState] = useState({ busy: false, problem: null });
  const set = (name) => (text) => setTexts({ ...texts, [name]: text });
  async function save(event) {
    event.preventDefault();
    setState({ busy: true, problem: null });
    const { provider, name, credential } = texts;
    const limits = { ...(texts.concurrent && { concurrent: Number(texts.concurrent) }), ...(texts.usd && { usd_per_month: Number(texts.usd) }) };
    const path = account ? `/v1/accounts/${account.id}/rotate` : "/v1/accounts";
    const body = account ? { credential } : { provider, name: name.trim(), credential, ...limits };
    await ask(path, { method: "POST", body }).then(onDone, (problem) => setState({ busy: false, problem }));
  }
  const footer = html`<button type="button" class="button" onClick=${onClose}>Cancel</button><button class="button main"
      form="credential-form" disabled=${state.busy}>${account ? "Replace" : "Add"}</button>`;
  return html`<${Dialog} title=${account ? "Replace the credential" : "New account"} onClose=${onClose} footer=${footer}>
    <form id="credential-form" class="stack" onSubmit=${save}>
      ${account ? html`<p class="soft">Use a credential of the same vendor account: running jobs switch to it at once.</p>` : html`
        <${SelectField} label="Provider" value=${texts.provider} onInput=${set("provider")} options=${providers.map(({ id, name }) => [id, name])} />
        <${TextField} label="Name" type="text" value=${texts.name} onInput=${set("name")} />`}
      <${TextField} label="Credential" type="password" autocomplete="off" required value=${texts.credential} onInput=${set("credential")} />
      ${!account && html`<${TextField} label="Calls and jobs at a time (optional)" type="number" min="1" step="1" value=${texts.concurrent} onInput=${set("concurrent")} />
        <${TextField} label="US dollars per month (optional)" type="number" min="0" step="any" value=${texts.usd} onInput=${set("usd")} />`}
      <${Problem} problem=${state.problem} /></form><//>`;
}

const REFUSALS = { 401: "the credential is not valid", 402: "it must be paid", 403: "it is not allowed" };

// Switched on or off, and what stands in the way of calls.
function AccountState({ account: { status, health } }) {
  const { state, refused_with: refused, free_in_seconds: seconds } = health;
  if (status !== "on" || state === "works") return html`<span class=${`chip ${ACCOUNT_STATES[status]}`}><span class="dot"></span>${status}</span>`;
  if (state === "refused") return html`<span class="chip bad"><span class="dot"></span>Refused</span><br /><span class="small bad">HTTP ${refused}: ${REFUSALS[refused]}</span>`;
  if (state === "spent") return html`<span class="chip bad"><span class="dot"></span>Spent</span>`;
  return html`<span class="chip warn"><span class="dot"></span>Full for ${Math.ceil(seconds ?? 0)} s</span>`;
}

// How many calls there are, out of how many that are set or learned.
function Use({ account: { concurrent, requests_per_minute: perMinute, health } }) {
  const limit = (set, learned) => (set ?? (learned === null ? null : `${learned} learned`));
  const part = (used, of, unit) => `${used}${of === null ? "" : ` of ${of}`} ${unit}`;
  return html`<span class="small">${part(health.open, limit(concurrent, health.learned_concurrent), "open")}<br />${
    part(health.calls_of_last_minute, limit(perMinute, health.learned_per_minute), "in the last minute")}</span>`;
}

const ACCOUNT_STATES = { on: "good", off: "", draining: "warn" };

function Accounts({ providers, about = "More credentials, added without a restart. Each job stays with the account that started it." }) {
  const loaded = useData((signal) => ask("/v1/accounts", { signal }), [], { every: REFRESH_MS });
  const [open, setOpen] = useState(null);
  const [problem, setProblem] = useState(null);
  const done = () => { setOpen(null); setProblem(null); loaded.reload(); };
  const change = (account, status) => ask(`/v1/accounts/${account.id}`, { method: "PATCH", body: { status } }).then(done, setProblem);
  const names = Object.fromEntries(providers.map(({ id, name }) => [id, name]));
  const columns = [
    { name: "Account", kind: "words lead", cell: ({ provider, name, id, org_id: org }) => html`<strong class="medium">${names[provider] ?? provider}</strong> ${name}
        <br /><code class="small soft">${id}</code>${org && html`<br /><span class="small soft">of ${org}</span>`}` },
    { name: "Ends in", cell: ({ last_four: four }) => (four ? html`<code>…${four}</code>` : "") },
    { name: "Order", kind: "spare", cell: ({ priority, weight }) => `priority ${priority}, weight ${weight}` },
    { name: "State", kind: "state", cell: (account) => html`<${AccountState} account=${account} />` },
    { name: "In use", kind: "words", cell: (account) => html`<${Use} account=${account} />` },
    { name: "This month", kind: "number", cell: ({ spent_this_month: spent, usd_per_month: limit }) => `${money(spent)}${limit === null ? "" : ` of ${money(limit)}`}` },
    { name: "Actions", kind: "figure", cell: (account) => html`<span class="row">
        <button type="button" class="button small" onClick=${() => setOpen({ kind: "credential", account })}>Replace</button>
        ${account.status !== "draining" && html`<button type="button" class="button small"
            onClick=${() => change(account, account.status === "on" ? "off" : "on")}>${account.status === "on" ? "Switch off" : "Switch on"}</button>`}
        <button type="button" class="button small" onClick=${() => setOpen({ kind: "delete", account })}>Delete</button></span>` },
  ];
  const takers = providers.filter(({ credential }) => credential).toSorted((one, other) => one.name.localeCompare(other.name));
  return html`<${Panel} title="Accounts" about=${about}
      aside=${html`<button type="button" class="button small" onClick=${() => setOpen({ kind: "credential" })}>Add an account</button>`} flush>
    <${Problem} problem=${problem} />
    <${Loaded} of=${loaded}>${({ data }) => (data.length
      ? html`<${Table} label="Accounts" columns=${columns} rows=${data} rowKey=${({ id }) => id} />`
      : html`<p class="small soft body">None. Each provider uses the credential from the environment. <a href="/docs/accounts">Accounts</a></p>`)}<//>
    ${open?.kind === "credential" && html`<${Credential} account=${open.account} providers=${takers} onClose=${() => setOpen(null)} onDone=${done} />`}
    ${open?.kind === "delete" && html`<${Confirm} title="Delete the account" verb="Delete"
      question=${`${names[open.account.provider]} ${open.account.name} takes no new calls, and its credential is erased when its last job has ended.`}
      action=${() => ask(`/v1/accounts/${open.account.id}?drain=true`, { method: "DELETE" })} onClose=${done} />`}
  <//>`;
}

const SET_VARIABLE = html`Set the variable in the environment of the gateway and start it again. The documentation has <a
  href="/docs/providers">a page for each provider</a>.`;
const OFF = [
  { name: "Provider", kind: "words lead", cell: ({ id, name }) => html`<a class="medium"
      href=${`/docs/providers/${id}`}>${name}</a>` },
  { name: "Models", kind: "number figure", cell: ({ id, models }) => html`<a
      href=${pageUrl("models", { search: id })}>${plural(models, "model")}</a>` },
  { name: "What is missing", kind: "words state", cell: ({ missing, reason }) => (missing.length
    ? missing.map((name, place) => html`${place ? " and " : ""}<code key=${name}>${name}</code>`) : reason ?? "") },
];

// What admins see who are not operators: the accounts that their organization brings, if the operator takes any.
function OwnAccounts() {
  const loaded = useData(async (signal) => {
    const [known, allowed] = await Promise.all([models(), ask("/v1/accounts", { signal }).then(() => true, ({ status }) => (status === 403 ? false : null))]);
    const ids = [...new Set(known.flatMap((model) => model.providers))].toSorted();
    return { allowed, providers: ids.map((id) => ({ id, name: id, credential: true })) };
  });
  return html`<div class="page">
    <${Head} title="Providers" about="Accounts that your organization has at vendors. The vendor bills you for what they serve." />
    <${Loaded} of=${loaded}>${({ allowed, providers }) => (allowed === false
      ? html`<div class="panel"><${Empty} icon="plug" title="No accounts here">The operator of this gateway does not take accounts of organizations.<//></div>`
      : html`<${Accounts} providers=${providers} about="Calls of your organization use them, and no others see them. Each job stays with the account that started it." />`)}<//>
  </div>`;
}

export function Providers({ query, own }) {
  return own.scopes.includes("operator") ? html`<${All} query=${query} />` : html`<${OwnAccounts} />`;
}

function All({ query }) {
  const loaded = useData((signal) => ask("/v1/providers", { signal }), [], { every: REFRESH_MS });
  const words = (query.get("search") ?? "").toLowerCase();
  return html`<div class="page">
    <${Head} title="Providers" about="A provider turns on when it has a credential: in the gateway's environment or as an account." />
    <label class="search"><span class="only-heard">Search providers</span><${Icon} name="search" /><input type="search"
        placeholder="Search providers" value=${query.get("search") ?? ""}
        onInput=${(event) => replaceQuery("providers", { search: event.target.value })} /></label>
    <${Loaded} of=${loaded}>${({ data }) => {
      const sorted = data.toSorted((one, other) => one.name.localeCompare(other.name));
      const found = sorted.filter(({ id, name }) => `${id} ${name}`.toLowerCase().includes(words));
      const on = found.filter((provider) => provider.on);
      const off = found.filter((provider) => !provider.on);
      return html`
        ${!words && html`<${Accounts} providers=${data} />`}
        ${on.length > 0 && html`<section class="stack" aria-label="On"><h2>On</h2><ul class="cards wide">
            ${on.map((provider) => html`<${Provider} key=${provider.id} provider=${provider} />`)}</ul></section>`}
        ${off.length > 0 && html`<${Panel} title="Off" about=${SET_VARIABLE} flush>
          <${Table} label="Off" columns=${OFF} rows=${off} rowKey=${({ id }) => id} brief /><//>`}
        ${!found.length && html`<div class="panel"><${Empty} icon="plug" title="No such provider">Any OpenAI-compatible server can be added in${" "}
          <code>penstock.toml</code>: <a href="/docs/any-model">any model</a>.<//></div>`}`;
    }}<//>
  </div>`;
}
