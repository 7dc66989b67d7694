// What the runs made: images, videos, their size, time and cost, and what can be done next.

import { fileUrl, saveUrl } from "../gateway.js";
import { duration, money } from "../format.js";
import { Prose } from "../parts/controls.js";
import { CredentialsBadge } from "../parts/credentials.js";
import { Icon } from "../parts/icons.js";
import { Lightbox } from "../parts/lightbox.js";
import { Output } from "../parts/media.js";
import { pageUrl } from "../route.js";
import { html, useEffect, useState } from "../view.js";
import { canRepeat, removeRun, runAgain } from "./runs.js";
import { CodeDialog } from "./snippets.js";
import { Transcript } from "./sounds.js";
import { isSound, TASKS } from "./tasks.js";

function Elapsed({ since }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), 100);
    return () => clearInterval(timer);
  }, []);
  return html`<span class="figures">${((Date.now() - since) / 1000).toFixed(1)} s</span>`;
}

function Working({ lane, run }) {
  const percent = lane.progress ?? null;
  return html`<div class=${`pending ${run.task}`} role="status">
    <span class="spinner"></span>
    <span>${lane.waits ? "Connection lost, trying again…" : run.task === "transcription" ? "Listening" : run.task === "video" ? (percent === null ? "Waiting for a provider" : `${percent} %`) : "Generating"}</span>
    <${Elapsed} since=${lane.began} />
    ${run.task === "video" && html`<progress max="100" value=${percent ?? 0} aria-label="Progress"></progress>`}
  </div>`;
}

// The id of an output is part of its URL, here and in an object store.
const idOf = ({ url }) => /med_[0-9a-f]{34}/.exec(url)?.[0];

const NOT_DRAWN = /\s*\[not drawn, unknown to Atelier: (.+)\]$/;

// What the provider made of the prompt. The built-in one only says which words it cannot draw.
function Revised({ text, prompt }) {
  const words = NOT_DRAWN.exec(text)?.[1];
  if (words) return html`<p class="row small"><span class="chip warn">Not drawn: ${words}</span><a href="/docs/atelier">What it can draw</a></p>`;
  return text === prompt ? null : html`<details class="small"><summary>Revised prompt</summary><p class="soft anywhere">${text}</p></details>`;
}

// The URL of a file of this gateway opens its small copies too; one of an object store opens the file only.
const copyOf = ({ url, type }) => (fileUrl(url).startsWith("/m/") && type !== "image/svg+xml" ? `${fileUrl(url)}&w=1280` : undefined);

function Lane({ lane, run, alone, uses, onUse }) {
  const [shown, setShown] = useState(null); // the output in the lightbox
  const seconds = lane.ended ? duration(lane.ended - lane.began) : null;
  return html`<article class="lane">
    <header class="row ends"><strong class="anywhere">${lane.model}</strong>
      ${lane.state === "done" && html`<span class="chip good"><${Icon} name="check" size="12" />
          Completed</span>`}
      ${lane.state === "failed" && html`<span class="chip bad">Failed</span>`}</header>
    ${lane.state === "working" && html`<${Working} lane=${lane} run=${run} />`}
    ${lane.state === "lost" && html`<div class="notice warn"><${Icon} name="alert" />
        <div>The connection was lost before the gateway accepted the call. If it was made,
      it is listed under <a href=${pageUrl("requests")}>Requests</a>.</div></div>`}
    ${lane.problem && html`<div class="notice bad" role="alert"><${Icon} name="alert" /><div><${Prose}
        text=${lane.problem.message} />${lane.tried?.length > 0 && html`<ul class="plain small">${lane.tried.map(({ provider, status, words },
        place) => html`<li key=${place}><strong>${provider}</strong>${status ? ` (HTTP ${status})` : ""}: ${words}</li>`)}</ul>`}</div></div>`}
    ${lane.files.length > 0 && html`<div class=${`outputs ${lane.files.length > 1 ? "many" : ""} ${alone ? "alone" : ""}`}>
      ${lane.files.map((file) => html`<figure key=${file.url}>
        <${Output} url=${fileUrl(file.url)} onOpen=${idOf(file) && (() => setShown(idOf(file)))} small=${copyOf(file)} type=${file.type} alt=${run.prompt || `Made by ${lane.model}`} />
        <figcaption class="row">
          ${uses.filter(({ of }) => file.type.startsWith(of)).map(({ task, label }) => html`<button type="button" class="button small" key=${task}
              onClick=${() => onUse(task, file.url)}><${Icon} name=${TASKS[task].icon} />${label}</button>`)}
          <a class="button small" href=${saveUrl(file.url, run.prompt)} download><${Icon} name="download" />Save</a>
          ${idOf(file) && html`<button type="button" class="button small plain" onClick=${() => setShown(idOf(file))}>Details</button>`}
          <${CredentialsBadge} of=${file.credentials} />
        </figcaption></figure>`)}</div>`}
    ${lane.said && html`<${Transcript} said=${lane.said} sound=${run.sound} />`}
    ${shown && html`<${Lightbox} key=${shown} id=${shown} onChange=${() => {}} onShow=${setShown} onClose=${() => setShown(null)} />`}
    ${lane.revised && html`<${Revised} text=${lane.revised} prompt=${run.prompt} />`}
    ${lane.state !== "working" && html`<p class="measures figures">
      ${lane.size && html`<span title=${isSound(run.task) ? "Length" : "Real size"}>${lane.size.replace("x", " × ")}</span>`}
      ${seconds && html`<span>${seconds}</span>`}
      ${lane.state === "done" && html`<span>${money(lane.cost)}</span>`}
      ${lane.provider && html`<span>${lane.provider}</span>`}
      ${lane.requestId && html`<a href=${pageUrl(`requests/${lane.requestId}`)}>Open request</a>`}</p>`}
  </article>`;
}

// `uses`: what an image can be used for next, as { task, label }; `onUse(task, url)` does it.
export function Run({ run, uses, onUse }) {
  const [code, setCode] = useState(false);
  const alone = run.lanes.length === 1;
  return html`<section class="panel run appear" aria-label=${`Run: ${run.prompt || run.task}`}>
    <header><p class="prompt anywhere">${run.prompt || TASKS[run.task].verb}</p>
      <div class="row">
        ${canRepeat(run) && html`<button type="button" class="button small" onClick=${() => runAgain(run)}><${Icon}
            name="again" />Run again</button>`}
        <button type="button" class="button small" onClick=${() => setCode(true)}><${Icon} name="code" />Code</button>
        <button type="button" class="button small plain icon" aria-label="Remove from this list" onClick=${() => removeRun(run)}><${Icon}
            name="close" /></button>
      </div></header>
    <div class=${`lanes of${run.lanes.length}`}>${run.lanes.map((lane, place) => html`<${Lane} key=${place} lane=${lane} run=${run}
        alone=${alone} uses=${uses} onUse=${onUse} />`)}</div>
    ${code && html`<${CodeDialog} task=${run.task} lanes=${run.lanes} run=${run} onClose=${() => setCode(false)} />`}
  </section>`;
}
