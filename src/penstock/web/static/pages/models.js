// The catalogue of models: what each can do, its parameters, its prices, who serves it.

import { useData } from "../data.js";
import { ask, fileUrl, thumbnailUrl } from "../gateway.js";
import { money, plural } from "../format.js";
import { Empty, Head, Loaded, Panel, Prose } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { kindIcon, Output } from "../parts/media.js";
import { Facts, Table } from "../parts/table.js";
import { userMessage } from "../playground/chat.js";
import { CodeDialog } from "../playground/snippets.js";
import { body, modelsFor, SAMPLES, TASKS } from "../playground/tasks.js";
import { pageUrl, replaceQuery } from "../route.js";
import { html, useState } from "../view.js";

const FEW = 12;
const taskOf = (model) => Object.keys(TASKS).find((task) => modelsFor(task, [model]).length) ?? model.modality;

const perMillion = (usd) => money(usd * 1e6).replace(/\.00$/, "");

function priceText({ unit, usd, input_usd: input }) {
  if (unit !== "token") return `${money(usd)} per ${unit.replaceAll("_", " ")}`;
  return `${input === undefined ? "" : `${perMillion(input)} in, `}${perMillion(usd)} out per million tokens`;
}

// Where the prices were found, and when; prices of one model mostly share their source.
function sourceText(prices) {
  const sources = prices.map(({ source, as_of: date, second_hand: isSecondHand }) =>
    `${source}${date ? `, ${date}` : ""}${isSecondHand ? " (second-hand)" : ""}`);
  return [...new Set(sources)].join("; ");
}

// The newest output of the model, or the icon of what it does.
function Example({ model: { id, example }, task }) {
  const [gone, setGone] = useState(false);
  if (!example || gone || example.content_type.startsWith("audio/")) return html`<${Icon} name=${kindIcon(task, example?.content_type)} size="26" />`;
  return html`<img src=${thumbnailUrl(example, 480)} alt=${`Made by ${id}`} loading="lazy" onError=${() => setGone(true)} />`;
}

function Card({ model }) {
  const task = taskOf(model);
  return html`<li class="panel card">
    <div class=${`card-image tint ${task}`}><${Example} model=${model} task=${task} /></div>
    <div class="stack tight">
      <h2 class="anywhere"><a class="row-link" href=${pageUrl(`models/${model.id}`)}>${model.id}</a></h2>
      ${model.alias_of && html`<p class="small">Stands for <span class="anywhere">${model.alias_of}</span></p>`}
      ${model.description && html`<p class="small soft clamp">${model.description}</p>`}
      <p class="small soft">${model.providers.join(", ")}</p>
      <p class="row small">${model.modes.map((mode) => html`<span class="chip" key=${mode}>${mode}</span>`)}</p>
      <p class="small figures">${model.pricing[0] ? priceText(model.pricing[0]) : html`<span class="soft">No price configured</span>`}</p>
    </div></li>`;
}

// The names of what is missing, in the order of the providers that could serve the model.
const needs = ({ missing }) => Object.values(missing).map((names, place) => html`${place ? " or " : ""}${names.map((name, number) => html`
  ${number ? " and " : ""}<code key=${name}>${name}</code>`)}`);
const OFF = [
  { name: "Model", kind: "words lead", cell: ({ id, name }) => html`<span class="medium anywhere">${id}</span>${name !== id && html`<br /><span
      class="small">${name}</span>`}` },
  { name: "Tasks", kind: "words spare", cell: ({ modes }) => modes.join(", ") },
  { name: "Price", kind: "words figure", cell: ({ pricing }) => (pricing[0] ? priceText(pricing[0]) : "") },
  { name: "Needs", kind: "words state", cell: needs },
  { name: "Set up", kind: "spare", cell: ({ providers }) => providers.map((slug, place) => html`${place ? ", " : ""}<a key=${slug}
      href=${`/docs/providers/${slug}`}>${slug}</a>`) },
];

// Models of providers that lack a variable. A few of them, unless the reader looks for something.
function OffModels({ models, isSearched }) {
  const [all, setAll] = useState(false);
  const shown = all || isSearched ? models : models.slice(0, FEW);
  return html`<${Panel} title="One key away" about="Set the variable in the gateway's environment and restart it." flush>
    <div class="off"><${Table} label="One key away" columns=${OFF} rows=${shown} rowKey=${({ id }) => id} brief /></div>
    ${shown.length < models.length && html`<div class="body"><button type="button" class="button small" id="all-off"
        onClick=${() => setAll(true)}>Show all ${models.length}</button></div>`}
  <//>`;
}

function Catalogue({ query }) {
  const loaded = useData((signal) => ask("/compat/v1/models?details=true&off=true", { signal }));
  const words = query.get("search") ?? "";
  const task = query.get("task") ?? "";
  const change = (values) => replaceQuery("models", { search: words, task, ...values });
  const textOf = (model) => `${model.id} ${model.name} ${model.description} ${model.providers.join(" ")}`.toLowerCase();
  const matches = (model) => words.toLowerCase().split(/\s+/).every((word) => textOf(model).includes(word));
  return html`<div class="page">
    <${Head} title="Models" about="What this gateway can call, and what it could call with one more key." />
    <div class="row ends">
      <label class="search"><span class="only-heard">Search models</span><${Icon} name="search" /><input type="search"
          placeholder="Search models" value=${words} onInput=${(event) => change({ search: event.target.value })} /></label>
      <div class="tabs" role="group" aria-label="Task">${[["", { label: "All" }], ...Object.entries(TASKS)].map(([name, { label }]) => html`
        <button type="button" key=${name} aria-pressed=${String(name === task)} onClick=${() => change({ task: name })}>
            ${label}</button>`)}</div>
    </div>
    <${Loaded} of=${loaded}>${({ data }) => {
      const found = (task ? modelsFor(task, data) : data).filter(matches);
      const ready = found.filter(({ missing }) => !missing);
      const off = found.filter(({ missing }) => missing);
      return html`
        ${ready.length > 0 && html`<p class="soft small" role="status">${plural(ready.length, "model")}</p><ul class="cards">
          ${ready.map((model) => html`<${Card} key=${model.id} model=${model} />`)}</ul>`}
        ${off.length > 0 && html`<${OffModels} models=${off} isSearched=${Boolean(words)} />`}
        ${!found.length && html`<div class="panel"><${Empty} icon="cube" title="No such model">fal, Replicate and OpenRouter have many more:
          <a href="/docs/any-model">any model</a>.<//></div>`}`;
    }}<//>
  </div>`;
}

function valuesOf({ type, enum: allowed, minimum, maximum }) {
  if (allowed) return allowed.join(", ");
  const limits = [minimum !== undefined && `from ${minimum}`, maximum !== undefined && `to ${maximum}`];
  return [[type].flat().join(" or "), ...limits].filter(Boolean).join(" ");
}

const PARAMETERS = [
  { name: "Parameter", cell: ({ name, required }) => html`<code>${name}</code>${required ? html` <span
      class="chip">required</span>` : ""}` },
  { name: "Values", kind: "words", cell: ({ property }) => valuesOf(property) },
  { name: "Default", cell: ({ property }) => (property.default === undefined ? "" : html`<code>${String(property.default)}</code>`) },
  { name: "Handling", cell: ({ property }) => property["x-handling"] ?? "" },
  { name: "Meaning", kind: "words long", cell: ({ property }) => html`<${Prose} text=${property.description} />` },
];
const SERVING = [
  { name: "Order", kind: "number", cell: ({ place }) => place },
  { name: "Provider", cell: ({ provider_name: name, provider }) => name ?? provider },
  { name: "Provider's model", kind: "words", cell: ({ model }) => html`<code>${model}</code>` },
  { name: "Health", cell: ({ healthy }) => (healthy ? html`<span class="chip good"><span class="dot"></span>Healthy</span>` : html`<span
      class="chip bad"><span class="dot"></span>Paused</span>`) },
];

// A short call of the model as code. Where it needs an image, that is a file of the reader's own.
function SampleCode({ model, onClose }) {
  const task = taskOf(model);
  const prompt = SAMPLES[task][0] ?? "";
  const call = body(task, model, { prompt, values: {}, images: [], mask: null, messages: [userMessage(prompt)] });
  const inputs = task === "edit" || task === "upscale" ? [{ name: "input.png" }] : [];
  return html`<${CodeDialog} task=${task} lanes=${[{ model: model.id, body: call }]} run=${{ inputs }}
      onClose=${onClose} />`;
}

function ModelPage({ id }) {
  const [code, setCode] = useState(false);
  const loaded = useData((signal) => ask(`/compat/v1/models/${id}?schema=true&details=true`, { signal }), [id]);
  return html`<div class="page">${!loaded.data && html`<${Head} title="Model" back=${{ href: pageUrl("models"), label: "Models" }} />`}
      <${Loaded} of=${loaded}>${(model) => {
    const parameters = Object.entries(model.schema?.properties ?? {}).map(([name, property]) => ({ name, property, required: model.schema.required.includes(name) }));
    return html`
      <${Head} title=${model.id} about=${model.description} back=${{ href: pageUrl("models"), label: "Models" }}>
        ${TASKS[taskOf(model)] && html`
          <button type="button" class="button" onClick=${() => setCode(true)}><${Icon} name="code" />Code</button>
          <a class="button main" href=${pageUrl(`playground/${taskOf(model)}`, { model: model.id })}><${Icon} name="play" />Try it</a>`}<//>
      <div class="split"><div class="stack wide">
        ${model.example && html`<${Panel} title="Example"><div class="outputs alone"><${Output} url=${fileUrl(model.example.url)}
            small=${thumbnailUrl(model.example, 1280)} type=${model.example.content_type} alt="Newest output" /></div><//>`}
        <${Panel} title="Served by" about="In the order they are tried." flush><${Table} label="Served by"
            columns=${SERVING} rows=${model.serving.map((row, place) => ({ ...row, place: place + 1 }))} /><//>
        <${Panel} title="Parameters" flush><${Table} label="Parameters" columns=${PARAMETERS} rows=${parameters} /><//>
      </div>
      <aside class="panel" aria-label="Facts"><div class="body"><${Facts} of=${[
        ["Name", model.name], ["Vendor", model.owned_by], ["Tasks", model.modes.join(", ")], ["Providers", model.providers.join(", ")],
        ["Prices", html`<ul class="plain">${model.pricing.map((price, place) => html`<li key=${place} class="figures">
            ${priceText(price)}${price.when ? html` <span class="soft small">
            ${Object.entries(price.when).map(([name, value]) => `${name} ${value}`).join(", ")}</span>` : ""}${price.from ? html` <span class="soft small">from ${price.from}</span>` : ""}</li>`)}</ul>`],
        ["Source", sourceText(model.pricing)],
        ...(model.shutdown_date ? [["Until", model.shutdown_date]] : []),
      ]} /></div></aside></div>
      ${code && html`<${SampleCode} model=${model} onClose=${() => setCode(false)} />`}`;
  }}<//></div>`;
}

export function Models({ path, query }) {
  return path.length ? html`<${ModelPage} id=${path.map(encodeURIComponent).join("/")} />` : html`<${Catalogue} query=${query} />`;
}
