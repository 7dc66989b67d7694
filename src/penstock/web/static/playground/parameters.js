// The parameters of a model as a form, made from its JSON Schema.

import { Field, Prose, SelectField, TextField } from "../parts/controls.js";
import { html } from "../view.js";
import { arrange } from "./tasks.js";

const HANDLING = {
  passthrough: "Passed through",
  renamed: "Renamed",
  converted: "Converted",
  emulated: "Handled by Penstock",
};
const MEANING = {
  passthrough: "Sent to the provider as it is.",
  renamed: "Sent under the name that the provider uses.",
  converted: "Converted to what the provider accepts.",
  emulated: "Handled by Penstock, the same for all models.",
};
const LONG_TEXT = 200; // shorter limits are not worth a word
const SHAPES = [["1:1", "1024x1024"], ["3:2", "1536x1024"], ["16:9", "1280x720"], ["9:16", "720x1280"]];

function Handling({ property }) {
  const handling = property["x-handling"];
  if (!HANDLING[handling]) return null;
  const to = property["x-sent-as"];
  const text = to ? `${HANDLING[handling]}: sent as ${to}` : HANDLING[handling];
  return html`<span class="handling" title=${MEANING[handling]}>${text}</span>`;
}

const Help = ({ property }) => html`<${Prose} text=${helpFor(property)} /> <${Handling} property=${property} />`;

const types = (property) => [property.type ?? "string"].flat();
const isNumeric = (property) => types(property).some((type) => type === "integer" || type === "number")
  && (property.minimum !== undefined || property.maximum !== undefined || !types(property).includes("string"));

// The default is shown in the field itself.
function helpFor(property) {
  const range = property.minimum !== undefined && property.maximum !== undefined
    ? `${property.minimum} to ${property.maximum}.` : property.minimum !== undefined ? `From ${property.minimum}.`
      : property.maximum !== undefined ? `Up to ${property.maximum}.` : property.maxLength >= LONG_TEXT ? `Up to ${property.maxLength} characters.` : "";
  return [property.description, range].filter(Boolean).join(" ");
}

// Forms of texts that the schema does not describe: the same for every model.
const FORMS = {
  size: [/^(auto|\d+x\d+|\d+:\d+)$/i, "WIDTHxHEIGHT, or a proportion such as 16:9"],
  aspect_ratio: [/^\d+:\d+$/, "a proportion such as 16:9"],
  media_retention: [/^(0|[1-9]\d{0,5}[hd])$/, "hours or days, such as 12h or 7d, or 0 if it is delivered"],
};

function number(name, property, text) {
  const value = Number(text);
  if (Number.isNaN(value)) throw new Error(`\`${name}\` must be a number.`);
  if (types(property).includes("integer") && !types(property).includes("number") && !Number.isInteger(value)) throw new Error(`\`${name}\` must be a whole number.`);
  const { minimum = -Infinity, maximum = Infinity } = property;
  if (value >= minimum && value <= maximum) return value;
  throw new Error(`\`${name}\` must be ${Number.isFinite(minimum) && Number.isFinite(maximum) ? `from ${minimum} to ${maximum}`
    : Number.isFinite(minimum) ? `at least ${minimum}` : `at most ${maximum}`}.`);
}

function plain(name, property, text) {
  const [form, words] = property.enum ? [] : FORMS[name] ?? [];
  if (form && !form.test(text.trim())) throw new Error(`\`${name}\` must be ${words}.`);
  if (text.length > property.maxLength) throw new Error(`\`${name}\` may have at most ${property.maxLength} characters.`);
  return text;
}

// The text of a field as a value of its type; throws with a sentence when it cannot be one.
export function parse(name, property, text) {
  if (text === "") return "";
  const allowed = types(property);
  if (property.enum) return property.enum.find((value) => String(value) === text) ?? text;
  if (allowed.includes("boolean") && (text === "true" || text === "false")) return text === "true";
  if (isNumeric(property)) return number(name, property, text);
  if (!allowed.includes("object") && !allowed.includes("array")) return plain(name, property, text);
  if (allowed.includes("string") && !/^\s*[[{]/.test(text)) return plain(name, property, text);
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`\`${name}\` must be JSON.`);
  }
}

function Size({ shared, value, onInput, property }) {
  return html`<${Field} ...${shared} wide>${(attributes) => html`
    <div class="shapes">
      <div class="tabs" role="group" aria-label="Shape">${SHAPES.map(([shape, size]) => html`
        <button type="button" key=${shape} aria-pressed=${String(value === size)} onClick=${() => onInput(value === size ? "" : size)}>
          <span class=${`shape s${shape.replace(":", "-")}`}></span>${shape}</button>`)}</div>
      <input ...${attributes} type="text" value=${value} placeholder=${property.default ?? "WIDTHxHEIGHT"} spellcheck="false"
        onInput=${(event) => onInput(event.target.value)} />
    </div>`}<//>`;
}

function Parameter({ name, property, required, value, wrong, onInput }) {
  const label = html`<code>${name}</code>${required ? html` <span class="soft">required</span>` : null}`;
  const shared = { label, help: html`<${Help} property=${property} />`, wrong };
  if (name === "size" && !property.enum) return html`<${Size} shared=${shared} value=${value} onInput=${onInput} property=${property} />`;
  const options = property.enum ?? (types(property).includes("boolean") && types(property).length === 1 ? [true, false] : null);
  if (options) {
    const empty = property.default === undefined ? "not set" : `default (${property.default})`;
    const all = [["", empty], ...options.map((option) => [String(option), String(option)])];
    return html`<${SelectField} ...${shared} value=${value} onInput=${onInput} options=${all} />`;
  }
  if (isNumeric(property)) {
    const step = types(property).includes("integer") ? 1 : "any";
    return html`<${TextField} ...${shared} type="number" inputmode="decimal" min=${property.minimum} max=${property.maximum}
      step=${step} value=${value} placeholder=${property.default ?? ""} onInput=${onInput} />`;
  }
  if (types(property).some((type) => type === "object" || type === "array") || name === "negative_prompt") {
    return html`<${Field} ...${shared} wide>${(attributes) => html`<textarea ...${attributes} rows="2"
        class=${name === "negative_prompt" ? "" : "code"}
      spellcheck="false" value=${value} onInput=${(event) => onInput(event.target.value)}></textarea>`}<//>`;
  }
  return html`<${TextField} ...${shared} type="text" value=${value} placeholder=${property.default ?? ""} onInput=${onInput}
      spellcheck="false" />`;
}

export function Parameters({ task, model, values, wrong, onInput }) {
  const { first, more, ignored } = arrange(task, model);
  const field = (parameter) => html`<${Parameter} key=${parameter.name} ...${parameter} value=${values[parameter.name] ?? ""}
    wrong=${wrong?.[parameter.name]} onInput=${(value) => onInput(parameter.name, value)} />`;
  const filled = more.filter(({ name }) => values[name] || wrong?.[name]).length;
  return html`
    <div class="parameters">${first.map(field)}</div>
    ${more.length > 0 && html`<details open=${filled > 0}><summary>More parameters (${more.length})</summary>
      <div class="parameters">${more.map(field)}</div></details>`}
    ${ignored.length > 0 && html`<details><summary>Ignored by this model (${ignored.length})</summary>
      <dl class="facts small">${ignored.map(({ name, property }) => html`<div key=${name}><dt><code>${name}</code></dt><dd><${Prose}
          text=${property.description} /></dd></div>`)}</dl>
    </details>`}`;
}
