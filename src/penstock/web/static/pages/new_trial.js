// A new trial: prompts, models, and what they would cost; then it may run.

import { models, useData } from "../data.js";
import { count, money, plural } from "../format.js";
import { ask } from "../gateway.js";
import { Field, Head, Loaded, Panel, Problem, SelectField, TextField } from "../parts/controls.js";
import { Models } from "../playground/models.js";
import { modelsFor } from "../playground/tasks.js";
import { go, pageUrl } from "../route.js";
import { html, useRef, useState } from "../view.js";

const MOST_MODELS = 6;
const KINDS = [["image", "Images"], ["video", "Videos"], ["chat", "Chats"]];
const SOURCES = [["typed", "Typed"], ["file", "A file"], ["recent", "Recent requests"]];
const EXAMPLES = { image: '{"size": "1024x1024"}', video: '{"seconds": 4}', chat: '{"max_tokens": 500}' };

// What is sent, as a form if there is a file. Throws for parameters that are no JSON.
function callBody({ kind, source, prompts, recent, model, parameters, name, budget }, chosen, file) {
  const fields = { kind };
  if (name.trim()) fields.name = name.trim();
  if (budget) fields.max_cost = Number(budget);
  const given = parameters.trim() ? JSON.parse(parameters) : {};
  if (source !== "file") {
    const from = source === "typed" ? { prompts: prompts.split("\n").map((line) => line.trim()).filter(Boolean) }
      : { recent: { limit: Number(recent), ...(model ? { model } : {}) } };
    return { ...fields, models: chosen, parameters: given, ...from };
  }
  const form = new FormData();
  form.append("file", file);
  for (const id of chosen) form.append("models", id);
  for (const [field, value] of Object.entries({ ...fields, parameters: JSON.stringify(given) })) form.append(field, value);
  return form;
}

function Estimate({ of: { rows, prompts, estimated_cost: cost, models: each } }) {
  return html`<p id="estimate"><strong>${money(cost)}</strong> for ${plural(rows, "call")}: ${plural(prompts, "prompt")} with ${count(each.length)} models.${" "}
    <span class="soft">${each.map(({ model, estimated_cost: part }) => `${model} ${money(part)}`).join(" · ")}</span></p>`;
}

function Form({ offered }) {
  const [fields, setFields] = useState({ kind: "image", source: "typed", prompts: "", recent: "20", model: "", parameters: "", name: "", budget: "" });
  const [chosen, setChosen] = useState(() => modelsFor("image", offered).slice(0, 2).map(({ id }) => id));
  const [estimate, setEstimate] = useState(null);
  const [state, setState] = useState({ busy: false, problem: null });
  const file = useRef(null);
  const fitting = modelsFor(fields.kind, offered);
  const change = (changes) => { setFields({ ...fields, ...changes }); setEstimate(null); };
  const set = (name) => (text) => change({ [name]: text });
  const chooseKind = (kind) => { change({ kind, parameters: "" }); setChosen(modelsFor(kind, offered).slice(0, 2).map(({ id }) => id)); };
  async function send(event) {
    event.preventDefault();
    setState({ busy: true, problem: null });
    try {
      const body = callBody(fields, chosen, file.current?.files[0]);
      if (estimate) go(`trials/${(await ask("/v1/trials", { method: "POST", body })).id}`);
      else setEstimate(await ask("/v1/trials?dryRun=true", { method: "POST", body }));
      setState({ busy: false, problem: null });
    } catch (problem) {
      setState({ busy: false, problem: problem instanceof SyntaxError ? new Error("The fields of every call must be a JSON object.") : problem });
    }
  }
  const found = fitting.filter(({ id }) => chosen.includes(id)).sort((one, other) => chosen.indexOf(one.id) - chosen.indexOf(other.id));
  return html`<form class="stack wide" onSubmit=${send}>
    <${Panel} title="What to compare"><div class="stack">
      <${SelectField} label="Kind" name="kind" value=${fields.kind} onInput=${chooseKind} options=${KINDS} />
      ${found.length ? html`<${Models} offered=${fitting} models=${found} each=${[]} most=${MOST_MODELS}
          onChange=${(ids) => { setChosen(ids); setEstimate(null); }} />` : html`<p class="soft">No model makes this here.</p>`}
      ${found.length === 1 && html`<p class="soft small">Add at least one more model.</p>`}</div><//>
    <${Panel} title="Prompts"><div class="stack">
      <${SelectField} label="From" name="source" value=${fields.source} onInput=${set("source")} options=${SOURCES} />
      ${fields.source === "typed" && html`<${Field} label="Prompts" help="One in each line, 200 at most.">${(attributes) => html`<textarea ...${attributes}
          name="prompts" rows="6" required value=${fields.prompts} onInput=${(event) => set("prompts")(event.target.value)} />`}<//>`}
      ${fields.source === "file" && html`<${Field} label="File" help="CSV with a column prompt, or JSONL. Further columns are fields of the call.">${(attributes) => html`<input
          ...${attributes} type="file" name="file" ref=${file} accept=".csv,.jsonl" required onChange=${() => setEstimate(null)} />`}<//>`}
      ${fields.source === "recent" && html`<${TextField} label="How many" type="number" min="1" max="200" required value=${fields.recent} onInput=${set("recent")} />
        <${TextField} label="Only requests for the model" value=${fields.model} onInput=${set("model")} help="Empty: of any model." />`}
      <${TextField} label="Fields of every call" name="parameters" value=${fields.parameters} onInput=${set("parameters")} placeholder=${EXAMPLES[fields.kind]}
          help="As JSON. They must fit every model." /></div><//>
    <${Panel} title="Name and budget"><div class="stack">
      <${TextField} label="Name" name="name" maxlength="190" value=${fields.name} onInput=${set("name")} />
      <${TextField} label="US dollars at most" name="budget" type="number" min="0" step="any" value=${fields.budget} onInput=${set("budget")}
          help="Before it would be passed, the trial is paused. Empty: no budget." /></div><//>
    ${estimate && html`<${Estimate} of=${estimate} />`}
    <${Problem} problem=${state.problem} />
    <div class="row"><button class="button main" id="send-trial" disabled=${state.busy || found.length < 2}>${estimate ? `Run for ${money(estimate.estimated_cost)}`
      : "Show the price"}</button></div>
  </form>`;
}

export function NewTrial() {
  const loaded = useData(models, []);
  return html`<div class="page">
    <${Head} title="New trial" about="Each prompt is made once with each model. You see the price before anything runs." back=${{ href: pageUrl("trials"), label: "Trials" }} />
    <${Loaded} of=${loaded}>${(offered) => html`<${Form} offered=${offered.filter(({ alias_of: model }) => !model)} />`}<//>
  </div>`;
}
