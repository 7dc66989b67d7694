// The labels: which ones calls may have, and the monthly budget of each value with its state.

import { useData } from "../data.js";
import { ask, withQuery } from "../gateway.js";
import { money } from "../format.js";
import { Confirm, Dialog, Empty, Head, Loaded, Panel, Problem, SelectField, TextField } from "../parts/controls.js";
import { Table } from "../parts/table.js";
import { pageUrl } from "../route.js";
import { html, useState } from "../view.js";

const REFRESH_MS = 15_000;
const EACH = "*";
const path = ({ name, value }) => `/v1/label-budgets/${encodeURIComponent(name)}/${encodeURIComponent(value)}`;

// Spend of this month by the values of a label that has a budget for each of them.
async function spends(name, signal) {
  const now = new Date();
  const start = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth())).toISOString();
  const usage = await ask(withQuery("/v1/usage", { created_after: start, bucket: "month", group_by: `label:${name}` }), { signal });
  return usage.groups.filter(({ group }) => group !== null).map(({ group, cost }) => ({ value: group, cost }));
}

// Each budget, and below one for each value the values that have spent something.
async function budgets(signal) {
  const { data } = await ask("/v1/label-budgets", { signal });
  const rows = await Promise.all(data.map(async (budget) => {
    if (budget.value !== EACH) return [{ ...budget, spent: budget.spent_this_month }];
    const own = new Set(data.filter(({ name }) => name === budget.name).map(({ value }) => value));
    const used = (await spends(budget.name, signal)).filter(({ value }) => !own.has(value));
    return [budget, ...used.map(({ value, cost }) => ({ ...budget, value, spent: cost, isOfEach: true }))];
  }));
  return rows.flat();
}

function state({ spent, usd_per_month: limit, alert_percents: percents }) {
  const percent = limit ? (100 * spent) / limit : 100;
  if (percent >= 100) return ["bad", "Used up"];
  const reached = percents.filter((each) => each < 100 && percent >= each);
  return reached.length ? ["warn", `Over ${Math.max(...reached)} %`] : ["good", "Within"];
}

function State({ budget }) {
  if (budget.spent === undefined) return html`<span class="soft">For each value</span>`;
  const [tone, words] = state(budget);
  const width = Math.min(100, budget.usd_per_month ? (100 * budget.spent) / budget.usd_per_month : 100);
  return html`<div class="stack tight"><div><span class=${`chip ${tone}`}><span class="dot"></span>${words}</span></div>
    <div class=${`meter ${tone === "good" ? "" : tone}`} role="meter" aria-label=${`Spent by ${budget.value}`} aria-valuemin="0" aria-valuemax="100"
      aria-valuenow=${Math.round(width)}><span style=${{ width: `${width}%` }}></span></div></div>`;
}

function Budget({ budget, labels, onClose, onDone }) {
  const [texts, setTexts] = useState({ name: budget?.name ?? labels[0].name, value: budget?.value ?? "", usd: String(budget?.usd_per_month ?? "") });
  const [sending, setSending] = useState({ busy: false, problem: null });
  const set = (name) => (text) => setTexts({ ...texts, [name]: text });
  async function save(event) {
    event.preventDefault();
    setSending({ busy: true, problem: null });
    const target = { name: texts.name, value: texts.value.trim() || EACH };
    await ask(path(target), { method: "PUT", body: { usd_per_month: Number(texts.usd) } }).then(onDone, (problem) => setSending({ busy: false, problem }));
  }
  const footer = html`<button type="button" class="button" onClick=${onClose}>Cancel</button><button class="button main" form="budget-form"
      disabled=${sending.busy}>Save</button>`;
  return html`<${Dialog} title=${budget ? "Change the budget" : "New budget"} onClose=${onClose} footer=${footer}>
    <form id="budget-form" class="stack" onSubmit=${save}>
      ${!budget && html`<${SelectField} label="Label" value=${texts.name} onInput=${set("name")} options=${labels.map(({ name }) => [name, name])} />
        <${TextField} label="Value" value=${texts.value} onInput=${set("value")} help="Empty: for each value without a budget of its own." />`}
      <${TextField} label="US dollars per month" type="number" min="0" step="any" required value=${texts.usd} onInput=${set("usd")} />
      <${Problem} problem=${sending.problem} /></form><//>`;
}

function Label({ labels, onClose, onDone }) {
  const [texts, setTexts] = useState({ name: "", values: "" });
  const [flags, setFlags] = useState({ required: false, budget: true });
  const [sending, setSending] = useState({ busy: false, problem: null });
  async function save(event) {
    event.preventDefault();
    setSending({ busy: true, problem: null });
    const values = texts.values.split(",").map((value) => value.trim()).filter(Boolean);
    const label = { name: texts.name.trim(), ...flags, values: values.length ? values : null };
    await ask("/v1/labels", { method: "PUT", body: { declared_labels: [...labels, label] } }).then(onDone, (problem) => setSending({ busy: false, problem }));
  }
  const flag = (name, words) => html`<label class="check"><input type="checkbox" checked=${flags[name]}
      onChange=${(event) => setFlags({ ...flags, [name]: event.target.checked })} />${words}</label>`;
  const footer = html`<button type="button" class="button" onClick=${onClose}>Cancel</button><button class="button main" form="label-form"
      disabled=${sending.busy}>Declare</button>`;
  return html`<${Dialog} title="Declare a label" onClose=${onClose} footer=${footer}>
    <form id="label-form" class="stack" onSubmit=${save}>
      <${TextField} label="Name" required value=${texts.name} onInput=${(name) => setTexts({ ...texts, name })} help="Such as customer or project." />
      <${TextField} label="Values" value=${texts.values} onInput=${(values) => setTexts({ ...texts, values })} help="Separated by commas; empty: any." />
      ${flag("required", "Every call must have it")}${flag("budget", "Its values may have budgets")}
      <${Problem} problem=${sending.problem} /></form><//>`;
}

export function Labels({ own }) {
  const isAdmin = own.scopes.includes("admin");
  const loaded = useData(async (signal) => {
    const [{ declared_labels: labels }, rows] = await Promise.all([ask("/v1/labels", { signal }), budgets(signal)]);
    return { labels, rows };
  }, [], { every: REFRESH_MS });
  const [open, setOpen] = useState(null);
  const done = () => { setOpen(null); loaded.reload(); };
  const close = () => setOpen(null);
  const act = (kind, item, words, about) => html`<button type="button" class="button small" aria-label=${`${words} ${about}`}
      onClick=${() => setOpen({ kind, item })}>${words}</button>`;
  const labelColumns = [
    { name: "Label", kind: "words lead", cell: ({ name }) => html`<a class="medium" href=${pageUrl("overview", { by: `label:${name}` })}>${name}</a>` },
    { name: "Values", kind: "words", cell: ({ values }) => (values ? values.join(", ") : html`<span class="soft">Any</span>`) },
    { name: "Calls", cell: ({ required }) => (required ? "Required" : "Optional") },
    { name: "Budgets", cell: ({ budget }) => (budget ? "Yes" : "No") },
    ...(isAdmin ? [{ name: "Actions", kind: "figure", cell: (label) => act("undeclare", label, "Remove", label.name) }] : []),
  ];
  const budgetColumns = [
    { name: "Value", kind: "words lead", cell: ({ name, value, isOfEach }) => html`${value === EACH ? html`<strong class="medium">Each value</strong>`
        : html`<a class="medium anywhere" href=${pageUrl("requests", { [`label.${name}`]: value })}>${value}</a>`}
        <br /><span class="small soft">${name}${isOfEach ? ", by the budget of each value" : ""}</span>` },
    { name: "State", kind: "state", cell: (budget) => html`<${State} budget=${budget} />` },
    { name: "Spent", kind: "number figure", cell: ({ spent, usd_per_month: limit }) => (spent === undefined
      ? `Up to ${money(limit)} each` : `${money(spent)} of ${money(limit)}`) },
    ...(isAdmin ? [{ name: "Actions", kind: "figure", cell: (budget) => (budget.isOfEach ? "" : html`<span class="row">
        ${act("budget", budget, "Change", budget.value)}${act("remove", budget, "Remove", budget.value)}</span>`) }] : []),
  ];
  const button = (kind, words) => html`<button type="button" class="button small" onClick=${() => setOpen({ kind })}>${words}</button>`;
  return html`<div class="page">
    <${Head} title="Labels" about="What each customer or project costs. Calls carry labels; each value may have a budget for the month (UTC)." />
    <${Loaded} of=${loaded}>${({ labels, rows }) => {
      const limited = labels.filter(({ budget }) => budget);
      return html`
        <${Panel} title="Declared labels" aside=${isAdmin && button("label", "Declare a label")} flush>${labels.length
          ? html`<${Table} label="Declared labels" columns=${labelColumns} rows=${labels} rowKey=${({ name }) => name} />`
          : html`<${Empty} icon="list" title="No labels yet">${isAdmin ? "Declare one, such as customer, and give it to calls."
            : "An admin of your organization declares them."} <a href="/docs/labels">Labels</a><//>`}<//>
        ${labels.length > 0 && html`<${Panel} title="Budgets of this month" aside=${isAdmin && limited.length > 0 && button("budget", "New budget")} flush>${rows.length
          ? html`<${Table} label="Budgets of this month" columns=${budgetColumns} rows=${rows} rowKey=${({ name, value }) => `${name} ${value}`} />`
          : html`<${Empty} icon="chart" title="No budgets">${limited.length ? "A value without a budget may spend what its organization has."
            : "No declared label allows budgets for its values."}<//>`}<//>`}
        ${open?.kind === "label" && html`<${Label} labels=${labels} onClose=${close} onDone=${done} />`}
        ${open?.kind === "budget" && html`<${Budget} budget=${open.item} labels=${limited} onClose=${close} onDone=${done} />`}
        ${open?.kind === "remove" && html`<${Confirm} title="Remove the budget" verb="Remove" question=${`Calls of ${open.item.value === EACH
          ? `values of ${open.item.name} without a budget of their own` : open.item.value} are not limited any more.`}
          action=${() => ask(path(open.item), { method: "DELETE" })} onClose=${done} />`}
        ${open?.kind === "undeclare" && html`<${Confirm} title="Remove the label" verb="Remove"
          question=${`Calls with the label ${open.item.name} are refused from now on. Records keep theirs.`}
          action=${() => ask("/v1/labels", { method: "PUT", body: { declared_labels: labels.filter(({ name }) => name !== open.item.name) } })} onClose=${done} />`}`;
    }}<//>
  </div>`;
}
