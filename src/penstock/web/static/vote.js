// The page on which people vote: two outputs side by side, without a word about who made them. The link is behind the `#`.

import { ask, explain, isPassing, pause } from "./gateway.js";
import { Problem } from "./parts/controls.js";
import { applyTheme } from "./theme.js";
import { html, render, useEffect, useRef, useState } from "./view.js";

const VOTER = "voter"; // so that the same browser does not vote twice on a pair
const CHOICES = [["left", "A is better", "A"], ["tie", "Tie", "T"], ["both_bad", "Both are bad", "X"], ["right", "B is better", "B"]];
const KEYS = { a: "left", arrowleft: "left", 1: "left", b: "right", arrowright: "right", 2: "right", t: "tie", x: "both_bad" };
const NEXT_LOOK_MS = 3000;

async function nextPair(link) {
  const voter = localStorage.getItem(VOTER);
  const found = await ask("/vote/pair", { method: "POST", body: { link, ...(voter ? { voter } : {}) } });
  localStorage.setItem(VOTER, found.voter);
  return found;
}

// What was sent is sent again while the gateway cannot be reached: a vote counts once.
async function patiently(work) {
  for (let failures = 0; ; failures += 1) {
    try {
      return await work();
    } catch (problem) {
      if (!isPassing(problem) || failures === 4) throw problem;
      await pause(failures);
    }
  }
}

function Output({ name, kind, side, onLoad }) {
  const words = `Output ${name}`;
  useEffect(() => { if (kind === "chat") onLoad(); }, []);
  if (kind === "chat") return html`<div class="output words" tabindex="0" aria-label=${words}>${side.text}</div>`;
  if (kind === "video") return html`<video class="output" src=${side.url} aria-label=${words} controls loop muted autoplay playsinline
      onLoadedData=${onLoad} onError=${onLoad} />`;
  return html`<a class="output" href=${side.url} target="_blank" rel="noreferrer" title="Open it alone"><img src=${side.url} alt=${words}
      onLoad=${onLoad} onError=${onLoad} /></a>`;
}

function Ballot({ shown, busy, onVote }) {
  const [loaded, setLoaded] = useState({});
  const ready = loaded.left && loaded.right && !busy;
  const latest = useRef(null);
  latest.current = ready ? onVote : null;
  useEffect(() => {
    const press = (event) => {
      const choice = KEYS[event.key.toLowerCase()];
      if (!choice || event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest("video")) return;
      event.preventDefault();
      latest.current?.(choice);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  return html`<div class="pair">
      ${[["left", "A"], ["right", "B"]].map(([side, name]) => html`<figure key=${side} id=${side}><figcaption>${name}</figcaption>
        <${Output} name=${name} kind=${shown.kind} side=${shown[side]} onLoad=${() => setLoaded((last) => ({ ...last, [side]: true }))} /></figure>`)}
    </div>
    <div class="choices" role="group" aria-label="Your vote">${CHOICES.map(([choice, words, key]) => html`<button type="button" key=${choice} id=${choice}-wins
        class=${`button ${["left", "right"].includes(choice) ? "main" : ""}`} disabled=${!ready} onClick=${() => onVote(choice)}>${words}<kbd>${key}</kbd></button>`)}</div>`;
}

const Message = ({ title, children }) => html`<div class="message"><h1 tabindex="-1">${title}</h1><p class="soft">${children}</p></div>`;

function Vote({ link }) {
  const [shown, setShown] = useState(null);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const load = () => patiently(() => nextPair(link)).then((found) => { setShown(found); setProblem(null); }, setProblem);
  useEffect(() => { load(); }, []);
  useEffect(() => { // outputs are still being made
    if (!shown || shown.pair || !shown.is_running) return undefined;
    const timer = setTimeout(load, NEXT_LOOK_MS);
    return () => clearTimeout(timer);
  }, [shown]);
  async function vote(choice) {
    setBusy(true);
    try {
      await patiently(() => ask("/vote", { method: "POST", body: { pair: shown.pair, choice } }));
      await load();
    } catch (refusal) {
      setProblem(refusal);
    }
    setBusy(false);
  }
  if (!shown) return problem ? html`<${Message} title="There is nothing to vote on">${explain(problem)}<//>` : html`<p class="message soft" role="status">Loading…</p>`;
  if (!shown.pair && shown.is_running) return html`<${Message} title="More is being made">This page goes on by itself.<//>`;
  if (!shown.pair) return html`<${Message} title=${shown.voted ? "Thank you" : "There is nothing to vote on"}>${
    shown.voted ? "You have seen every pair. Your votes are counted." : "No two outputs can be compared."}<//>`;
  return html`
    <header class="asks"><h1>Which is better?</h1><span class="soft figures" id="progress">${shown.voted + 1} of ${shown.total}</span></header>
    ${shown.prompt && html`<p class="prompt anywhere">${shown.prompt}</p>`}
    <${Ballot} key=${shown.pair} shown=${shown} busy=${busy} onVote=${vote} />
    <${Problem} problem=${problem} />`;
}

applyTheme();
const link = location.hash.slice(1);
render(html`<main id="main">${link ? html`<${Vote} link=${link} />`
  : html`<${Message} title="This link is not complete">Copy the whole link, with what stands behind the #.<//>`}</main>`, document.body);
