// The limits of the keys that people make for themselves, as a dialog for admins.

import { useData } from "../data.js";
import { ask } from "../gateway.js";
import { Dialog, Loaded, Problem, TextField } from "../parts/controls.js";
import { html, useState } from "../view.js";

const PATH = "/v1/own-key-limits";
const NUMBERS = {
  keys: ["Keys per person", { min: 0, max: 100, step: 1, required: true }, "0: people make no keys."],
  days: ["Days that a key lasts at most", { min: 1, max: 3650, step: 1, required: true }],
  usd_per_day: ["US dollars per day", { min: 0, step: "any", placeholder: "No limit" }],
  usd_per_month: ["US dollars per month", { min: 0, step: "any", placeholder: "No limit" }],
  requests_per_minute: ["Requests per minute", { min: 1, step: 1, placeholder: "No limit" }],
  concurrent_requests: ["Concurrent requests", { min: 1, step: 1, placeholder: "No limit" }],
};

function Form({ limits, onSaved, onProblem }) {
  const numbers = Object.keys(NUMBERS).map((name) => [name, limits[name]?.toString() ?? ""]);
  const [texts, setTexts] = useState({ ...Object.fromEntries(numbers), models: (limits.models ?? []).join(" ") });
  const set = (name) => (text) => setTexts({ ...texts, [name]: text });
  async function save(event) {
    event.preventDefault();
    const given = Object.keys(NUMBERS).filter((name) => texts[name].trim()).map((name) => [name, Number(texts[name])]);
    const models = texts.models.split(/[\s,]+/).filter(Boolean);
    await ask(PATH, { method: "PUT", body: { ...Object.fromEntries(given), models: models.length ? models : null } }).then(onSaved, onProblem);
  }
  return html`<form id="limits-form" class="stack" onSubmit=${save}>
    <div class="fields">${Object.entries(NUMBERS).map(([name, [label, rest, help]]) => html`<${TextField} key=${name} label=${label} type="number"
        ...${rest} help=${help} value=${texts[name]} onInput=${set(name)} />`)}</div>
    <${TextField} label="Allowed models" value=${texts.models} onInput=${set("models")} placeholder="All" spellcheck="false"
        help="Model IDs separated by spaces. openai/* allows every model starting with openai/." />
  </form>`;
}

export function OwnKeyLimits({ onClose }) {
  const limits = useData((signal) => ask(PATH, { signal }));
  const [problem, setProblem] = useState(null);
  const footer = html`<button type="button" class="button" onClick=${onClose}>Cancel</button><button class="button main"
      form="limits-form" disabled=${limits.data === null}>Save</button>`;
  return html`<${Dialog} title="Limits of people's keys" onClose=${onClose} footer=${footer}>
    <p>What each key may do at most that a person makes from now on. Keys that there are stay as they are.</p>
    <${Loaded} of=${limits}>${(data) => html`<${Form} limits=${data} onSaved=${onClose} onProblem=${setProblem} />`}<//>
    <${Problem} problem=${problem} /><//>`;
}
