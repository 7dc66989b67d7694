// What the models of a trial made, side by side by prompt, with their names: for whoever has voted, or does not vote.

import { fileUrl, send } from "../gateway.js";
import { money } from "../format.js";
import { Empty, Panel, Problem } from "../parts/controls.js";
import { Output } from "../parts/media.js";
import { html, useState } from "../view.js";

const AT_ONCE = 10; // prompts
const LONGEST_TEXT = 1200;

// The outputs of the rows of a batch, by their number.
async function outputs(batch) {
  const lines = (await (await send(`/v1/batches/${batch}/results`)).text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return new Map(lines.map((line) => [Number(line.id.split("_").at(-1)), line]));
}

// A small copy of a file of this gateway; the object store has none.
const small = (url) => (url.startsWith("/m/") ? `${url}&w=480` : undefined);

function Cell({ line, kind, model }) {
  if (!line) return html`<p class="soft small">Not made yet</p>`;
  if (line.error) return html`<p class="soft small anywhere">${line.error.message}</p>`;
  const { body } = line.response;
  if (kind === "chat") return html`<p class="words-made anywhere small">${(body.choices?.[0]?.message?.content ?? "").slice(0, LONGEST_TEXT)}</p>`;
  const found = kind === "video" ? body.output?.url : body.data?.[0]?.url;
  if (!found) return html`<p class="soft small">Not stored any more</p>`;
  const url = fileUrl(found);
  return html`<${Output} url=${url} small=${small(url)} type=${kind === "video" ? "video/mp4" : ""} alt=${`By ${model}`} />`;
}

export function Outputs({ trial: { batch_id: batch, kind, models, prompts } }) {
  const [lines, setLines] = useState(null);
  const [shown, setShown] = useState(AT_ONCE);
  const [problem, setProblem] = useState(null);
  const load = () => outputs(batch).then((found) => { setLines(found); setProblem(null); }, setProblem);
  const button = html`<button type="button" class="button small" id="show-outputs" onClick=${load}>${lines ? "Refresh" : "Show them"}</button>`;
  return html`<${Panel} title="Outputs" about="With the names of the models: vote first." aside=${button}>
    <${Problem} problem=${problem} />
    ${lines && !lines.size && html`<${Empty} icon="image" title="Nothing yet">No output is made yet.<//>`}
    ${lines?.size > 0 && html`<div class="stack">${Array.from({ length: Math.min(shown, prompts) }, (_, place) => html`<section key=${place} class="made"
        aria-label=${`Prompt ${place + 1}`}>
      ${models.map((model, number) => { const line = lines.get(place * models.length + number + 1); return html`<figure key=${model}>
        <${Cell} line=${line} kind=${kind} model=${model} /><figcaption class="small anywhere">${model} <span class="soft">${line ? money(line.cost) : ""}</span></figcaption></figure>`; })}
    </section>`)}
      ${shown < prompts && html`<div><button type="button" class="button small" onClick=${() => setShown(shown + AT_ONCE)}>More</button></div>`}</div>`}
  <//>`;
}
