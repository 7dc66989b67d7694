// The reference of the API, made from the OpenAPI description of this gateway.

import { CopyButton, Prose } from "../parts/controls.js";
import { startFrame } from "./frame.js";
import { Fields, resolve, typeText } from "./schemas.js";
import { html, render, useEffect, useState } from "../view.js";

const METHODS = ["get", "post", "patch", "delete"];

function operationsOf(document) {
  return Object.entries(document.paths).flatMap(([path, methods]) => METHODS.filter((method) => methods[method])
    .map((method) => ({ path, method, ...methods[method] })));
}

function matches(operation, text) {
  const words = `${operation.method} ${operation.path} ${operation.summary} ${operation.description ?? ""}`.toLowerCase();
  return text.toLowerCase().split(/\s+/).every((word) => words.includes(word));
}

function Code({ text, label }) {
  return html`<figure>${label && html`<figcaption class="soft small">${label}</figcaption>`}
    <div class="snippet"><pre tabindex="0" aria-label=${label ?? "Code"}><code>${text}</code></pre><${CopyButton} text=${text} /></div></figure>`;
}

function Samples({ list: [first, ...others] }) {
  return html`<${Code} text=${first.source} label=${first.lang} />
    ${others.length > 0 && html`<details><summary>More examples</summary><div class="stack">
      ${others.map(({ source }) => html`<${Code} key=${source} text=${source} />`)}</div></details>`}`;
}

function Parameters({ list }) {
  if (!list.length) return null;
  return html`<h3>Parameters</h3><div class="scroll" tabindex="0" role="group" aria-label="Parameters"><table>
    <thead><tr><th>name</th><th>in</th><th>type</th><th>meaning</th></tr></thead>
    <tbody>${list.map((row) => html`<tr key=${`${row.in} ${row.name}`}>
      <td><code>${row.name}</code>${row.required && html` <span class="chip">required</span>`}</td><td>${row.in}</td>
      <td><${Prose} text=${typeText(row.schema)} /></td>
      <td><${Prose} text=${row.description} />${row.schema.default !== undefined && html` Default: <code>${String(row.schema.default)}</code>.`}</td>
    </tr>`)}</tbody></table></div>`;
}

function Body({ body, schemas }) {
  if (!body) return null;
  return html`<h3>Body</h3>${Object.entries(body.content).map(([kind, content]) => html`<details key=${kind} open=${kind === "application/json"}>
    <summary><code>${kind}</code></summary>
    <${Fields} schema=${content.schema} schemas=${schemas} />
    ${content.schema.additionalProperties === true && html`<p class="soft small">Further fields are passed on to the provider, if it takes them.</p>`}
  </details>`)}`;
}

function Response({ status, response, schemas }) {
  const content = Object.entries(response.content ?? {});
  return html`<div class="response"><p><strong class=${status < 400 ? "good" : "bad"}>${status}</strong> ${response.description}</p>
    ${content.map(([kind, { schema, example }]) => html`<div class="stack tight" key=${kind}>
      ${example !== undefined && html`<${Code} text=${JSON.stringify(example, null, 2)} label=${kind} />`}
      ${resolve(schema, schemas).properties && html`<details><summary>Fields</summary><${Fields} schema=${schema} schemas=${schemas} /></details>`}
      ${example === undefined && html`<p class="soft small">${kind}</p>`}
    </div>`)}</div>`;
}

function Responses({ operation, schemas }) {
  const all = Object.entries(operation.responses);
  const failures = all.filter(([status]) => status >= 400);
  return html`<h3>Responses</h3>
    ${all.filter(([status]) => status < 400).map(([status, response]) => html`<${Response} key=${status} status=${status} response=${response} schemas=${schemas} />`)}
    <h3>Errors</h3><p class="soft small">Each has the same envelope; <a href="/docs/errors">errors</a> says what every code means.</p>
    <ul class="failures">${failures.map(([status, response]) => html`<li key=${status}><strong class="bad">${status}</strong> ${response.description}
      ${" "}<code>${response.content["application/json"].example?.error.code}</code></li>`)}</ul>`;
}

function Operation({ operation, schemas, open }) {
  const [shown, setShown] = useState(open);
  useEffect(() => { if (open) setShown(true); }, [open]);
  return html`<details class="operation panel" id=${operation.operationId} open=${shown} onToggle=${(event) => setShown(event.currentTarget.open)}>
    <summary><span class=${`method ${operation.method}`}>${operation.method.toUpperCase()}</span><code>${operation.path}</code><span class="soft">${operation.summary}</span></summary>
    ${shown && html`<div class="body stack">
      <p><${Prose} text=${operation.description} /></p>
      <p class="soft small">${operation.security.length ? "Needs an API key." : "Needs no API key."} <a href=${`#${operation.operationId}`}>Link</a></p>
      <${Samples} list=${operation["x-codeSamples"]} />
      <${Parameters} list=${operation.parameters} />
      <${Body} body=${operation.requestBody} schemas=${schemas} />
      <${Responses} operation=${operation} schemas=${schemas} />
    </div>`}</details>`;
}

function Reference({ document }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(location.hash.slice(1));
  useEffect(() => {
    const follow = () => setChosen(location.hash.slice(1));
    window.addEventListener("hashchange", follow);
    return () => window.removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => { if (chosen) window.document.getElementById(chosen)?.scrollIntoView(); }, [chosen]);
  const shown = operationsOf(document).filter((operation) => matches(operation, text.trim()));
  return html`<div class="field"><label for="filter">Filter</label>
      <input id="filter" type="search" placeholder="video, POST, /v1/keys …" value=${text} onInput=${(event) => setText(event.target.value)} /></div>
    ${document.tags.map((tag) => ({ ...tag, list: shown.filter((operation) => operation.tags?.includes(tag.name)) })).filter(({ list }) => list.length)
      .map((tag) => html`<section key=${tag.name} class="stack tight"><h2 id=${`tag-${tag.name.toLowerCase()}`}>${tag.name}</h2><p class="soft">${tag.description}</p>
        ${tag.list.map((operation) => html`<${Operation} key=${operation.operationId} operation=${operation} schemas=${document.components.schemas} open=${operation.operationId === chosen} />`)}
      </section>`)}
    ${!shown.length && html`<p role="status">Nothing matches.</p>`}`;
}

startFrame();
const place = document.getElementById("api");
fetch("/openapi.json").then((response) => response.json()).then(
  (description) => render(html`<${Reference} document=${description} />`, place),
  () => render(html`<p class="bad" role="alert">The description could not be loaded. Reload the page to try again.</p>`, place),
);
