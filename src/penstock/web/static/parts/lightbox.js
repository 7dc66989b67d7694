// One output, large: what it was made from, until when it is kept, and what can be done with it next.

import { useData } from "../data.js";
import { ask, fileUrl, saveUrl, thumbnailUrl } from "../gateway.js";
import { bytes, moment, money } from "../format.js";
import { pageUrl } from "../route.js";
import { TASKS } from "../playground/tasks.js";
import { html, useEffect, useState } from "../view.js";
import { CopyButton, Dialog, Loading, Problem, SelectField } from "./controls.js";
import { CredentialsBadge } from "./credentials.js";
import { Icon } from "./icons.js";
import { lastingUrl, Output, Thumb } from "./media.js";
import { KINDS } from "./status.js";
import { Facts } from "./table.js";

const PERIODS = [["1d", "1 day"], ["7d", "7 days"], ["30d", "30 days"]];
const USES = [["edit", "Edit"], ["upscale", "Upscale"], ["video", "Animate"]];

function Stage({ output }) {
  const url = fileUrl(output.url);
  const words = output.prompt || `Made by ${output.model}`;
  return html`<${Output} url=${url} small=${output.thumbnail_url ? lastingUrl(output, 1280) : thumbnailUrl(output, 1280)}
      type=${output.content_type} alt=${words} />`;
}

export function FavoriteButton({ output, onChange, kind = "star" }) {
  const [busy, setBusy] = useState(false);
  const toggle = async () => {
    setBusy(true);
    try {
      onChange(await ask(`/v1/outputs/${output.id}`, { method: "PATCH", body: { favorite: !output.favorite } }));
    } finally {
      setBusy(false);
    }
  };
  return html`<button type="button" class=${kind} aria-pressed=${String(output.favorite)} aria-label="Favorite" disabled=${busy}
      onClick=${toggle}><${Icon} name="star" /></button>`;
}

// What the same call costs today, and the way to the form with its fields. Inputs are not stored, so a call with inputs asks for them.
function MakeAgain({ output }) {
  const task = Object.hasOwn(TASKS, output.kind) ? output.kind : null;
  const price = useData(async (signal) => {
    if (!task) return null;
    const { request } = await ask(`/v1/requests/${output.request_id}/payloads`, { signal });
    if (!request) return null;
    const { metadata, inputs, ...body } = request;
    if (inputs) return { words: "" };
    const known = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
    const { total_cost_micros: micros } = await ask(`${TASKS[task].path}?dryRun=true`, { method: "POST", body: known, signal });
    return { words: ` · ${money(micros / 1e6)}` };
  }, [output.request_id]);
  if (price.problem) return html`<span class="small soft" id="again">Cannot be made again now: ${price.problem.message}</span>`;
  if (!price.data) return null;
  const [source] = output.made_from;
  const from = { from: output.request_id, ...(source && { source: source.output_id }) };
  return html`<a class="button small" id="again" href=${pageUrl(`playground/${task}`, from)}><${Icon} name="again" />
      Make again${price.data.words}</a>`;
}

function Keep({ output, onChange }) {
  const [state, setState] = useState({ busy: false, problem: null });
  const keep = async (period) => {
    if (!period) return;
    setState({ busy: true, problem: null });
    try {
      onChange(await ask(`/v1/outputs/${output.id}`, { method: "PATCH", body: { keep: period } }));
      setState({ busy: false, problem: null });
    } catch (problem) {
      setState({ busy: false, problem });
    }
  };
  return html`<div class="stack tight"><p id="kept-until">Kept until ${moment(output.expires_at)}</p>
    <${SelectField} label="Keep longer" value="" disabled=${state.busy} options=${[["", "Choose …"], ...PERIODS.map(([period,
      words]) => [period, `${words} from now`])]} onInput=${keep} />
    <${Problem} problem=${state.problem} /></div>`;
}

function Share({ output }) {
  const [period, setPeriod] = useState("7d");
  const [state, setState] = useState({ shared: null, problem: null, note: "" });
  const path = `/v1/outputs/${output.id}/share`;
  const attempt = (action) => action().then((done) => setState({ shared: null, problem: null, note: "", ...done }),
    (problem) => setState({ shared: null, problem, note: "" }));
  const share = () => attempt(async () => ({ shared: await ask(path, { method: "POST", body: { expires_in: period } }) }));
  const revoke = () => attempt(async () => { await ask(path, { method: "DELETE" }); return { note: "Links that were shared before no longer work." }; });
  return html`<details id="share"><summary>Share</summary><div class="stack tight">
    <${SelectField} label="Anyone with the link can open it for" value=${period} options=${PERIODS} onInput=${setPeriod} />
    <div class="row"><button type="button" class="button small" onClick=${share}><${Icon} name="link" />Create link</button>
      <button type="button" class="button small plain danger" onClick=${revoke}>Revoke all links</button></div>
    ${state.shared && html`<div class="row"><input readonly aria-label="Shared link" value=${state.shared.url} onFocus=${(event) => event.target.select()} />
      <${CopyButton} text=${state.shared.url} label="Copy link" /></div><p class="small soft">
        Works until ${moment(state.shared.expires_at)}${state.shared.expires_at === output.expires_at ? ", when the file is deleted. To share it for longer, keep it longer first." : "."}</p>`}
    ${state.note && html`<p class="small soft" role="status">${state.note}</p>`}
    <${Problem} problem=${state.problem} /></div></details>`;
}

// Outputs by their ids, as small pictures; those that are gone are left out.
function Kin({ label, load, about, onShow }) {
  const found = useData(load, [about]);
  if (!found.data?.length) return null;
  return html`<div class="stack tight"><h3 class="small soft">${label}</h3><div class="kin">${found.data.map((output) => html`<button
      type="button" key=${output.id} onClick=${() => onShow(output.id)} aria-label=${`${label}: ${output.prompt || output.model}`}>
      <${Thumb} kind=${output.kind} output=${output} /></button>`)}</div></div>`;
}

async function outputsOf(requestIds, only = () => true) {
  const pages = await Promise.all(requestIds.map((id) => ask(`/v1/outputs?request_id=${id}`)));
  return pages.flatMap(({ data }) => data).filter(only);
}

function Told({ output, onChange, onShow }) {
  const sources = output.made_from.map(({ output_id: id }) => id);
  const parents = () => outputsOf([...new Set(output.made_from.map(({ request_id: id }) => id))], ({ id }) => sources.includes(id));
  return html`<div class="told stack">
    ${output.prompt ? html`<p class="prompt medium anywhere">${output.prompt}</p>` : html`<p class="soft">No prompt is stored.</p>`}
    ${output.revised_prompt && output.revised_prompt !== output.prompt && html`<details class="small"><summary>Revised prompt</summary>
      <p class="soft anywhere">${output.revised_prompt}</p></details>`}
    <div class="row">
      <a class="button small" href=${saveUrl(output.url, output.prompt)} download><${Icon} name="download" />Save</a>
      <${CopyButton} text=${() => `${location.origin}${location.pathname}${pageUrl("library", { show: output.id })}`} label="Copy link" />
      ${output.prompt && html`<${CopyButton} text=${output.prompt} label="Copy prompt" />`}
      <${FavoriteButton} output=${output} onChange=${onChange} kind="button small icon star" />
    </div>
    <div class="row">
      <${MakeAgain} output=${output} />
      ${output.content_type.startsWith("image/") && USES.map(([task, label]) => html`<a class="button small" key=${task}
          href=${pageUrl(`playground/${task}`, { source: output.id })}><${Icon} name=${TASKS[task].icon} />${label}</a>`)}
    </div>
    <${CredentialsBadge} of=${output.content_credentials} />
    <${Kin} label="Made from" about=${output.id} load=${parents} onShow=${onShow} />
    <${Kin} label="Used in" about=${output.id} load=${() => outputsOf(output.used_in)} onShow=${onShow} />
    <${Keep} output=${output} onChange=${onChange} />
    <${Share} output=${output} />
    <${Facts} of=${[
      ["Model", output.model],
      ["Provider", output.provider],
      ["Kind", KINDS[output.kind]],
      ["Made", moment(output.created_at)],
      ["Size", output.width && `${output.width} × ${output.height}`],
      ["File", bytes(output.size_bytes)],
      ["Key", output.key_name ?? output.key_id],
      ["Request", html`<a href=${pageUrl(`requests/${output.request_id}`)}>Open request</a>`],
    ]} /></div>`;
}

// `known` is the output if the page has it already; `previous` and `next` show the one beside it.
export function Lightbox({ id, known, onChange, onShow, onClose, previous, next }) {
  const [output, setOutput] = useState(known ?? null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    if (!known) ask(`/v1/outputs/${encodeURIComponent(id)}`).then(setOutput, setProblem);
  }, [id]);
  const changed = (fresh) => {
    const { url, thumbnail_url: small, ...rest } = fresh; // the picture on the screen stays the same
    setOutput((last) => ({ ...last, ...rest }));
    onChange([{ ...rest, id }]);
  };
  useEffect(() => {
    const turn = (event) => {
      if (/^(INPUT|SELECT|TEXTAREA|VIDEO|AUDIO)$/.test(event.target.tagName)) return;
      const move = { ArrowLeft: previous, ArrowRight: next }[event.key];
      if (move) move();
    };
    document.addEventListener("keydown", turn);
    return () => document.removeEventListener("keydown", turn);
  }, [previous, next]);
  const title = html`<span class="row"><span class="clamp one">${output?.model ?? "Output"}</span>
    <button type="button" class="button plain icon small" aria-label="Previous" disabled=${!previous} onClick=${previous || undefined}><${Icon} name="left" /></button>
    <button type="button" class="button plain icon small" aria-label="Next" disabled=${!next} onClick=${next || undefined}><${Icon} name="right" /></button></span>`;
  return html`<${Dialog} title=${title} kind="lightbox" toField=${false} onClose=${onClose}>
    ${problem ? html`<div class="told"><${Problem} problem=${problem} /></div>` : output
      ? html`<div class="stage"><${Stage} output=${output} /></div><${Told} output=${output} onChange=${changed} onShow=${onShow} />`
      : html`<${Loading} />`}
  <//>`;
}
