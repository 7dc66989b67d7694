// Search in all pages of the documentation, by an index that is loaded when the search is first opened.

import { Icon } from "../parts/icons.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { find, prepared } from "./ranking.js";

const MOST = 20;
const AROUND = 60;  // characters before the word that was found

let loading = null;
function loadIndex() {
  loading ??= fetch("/docs/search.json").then((response) => response.json())
    .then((rows) => rows.map(prepared));
  loading.catch(() => { loading = null; });
  return loading;
}

// The table of the first page, for those who find nothing.
const WISHES = [
  ["Try it", "quickstart"],
  ["Change a program that calls OpenAI, fal, Replicate or LiteLLM", "migrating"],
  ["Make videos", "videos"],
  ["Hear when they are done", "webhooks"],
  ["Know what it costs, and limit it", "operations#budgets-and-alerts"],
  ["Test a program without paying", "replay"],
  ["Run it for others", "deploy"],
  ["Understand an error", "errors"],
];

const LOADING = "Loading …";
const FAILED = "The search could not be loaded. Open it again to try again.";

function Extract({ row, word }) {
  const place = word ? row.lower.indexOf(word) : 0;
  const start = Math.max(0, place - AROUND);
  if (!word) return html`<span>${row.text.slice(0, 160)}</span>`;
  return html`<span>${start ? "… " : ""}${row.text.slice(start, place)}<mark>${row.text.slice(place, place + word.length)}</mark>${row.text.slice(place + word.length, place + 160)}</span>`;
}

export function Search() {
  const dialog = useRef(null);
  const [rows, setRows] = useState([]);
  const [state, setState] = useState(LOADING); // null when the rows are there
  const [text, setText] = useState("");
  const found = find(rows, text, MOST);
  function open() {
    loadIndex().then((loaded) => { setRows(loaded); setState(null); }, () => setState(FAILED));
    dialog.current.showModal();
    dialog.current.querySelector("input").select();
  }
  useEffect(() => {
    function press(event) {
      const typing = event.target.closest?.("input, textarea, select");
      if ((event.key === "/" && !typing) || (event.key === "k" && (event.ctrlKey || event.metaKey))) {
        event.preventDefault();
        open();
      }
    }
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  function move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const stops = [...dialog.current.querySelectorAll("input, li a")];
    stops[Math.min(stops.length - 1, Math.max(0, stops.indexOf(document.activeElement) + step))].focus();
  }
  function enter(event) {
    if (event.key === "Enter" && found.length) location.assign(found[0].row.url);
  }
  return html`
    <button type="button" class="button find" id="find" aria-label="Search" onClick=${open}><${Icon} name="search" /><span>Search</span><kbd>/</kbd></button>
    <dialog class="search" ref=${dialog} aria-label="Search" onKeyDown=${move}
      onClick=${(event) => { if (event.target === dialog.current || event.target.closest("a")) dialog.current.close(); }}>
      <input type="search" aria-label="Search the documentation" placeholder="Search the documentation" value=${text}
        onInput=${(event) => setText(event.target.value)} onKeyDown=${enter} />
      ${found.length > 0 && html`<ul>${found.map(({ row, word }) => html`<li key=${row.url}>
        <a href=${row.url}><strong>${row.heading}${row.heading !== row.page && html` <small class="soft">${row.page}</small>`}</strong>
          <${Extract} row=${row} word=${word} /></a></li>`)}</ul>`}
      ${text.trim() && !found.length && html`<p role="status">${state ?? "Nothing found. You may want to:"}</p>
        ${!state && html`<ul id="wishes">${WISHES.map(([wish, page]) => html`<li key=${page}><a href=${`/docs/${page}`}><strong>
            ${wish}</strong></a></li>`)}</ul>`}`}
    </dialog>`;
}
