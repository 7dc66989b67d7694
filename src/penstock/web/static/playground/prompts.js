// Prompts of earlier requests, to be used again.

import { useData } from "../data.js";
import { ask, withQuery } from "../gateway.js";
import { ago } from "../format.js";
import { Dialog, Empty, Loaded, TextField } from "../parts/controls.js";
import { html, useEffect, useState } from "../view.js";

const MOST = 100;
const TYPING_MS = 300;

// The newest request of each prompt.
function distinct(requests) {
  const found = new Map();
  for (const request of requests) if (request.prompt && !found.has(request.prompt)) found.set(request.prompt, request);
  return [...found.values()];
}

// `onPick` gets the whole prompt: a record has only its beginning.
function History({ kind, onPick, onClose }) {
  const [text, setText] = useState("");
  const [search, setSearch] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSearch(text.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const found = useData(async (signal) => distinct((await ask(withQuery("/v1/requests", { kind, search, limit: MOST }), { signal })).data), [kind, search]);
  const pick = async ({ id, prompt }) => {
    const stored = await ask(`/v1/requests/${id}/payloads`).catch(() => null);
    onPick(stored?.request?.prompt ?? prompt);
  };
  return html`<${Dialog} title="Earlier prompts" onClose=${onClose}>
    <${TextField} label="Search" type="search" value=${text} onInput=${setText} placeholder="Words of the prompt" />
    <${Loaded} of=${found}>${(requests) => (requests.length
      ? html`<ul class="plain prompts">${requests.map((request) => html`<li key=${request.id}><button type="button" onClick=${() => pick(request)}>
          <span class="clamp anywhere">${request.prompt}</span><span class="small soft">${request.model} · ${ago(request.created_at)}</span></button></li>`)}</ul>`
      : html`<${Empty} icon="search" title=${search ? "Nothing matches" : "No prompts yet"}>${search ? "No stored prompt has these words."
        : "Your prompts show up here for as long as they are stored."}<//>`)}<//>
  <//>`;
}

export function PromptHistory({ kind, onPick }) {
  const [open, setOpen] = useState(false);
  return html`<button type="button" class="button plain small" id="earlier-prompts" onClick=${() => setOpen(true)}>Earlier prompts</button>
    ${open && html`<${History} kind=${kind} onClose=${() => setOpen(false)} onPick=${(prompt) => { setOpen(false); onPick(prompt); }} />`}`;
}
