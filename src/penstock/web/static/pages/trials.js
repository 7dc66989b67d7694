// Trials: the same prompts with several models. The list; a new one; one with its results.

import { count, money } from "../format.js";
import { Empty, Head, Loaded, Panel } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { KINDS, Status, When } from "../parts/status.js";
import { Pager, Table, usePages } from "../parts/table.js";
import { pageUrl } from "../route.js";
import { html } from "../view.js";
import { NewTrial } from "./new_trial.js";
import { Trial } from "./trial.js";

const REFRESH_MS = 3000;
const COLUMNS = [
  { name: "When", kind: "nowrap", cell: ({ created_at: at }) => html`<${When} at=${at} />` },
  { name: "Name", kind: "words", cell: ({ id, name }) => html`<a class="medium" href=${pageUrl(`trials/${id}`)}>${name ?? "Without a name"}</a>` },
  { name: "Kind", cell: ({ kind }) => KINDS[kind] ?? kind },
  { name: "Models", kind: "words", cell: ({ models }) => models.join(", ") },
  { name: "Prompts", kind: "number", cell: ({ prompts }) => count(prompts) },
  { name: "Status", cell: ({ status }) => html`<${Status} of=${status} />` },
  { name: "Cost", kind: "number", cell: ({ cost }) => money(cost) },
  { name: "Verdict", kind: "words", cell: ({ verdict }) => (verdict ? html`${verdict.alias} → ${verdict.model}` : "") },
];

function List() {
  const page = usePages("/v1/trials", { limit: 20 }, { every: REFRESH_MS });
  const begin = html`<a class="button main" href=${pageUrl("trials/new")}><${Icon} name="plus" />New trial</a>`;
  return html`<div class="page">
    <${Head} title="Trials" about="The same prompts with several models: the price first, blind votes by a link, and figures that decide.">${begin}<//>
    <${Panel} label="Trials" flush>
      <${Loaded} of=${page}>${({ data }) => (data.length
        ? html`<${Table} label="Trials" columns=${COLUMNS} rows=${data} rowKey=${({ id }) => id} /><${Pager} of=${page} />`
        : html`<${Empty} icon="star" title="No trials" action=${html`<a class="button" href="/docs/trials">How trials work</a>`}>Choose prompts
            and two to six models. Before anything runs, you see what it costs.<//>`)}<//>
    <//>
  </div>`;
}

export function Trials({ own, path: [id] }) {
  if (!id) return html`<${List} />`;
  return id === "new" ? html`<${NewTrial} />` : html`<${Trial} id=${id} own=${own} />`;
}
