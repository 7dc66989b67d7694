// The guards: what each watches, what follows, and how often it refused or did not answer. They are set in penstock.toml.

import { useData } from "../data.js";
import { ask, withQuery } from "../gateway.js";
import { count, plural } from "../format.js";
import { Empty, Head, Loaded, Panel, SelectField } from "../parts/controls.js";
import { KINDS } from "../parts/status.js";
import { Table } from "../parts/table.js";
import { html, useState } from "../view.js";

const REFRESH_MS = 10_000;
const SPANS = [[1, "Today"], [7, "The last 7 days"], [30, "The last 30 days"], [90, "The last 90 days"]];

function Check({ guard }) {
  const { run, rules, host, model } = guard;
  if (run === "http") return html`A service${host && html`<br /><span class="small soft anywhere">${host}</span>`}`;
  if (run === "model") return html`A model<br /><span class="small soft anywhere">${model}</span>`;
  const parts = [rules.words && plural(rules.words, "word"), rules.max_characters && `up to ${plural(rules.max_characters, "character")}`,
    rules.models_without_images.length > 0 && `no images for ${rules.models_without_images.join(", ")}`];
  return html`Rules<br /><span class="small soft anywhere">${parts.filter(Boolean).join("; ")}</span>`;
}

function State({ guard: { verdicts, on_error: onError } }) {
  const asked = Object.values(verdicts).reduce((sum, each) => sum + each, 0);
  const chip = (tone, words) => html`<span class=${`chip ${tone}`}><span class="dot"></span>${words}</span>`;
  if (!asked) return chip("", "Not asked");
  if (!verdicts.error) return chip("good", "Answers");
  const does = onError === "closed" ? "calls are refused meanwhile" : "calls pass unchecked meanwhile";
  return html`${chip(verdicts.error === asked ? "bad" : "warn", verdicts.error === asked ? "Never answers" : "Fails at times")}
    <br /><span class="small soft">${does}</span>`;
}

// What a guard does with what it refuses, in a few words.
function Effect({ guard }) {
  const notes = [guard.when === "output" && guard.on_hit === "refuse" && (guard.charge_refused ? "charged" : "not charged"),
    guard.sample_percent < 100 && `${guard.sample_percent} % of calls`, guard.orgs && plural(guard.orgs.length, "organization")];
  return html`${guard.on_hit === "refuse" ? "Refuses" : "Flags"} ${guard.when === "input" ? "calls" : "outputs"}
    ${notes.some(Boolean) && html`<br /><span class="small soft">${notes.filter(Boolean).join("; ")}</span>`}`;
}

const figure = (name, verdict) => ({ name, kind: "number figure", cell: ({ verdicts }) => count(verdicts[verdict]) });
const COLUMNS = [
  { name: "Guard", kind: "words lead", cell: ({ name, kinds }) => html`<strong class="medium anywhere">${name}</strong>
      <br /><span class="small soft">${kinds.map((kind) => KINDS[kind] ?? kind).join(", ")}</span>` },
  { name: "By", kind: "words", cell: (guard) => html`<${Check} guard=${guard} />` },
  { name: "Effect", kind: "words", cell: (guard) => html`<${Effect} guard=${guard} />` },
  { name: "State", kind: "state", cell: (guard) => html`<${State} guard=${guard} />` },
  figure("Passed", "pass"), figure("Flagged", "flag"), figure("Refused", "refuse"), figure("No answer", "error"),
];

export function Guards() {
  const [days, setDays] = useState(7);
  const loaded = useData((signal) => ask(withQuery("/v1/guards", { days }), { signal }), [days], { every: REFRESH_MS });
  return html`<div class="page">
    <${Head} title="Guards" about="What checks calls before they are sent, and outputs before anybody gets them. Operators set guards in penstock.toml." />
    <div class="filters"><${SelectField} label="Verdicts of" name="days" value=${days} onInput=${(text) => setDays(Number(text))} options=${SPANS} /></div>
    <${Panel} label="Guards" flush><${Loaded} of=${loaded}>${({ data }) => (data.length
      ? html`<${Table} label="Guards" columns=${COLUMNS} rows=${data} rowKey=${({ name }) => name} />`
      : html`<${Empty} icon="shield" title="No guards yet">Every call goes on unchecked, and every output is handed out. <a href="/docs/guards">Guards</a><//>`)}<//><//>
  </div>`;
}
