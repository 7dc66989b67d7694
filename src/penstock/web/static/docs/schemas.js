// JSON Schemas as tables: the name, type and meaning of each field.

import { Prose } from "../parts/controls.js";
import { html } from "../view.js";

const DEEPEST = 4;

export function resolve(schema, schemas) {
  if (schema.$ref) return resolve(schemas[schema.$ref.split("/").pop()], schemas);
  if (schema.anyOf?.length && schema.anyOf.some((each) => each.$ref || each.properties)) {
    return resolve(schema.anyOf.find((each) => each.$ref || each.properties), schemas);
  }
  return schema.type === "array" && schema.items ? resolve(schema.items, schemas) : schema;
}

// The type in words; names of values are between backticks.
export function typeText(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.const !== undefined) return `\`${schema.const}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(", ");
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeText))].join(" or ");
  if (schema.type === "array") return `array of ${typeText(schema.items ?? {})}`;
  const types = [schema.type ?? "anything"].flat().join(" or ");
  return schema.format ? `${types} (${schema.format})` : types;
}

function limits(schema) {
  const parts = [];
  if (schema.minimum !== undefined || schema.maximum !== undefined) parts.push(`${schema.minimum ?? "…"} to ${schema.maximum ?? "…"}.`);
  if (schema.maxLength !== undefined) parts.push(`Up to ${schema.maxLength.toLocaleString("en")} characters.`);
  if (schema.default !== undefined) parts.push(`Default: \`${schema.default}\`.`);
  return parts.join(" ");
}

export function Fields({ schema, schemas, depth = 1 }) {
  const shown = resolve(schema, schemas);
  const rows = Object.entries(shown.properties ?? {});
  if (!rows.length) return html`<p class="soft small">${typeText(schema)}</p>`;
  return html`<dl class="fields-of">${rows.map(([name, row]) => {
    const inner = depth < DEEPEST && Object.keys(resolve(row, schemas).properties ?? {}).length > 0;
    return html`<div key=${name}>
      <dt><code>${name}</code> <span class="soft small"><${Prose} text=${typeText(row)} /></span>
        ${shown.required?.includes(name) && depth === 1 && schema.properties && html` <span class="chip">required</span>`}</dt>
      <dd><${Prose} text=${[row.description, limits(row)].filter(Boolean).join(" ")} />
        ${inner && html`<details><summary>Fields of <code>${name}</code></summary><${Fields} schema=${row} schemas=${schemas} depth=${depth + 1} /></details>`}</dd>
    </div>`;
  })}</dl>`;
}
