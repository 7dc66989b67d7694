// Markdown of chat models as elements: headings, lists, tables, code, quotes, links. HTML in it is shown as text.

import { html, useMemo } from "../view.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.+?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}> ?/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const DEEPEST = 8;
const LONGEST = 4000; // a longer paragraph is shown as it is, so that no text takes long to read
// Code, a link or an image, strong, emphasis, crossed out; in this order, each at its first place.
const INLINE = /(`+)([\s\S]*?[^`])\1(?!`)|(!?)\[([^\]]*)\]\((\S+?)(?:\s+"[^"]*")?\)|(\*\*|__)(?=\S)([\s\S]*?\S)\6|(\*|(?<!\w)_)(?=\S)([\s\S]*?\S)\8(?!\w)|~~(?=\S)([\s\S]*?\S)~~|(https?:\/\/[^\s<>)\]]*[^\s<>)\].,;:!?'"])/;

// A link leads to another page, and never runs anything.
const isSafe = (url) => /^(https?:\/\/|mailto:)/i.test(url);

function inline(text, depth = 0) {
  const parts = [];
  let rest = text;
  while (rest) {
    const found = depth < DEEPEST && text.length <= LONGEST ? INLINE.exec(rest) : null;
    if (!found) break;
    const [whole, tick, code, bang, label, url, , strong, , soft, gone, bare] = found;
    parts.push(rest.slice(0, found.index));
    const address = url ?? bare;
    if (tick) parts.push(html`<code>${code.trim()}</code>`);
    else if (address) parts.push(isSafe(address) ? html`<a href=${address} target="_blank" rel="noreferrer noopener">${bare ?? (inline(label, depth + 1) || address)}</a>` : whole);
    else if (strong !== undefined) parts.push(html`<strong>${inline(strong, depth + 1)}</strong>`);
    else if (soft !== undefined) parts.push(html`<em>${inline(soft, depth + 1)}</em>`);
    else if (gone !== undefined) parts.push(html`<s>${inline(gone, depth + 1)}</s>`);
    else parts.push(bang ? label : whole);
    rest = rest.slice(found.index + whole.length);
  }
  return [...parts, rest];
}

const isBlank = (line) => !line?.trim();
const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
const isTable = (lines, at) => lines[at].includes("|") && DIVIDER.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-");
const starts = (lines, at) => FENCE.test(lines[at]) || HEADING.test(lines[at]) || RULE.test(lines[at]) || ITEM.test(lines[at]) || QUOTE.test(lines[at]) || isTable(lines, at);

function table(lines, at) {
  let end = at + 2;
  while (!isBlank(lines[end]) && lines[end].includes("|")) end += 1;
  const rows = lines.slice(at + 2, end).map(cells);
  return [html`<div class="scroller"><table><thead><tr>${cells(lines[at]).map((cell) => html`<th scope="col">${inline(cell)}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${inline(cell)}</td>`)}</tr>`)}</tbody></table></div>`, end];
}

function list(lines, at, depth) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const isOrdered = /\d/.test(mark);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    const isNext = item && item[1].length <= indent.length && /\d/.test(item[2]) === isOrdered;
    if (isNext) items.push([item[3]]);
    else if (isBlank(lines[end])) {
      if (!/^\s{2,}\S/.test(lines[end + 1] ?? "") && !ITEM.test(lines[end + 1] ?? "")) break;
      items.at(-1).push("");
    } else if (/^\s{2,}/.test(lines[end])) items.at(-1).push(lines[end].replace(/^\s{1,4}/, ""));
    else if (item || starts(lines, end)) break;
    else items.at(-1).push(lines[end]);
    end += 1;
  }
  const shown = items.map((item) => html`<li>${blocks(item, depth + 1, true)}</li>`);
  return [isOrdered ? html`<ol start=${parseInt(mark, 10)}>${shown}</ol>` : html`<ul>${shown}</ul>`, Math.max(end, at + 1)];
}

function fence(lines, at) {
  const [, mark, language] = FENCE.exec(lines[at]);
  let end = at + 1;
  while (end < lines.length && !lines[end].trim().startsWith(mark)) end += 1;
  return [html`<pre tabindex="0" aria-label=${language ? `Code, ${language}` : "Code"}><code>${lines.slice(at + 1, end).join("\n")}</code></pre>`, end + 1];
}

function quote(lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  return [html`<blockquote>${blocks(lines.slice(at, end).map((line) => line.replace(QUOTE, "")), depth + 1)}</blockquote>`, end];
}

function paragraph(lines, at, isTight) {
  let end = at + 1;
  while (end < lines.length && !isBlank(lines[end]) && !starts(lines, end)) end += 1;
  const text = inline(lines.slice(at, end).join("\n"));
  return [isTight ? html`<span>${text}</span>` : html`<p>${text}</p>`, end];
}

// One block and the line after it.
function block(lines, at, depth, isTight) {
  const heading = HEADING.exec(lines[at]);
  if (FENCE.test(lines[at])) return fence(lines, at);
  if (heading) return [html`<p class=${`heading h${heading[1].length}`} role="heading" aria-level=${Math.min(6, heading[1].length + 2)}>${inline(heading[2])}</p>`, at + 1];
  if (RULE.test(lines[at])) return [html`<hr />`, at + 1];
  if (depth < DEEPEST && QUOTE.test(lines[at])) return quote(lines, at, depth);
  if (depth < DEEPEST && ITEM.test(lines[at])) return list(lines, at, depth);
  if (isTable(lines, at)) return table(lines, at);
  return paragraph(lines, at, isTight);
}

function blocks(lines, depth = 0, isTight = false) {
  const found = [];
  for (let at = 0; at < lines.length;) {
    if (isBlank(lines[at])) { at += 1; continue; }
    const [shown, next] = block(lines, at, depth, isTight);
    found.push(shown);
    at = next;
  }
  return found;
}

export const Markdown = ({ text }) => useMemo(() => blocks((text ?? "").replace(/\r\n?/g, "\n").split("\n")), [text]);
