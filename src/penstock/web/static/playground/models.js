// Choose a model, and a few more to compare it with.

import { money } from "../format.js";
import { Icon } from "../parts/icons.js";
import { html, useId } from "../view.js";

const MOST = 4;

function groups(models) {
  const found = new Map();
  for (const model of models) {
    const [owner] = model.id.includes("/") ? model.id.split("/") : [model.owned_by];
    found.set(owner, [...(found.get(owner) ?? []), model]);
  }
  return [...found];
}

function Choice({ offered, model, label, onChoose }) {
  const id = useId();
  return html`<div class="choice grow">
    <label class="only-heard" for=${id}>${label}</label>
    <select id=${id} value=${model.id} onChange=${(event) => onChoose(event.target.value)}>
      ${groups(offered).map(([owner, models]) => html`<optgroup key=${owner} label=${owner}>
        ${models.map(({ id: name }) => html`<option key=${name} value=${name} selected=${name === model.id}>
            ${name}</option>`)}</optgroup>`)}
    </select></div>`;
}

export function Models({ offered, models, each, onChange, most = MOST }) {
  const ids = models.map(({ id }) => id);
  const others = offered.filter(({ id }) => !ids.includes(id));
  const replace = (place, id) => onChange(ids.map((other, number) => (number === place ? id : other)));
  return html`<div class="field" role="group" aria-label="Models">
    <span class="label"><span>${models.length > 1 ? "Models, side by side" : "Model"}</span>
      ${ids.length < most && others.length > 0 && html`<button type="button" class="button plain small" id="compare"
          onClick=${() => onChange([...ids, others[0].id])}><${Icon} name="plus" size="12" />Compare</button>`}</span>
    ${models.map((model, place) => html`<div class="row choices" key=${place}>
      <${Choice} offered=${offered.filter(({ id }) => id === model.id || !ids.includes(id))} model=${model}
          label=${place ? `Model ${place + 1}` : "Model"} onChoose=${(id) => replace(place, id)} />
      ${models.length > 1 && html`<span class="figures small soft">${each[place] === undefined ? "" : money(each[place])}</span>
        <button type="button" class="button plain small icon" aria-label=${`Remove ${model.id}`}
            onClick=${() => onChange(ids.filter((id) => id !== model.id))}><${Icon} name="close" size="12" /></button>`}
    </div>`)}
    ${models.length === 1 && models[0].description && html`<span class="help">${models[0].description}</span>`}
  </div>`;
}
