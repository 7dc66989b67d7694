// The settings in force, and where each of them comes from.

import { useData } from "../data.js";
import { ask } from "../gateway.js";
import { Head, Loaded, Panel, Prose } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { Table } from "../parts/table.js";
import { html, useState } from "../view.js";

const ORIGINS = { default: ["Default", ""], file: ["penstock.toml", "accent"], environment: ["Environment", "accent"], "command line": ["Command line", "accent"] };
// Null if there is no value: a setting may have the value `none`.
function written(value) {
  if (value === "" || value === null || value.length === 0) return null;
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function Value({ value, is_secret: isSecret, is_set: isSet }) {
  if (isSecret) return html`<span class="soft">${isSet ? "set, not shown" : "not set"}</span>`;
  const text = written(value);
  return text === null ? html`<span class="soft">not set</span>` : html`<code>${text}</code>`;
}

const COLUMNS = [
  { name: "Setting", cell: ({ name, variable }) => html`<strong class="medium">${name}</strong>${variable ? html`<br /><code
      class="small soft">${variable}</code>` : ""}` },
  { name: "Value", kind: "words", cell: (setting) => html`<${Value} ...${setting} />` },
  { name: "From", cell: ({ origin }) => { const [words, colour] = ORIGINS[origin] ?? [origin, ""]; return html`<span
      class=${`chip ${colour}`}>${words}</span>`; } },
  { name: "Meaning", kind: "words long", cell: ({ meaning }) => html`<span class="small"><${Prose} text=${meaning} /></span>` },
];

export function Settings() {
  const loaded = useData((signal) => ask("/v1/settings", { signal }));
  const [words, setWords] = useState("");
  const [changed, setChanged] = useState(false);
  const matches = ({ name, meaning, origin }) => `${name} ${meaning}`.toLowerCase().includes(words.toLowerCase()) && (!changed || origin !== "default");
  return html`<div class="page">
    <${Head} title="Settings" about="Current settings. Edit penstock.toml or the environment and restart to apply changes." />
    <div class="row"><label class="search"><span class="only-heard">Search settings</span><${Icon} name="search" /><input type="search"
        placeholder="Search settings" value=${words} onInput=${(event) => setWords(event.target.value)} /></label>
      <label class="check"><input type="checkbox" checked=${changed}
          onChange=${(event) => setChanged(event.target.checked)} />Only what was changed</label></div>
    <${Panel} label="Settings" flush><${Loaded} of=${loaded}>${({ data }) => html`<${Table} label="Settings" columns=${COLUMNS}
        rows=${data.filter(matches)} rowKey=${({ name }) => name} />`}<//><//>
  </div>`;
}
