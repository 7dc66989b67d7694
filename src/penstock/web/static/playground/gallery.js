// What was made lately, with any key of the organization: to look at again, or to use as an input.

import { useData } from "../data.js";
import { ask, withQuery } from "../gateway.js";
import { Panel } from "../parts/controls.js";
import { Thumb } from "../parts/media.js";
import { pageUrl } from "../route.js";
import { html } from "../view.js";

const MOST = 8;
const TYPES = { image: "image", video: "video" };

// Without `onPick` each output links to its request. It is loaded again when `round` changes. Nothing is shown until there is something to show.
export function Gallery({ kind, round, onPick }) {
  const found = useData(async (signal) => {
    const { data } = await ask(withQuery("/v1/requests", { limit: 2 * MOST, status: "completed", kind }), { signal });
    return data.filter(({ outputs }) => outputs.length).slice(0, MOST).map(({ id, model, outputs }) => ({ id, model, output: outputs[0] }));
  }, [kind, round]);
  if (!found.data?.length) return null;
  return html`<${Panel} title="Recent results" about=${onPick ? "Choose one as input." : undefined}
      aside=${html`<a class="button small" href=${pageUrl("library", { type: TYPES[kind] })}>Open library</a>`}>
    <ul class="gallery">${found.data.map(({ id, model, output }) => html`<li key=${output.id}>${onPick
      ? html`<button type="button" onClick=${() => onPick(output.url)}><${Thumb} kind=${kind} output=${output} width="480" alt=${`Use an image made by ${model}`} /></button>`
      : html`<a href=${pageUrl(`requests/${id}`)}><${Thumb} kind=${kind} output=${output} width="480" alt=${`Made by ${model}, request ${id}`} /></a>`}</li>`)}</ul>
  <//>`;
}
