// Tables that become cards on a narrow screen, and lists that come in pages.

import { useData } from "../data.js";
import { ask, withQuery } from "../gateway.js";
import { html, useEffect, useState } from "../view.js";

// A column: { name, cell(row), kind, quiet: the name is only heard }. Kinds, of which a column may have several: "number", "words",
// "long" (a sentence or more), "spare" (not shown on a narrow screen). A table with `brief` has rows of two lines on a narrow
// screen, in which the kinds "lead", "figure", "state" and "time" have their place.
export function Table({ label, columns, rows, rowKey, rowClass, brief = false }) {
  return html`<div class="scroller" tabindex="0" role="group" aria-label=${label}><table class=${brief ? "brief" : ""}>
    <caption class="only-heard">${label}</caption>
    <thead><tr>${columns.map(({ name, kind, quiet }) => html`<th key=${name} scope="col" class=${kind ?? ""}>${quiet ? html`<span
        class="only-heard">${name}</span>` : name}</th>`)}</tr></thead>
    <tbody>${rows.map((row, place) => html`<tr key=${rowKey ? rowKey(row) : place} class=${rowClass?.(row) ?? ""}>
      ${columns.map(({ name, kind, cell, quiet }) => html`<td key=${name} class=${kind ?? ""} data-name=${quiet ? "" : name}><div>
          ${cell(row)}</div></td>`)}</tr>`)}</tbody>
  </table></div>`;
}

// A list of the API, one page at a time. The first page is refreshed every `every` ms.
export function usePages(path, values = {}, { every = 0 } = {}) {
  const start = withQuery(path, values);
  const [url, setUrl] = useState(null);
  useEffect(() => setUrl(null), [start]);
  const page = useData((signal) => ask(url ?? start, { signal }), [url ?? start], { every: url ? 0 : every });
  return { ...page, turn: setUrl, isFirst: url === null };
}

export function Pager({ of: { data, turn } }) {
  if (!data?.next_page_url && !data?.previous_page_url) return null;
  return html`<nav class="pager" aria-label="Pages of the list">
    <button type="button" class="button small" disabled=${!data.previous_page_url}
        onClick=${() => turn(data.previous_page_url)}>Newer</button>
    <button type="button" class="button small" disabled=${!data.next_page_url}
        onClick=${() => turn(data.next_page_url)}>Older</button></nav>`;
}

export function Facts({ of }) {
  const rows = of.filter((row) => row && row[1] !== null && row[1] !== undefined && row[1] !== "" && row[1] !== false);
  return html`<dl class="facts">${rows.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}
