// The playground: choose a task and up to four models, fill in the form, see the price, run it.

import { models as loadModels, useData } from "../data.js";
import { ask, explain } from "../gateway.js";
import { money } from "../format.js";
import { Empty, Field, Head, Loaded } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { pageUrl, go } from "../route.js";
import { html, useEffect, useMemo, useState } from "../view.js";
import { Conversation, userMessage } from "../playground/chat.js";
import { Gallery } from "../playground/gallery.js";
import { fromStored, ImageInputs } from "../playground/inputs.js";
import { MaskEditor } from "../playground/mask.js";
import { Models } from "../playground/models.js";
import { Parameters, parse } from "../playground/parameters.js";
import { PromptHistory } from "../playground/prompts.js";
import { usePrice } from "../playground/price.js";
import { Run } from "../playground/results.js";
import { startRun, useRuns } from "../playground/runs.js";
import { CodeDialog } from "../playground/snippets.js";
import { SoundInput, soundFromStored, Voice } from "../playground/sounds.js";
import { body, modelsFor, mostImages, SAMPLES, saysOf, TASKS } from "../playground/tasks.js";

const WITH_IMAGE = "Add an image, then run it.";
const WITH_SOUND = "Add a sound, then run it.";
const WITHOUT_IMAGE = "You see the price before you run it, and the real size, time and cost with the result.";
const USES = [{ task: "edit", label: "Edit", of: "image" }, { task: "upscale", label: "Upscale", of: "image" }, { task: "video", label: "Animate", of: "image" },
  { task: "transcription", label: "Transcribe", of: "audio" }];
const DRAFT = "draft";
const BLANK = { prompt: null, values: {}, chosen: [], system: "" };

function restoreDraft(task) {
  try {
    return { ...BLANK, ...JSON.parse(sessionStorage.getItem(`${DRAFT}-${task}`) ?? "{}") };
  } catch {
    return BLANK;
  }
}

// The fields of an earlier request, as the form has them.
function asDraft(request) {
  const { model, input, prompt = typeof input === "string" ? input : "", messages = [], metadata, image, mask, input_reference: reference, inputs, stream,
    stream_options: options, stream_format: events, ...rest } = request;
  const values = Object.entries(rest).filter(([, value]) => value !== null)
    .map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : String(value)]);
  const last = messages.findLast?.(({ role }) => role === "user");
  return { ...BLANK, prompt: typeof last?.content === "string" ? last.content : prompt, chosen: [model], values: Object.fromEntries(values),
    system: messages.find(({ role }) => role === "system")?.content ?? "" };
}

// The task that a request belongs to, seen from another one: effects and music are accepted at the same address.
const taskOfModel = (id, all) => Object.keys(TASKS).find((task) => modelsFor(task, all).some((model) => model.id === id));

function useDraft(task, from, model, all) {
  const [draft, setDraft] = useState(() => ({ ...restoreDraft(task), ...(model && { chosen: [model] }) }));
  useEffect(() => sessionStorage.setItem(`${DRAFT}-${task}`, JSON.stringify(draft)), [draft]);
  useEffect(() => {
    if (!from) return;
    ask(`/v1/requests/${from}/payloads`).then(({ request }) => {
      if (!request) return;
      const own = taskOfModel(request.model, all);
      if (task === "sound" && own && own !== task) go(`playground/${own}`, { from });
      else setDraft(asDraft(request));
    }, () => {});
  }, [from]);
  return [draft, (values) => setDraft((last) => ({ ...last, ...values }))];
}

// Returns the values as they are sent, and what is wrong with them by name.
function readValues(properties, values) {
  const parsed = {};
  const wrong = {};
  for (const [name, text] of Object.entries(values)) {
    try {
      parsed[name] = properties[name] ? parse(name, properties[name], text) : "";
    } catch (problem) {
      wrong[name] = problem.message;
    }
  }
  return { parsed, wrong };
}

function priceWords(task, price, waitsFor) {
  if (waitsFor) return waitsFor;
  if (price.problem instanceof TypeError) return "Connection lost, trying again…";
  if (price.problem) return "";
  if (price.total === null) return price.busy ? "…" : "";
  return `${task === "chat" ? "At most " : ""}${money(price.total)}${price.each.length > 1 ? ` for ${price.each.length} models` : ""}`;
}

function Form({ task, all, from, model, initial, source }) {
  const [draft, change] = useDraft(task, from, model, all);
  const [sound, setSound] = useState(null);
  const [images, setImages] = useState([]);
  const [mask, setMask] = useState(null);
  const [drawing, setDrawing] = useState(false);
  const [problem, setProblem] = useState(null);
  const [code, setCode] = useState(false);
  const runs = useRuns().filter((run) => run.task === task);
  const finished = runs.flatMap(({ lanes }) => lanes).filter(({ state }) => state === "done").length;
  const offered = modelsFor(task, all);
  const chosen = draft.chosen.map((id) => offered.find((model) => model.id === id)).filter(Boolean);
  const models = chosen.length ? chosen : offered.slice(0, 1);
  const prompt = draft.prompt ?? (task === "chat" ? "" : SAMPLES[task][0] ?? "");
  const needsImage = task === "edit" || task === "upscale";
  const needsSound = task === "transcription";
  const says = saysOf(task);
  const properties = models[0]?.schema?.properties ?? {};
  const takesImages = needsImage || task === "chat" || (task === "video" && properties.input_reference?.["x-handling"] !== "ignored");
  const { parsed, wrong } = useMemo(() => readValues(properties, draft.values), [properties, draft.values]);

  const take = (url) => (needsSound ? soundFromStored(url).then(setSound, setProblem) : fromStored(url).then((image) => setImages([image]), setProblem));
  useEffect(() => { if (initial) take(initial); }, [initial]);
  useEffect(() => {
    if (source) ask(`/v1/outputs/${source}`).then(({ url }) => take(url), setProblem);
  }, [source]);
  useEffect(() => setMask(null), [images[0]]);

  const bodyFor = (model, said) => body(task, model, { prompt, values: parsed, images, mask, messages: said, sound });
  const system = draft.system ? [{ role: "system", content: draft.system }] : [];
  const messages = [...system, userMessage(prompt, images)];
  const calls = models.map((model) => ({ model: model.id, path: TASKS[task].path, body: bodyFor(model, messages) }));
  const waitsFor = needsImage && !images.length ? "Add an image first." : needsSound && !sound ? "Add a sound first."
    : task === "chat" && !prompt.trim() ? " " : says && !prompt.trim() && !draft.values.lyrics ? `Write a ${says === "input" ? "text" : "prompt"} first.` : "";
  const isReady = models.length > 0 && !waitsFor && !Object.keys(wrong).length;
  // The words of a prompt change the price only where tokens are counted, and then little.
  const changed = JSON.stringify([isReady, task, models.map(({ id }) => id), parsed, images.length, Boolean(mask), task === "speech" ? prompt.length : Math.ceil(prompt.length / 200), draft.system.length]);
  const price = usePrice(isReady ? calls : [], needsSound ? sound?.data.length + changed : changed);
  // A call that the gateway refuses now would be refused again. Words are not checked with each letter, so a prompt may be sent.
  const isRefused = price.problem?.status === 400 && price.problem.param !== (says ?? "prompt");
  const refused = (price.problem instanceof TypeError ? null : price.problem) ?? problem;
  const faults = refused?.param ? { ...wrong, [refused.param]: refused.message } : wrong;
  const isElsewhere = refused && !(refused.param && (properties[refused.param] || refused.param === "prompt") && !(needsSound && refused.param === "file"));

  const run = () => {
    if (!isReady || isRefused) return;
    setProblem(null);
    startRun(task, calls, { prompt: says ? prompt : task === "chat" ? prompt : sound?.name ?? "", inputs: images, mask, sound });
    if (matchMedia("(max-width: 60rem)").matches) setTimeout(() => document.getElementById("results")?.scrollIntoView({ behavior: "smooth" }), 50);
  };
  const press = (event) => {
    if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) {
      event.preventDefault();
      run();
    }
  };
  const use = (next, url) => {
    if (next === task) take(url);
    else go(`playground/${next}`, { image: url });
  };
  const uses = USES.filter((next) => modelsFor(next.task, all).length);
  const words = priceWords(task, price, waitsFor);

  if (!models.length) {
    return html`<${Empty} icon="plug" title=${`No model can do this yet`}
      action=${html`<a class="button"
          href=${pageUrl("models")}>All models</a>`}>Set a provider's API key and restart the gateway. Its models show up here.<//>`;
  }
  return html`<div class="workbench">
    <form class="panel bench" onKeyDown=${task === "chat" ? undefined : press} onSubmit=${(event) => { event.preventDefault(); run(); }}>
      <div class="body stack">
        <${Models} offered=${offered} models=${models} each=${price.each} onChange=${(ids) => change({ chosen: ids })} />
        ${takesImages && html`<${ImageInputs}
          label=${{ video: "Start image (optional)", chat: "Images (optional)" }[task] ?? "Image"} images=${images} most=${mostImages[task]} wrong=${faults.image ?? faults.input_reference} onChange=${setImages}>
          ${task === "edit" && images.length > 0 && properties.mask?.["x-handling"] !== "ignored" && html`
            <button type="button" class="button small" id="draw-mask" onClick=${() => setDrawing(true)}><${Icon} name="brush" />
                ${mask ? "Change the mask" : "Draw a mask"}</button>
            ${mask && html`<span class="mask-preview"><img src=${mask} alt="The mask: black is kept" /><button type="button"
                class="button small plain" onClick=${() => setMask(null)}>Remove</button></span>`}`}
        <//>`}
        ${needsSound && html`<${SoundInput} sound=${sound} wrong=${faults.input_audio ?? faults.file} onChange=${setSound} />`}
        ${says && html`<div class="stack tight"><${Field} label=${says === "input" ? "Text" : "Prompt"} wrong=${faults[says]}>${(attributes) => html`
          <textarea ...${attributes} class="prompt-field" rows="4" maxlength=${properties[says]?.maxLength} value=${prompt}
              onInput=${(event) => change({ prompt: event.target.value })}></textarea>`}<//>
          <div class="row"><${PromptHistory} kind=${task === "music" ? "sound" : task} onPick=${(words) => change({ prompt: words })} /></div></div>`}
        ${task === "chat" && html`<${Field} label="System message (optional)">${(attributes) => html`
          <textarea ...${attributes} rows="2" value=${draft.system}
              onInput=${(event) => change({ system: event.target.value })}></textarea>`}<//>`}
        ${task === "speech" && html`<${Voice} model=${models[0]} value=${draft.values.voice ?? ""} wrong=${faults.voice}
            onInput=${(value) => change({ values: { ...draft.values, voice: value } })} />`}
        <${Parameters} task=${task} model=${models[0]} values=${draft.values} wrong=${faults}
            onInput=${(name, value) => change({ values: { ...draft.values, [name]: value } })} />
        ${task === "chat" && isElsewhere && html`<div class="notice bad" role="alert"><${Icon} name="alert" /><div>
            ${explain(refused)}</div></div>`}
      </div>
      ${task !== "chat" && html`<div class="press">
        ${isElsewhere && html`<div class="notice bad" role="alert"><${Icon} name="alert" /><div>${explain(refused)}</div></div>`}
        <div class="row ends"><span class=${`figures ${waitsFor || price.problem ? "soft small" : "price"}`} id="price" aria-live="polite">${words}</span>
          <span class="row"><button type="button" class="button" id="show-code" disabled=${!isReady} onClick=${() => setCode(true)}>
              <${Icon} name="code" />Code</button>
          <button class="button main" id="run" disabled=${!isReady || isRefused}>${TASKS[task].verb}<kbd>
              ${navigator.platform?.startsWith("Mac") ? "⌘↵" : "Ctrl ↵"}</kbd></button></span></div>
      </div>`}
    </form>
    ${task === "chat"
      ? html`<${Conversation} models=${models} system=${draft.system} bodyFor=${bodyFor} price=${words} text=${prompt}
          onText=${(text) => change({ prompt: text })} images=${images} onImages=${setImages} />`
      : html`<div class="results stack" id="results">
          ${runs.length === 0 && html`<div class="panel"><${Empty} icon=${TASKS[task].icon} title="The result appears here"
            action=${SAMPLES[task].map((sample) => html`<button type="button" class="button small" key=${sample}
                onClick=${() => change({ prompt: sample })}>${sample}</button>`)}>
            ${needsImage ? WITH_IMAGE : needsSound ? WITH_SOUND : WITHOUT_IMAGE}<//></div>`}
          ${runs.map((made) => html`<${Run} key=${made.id} run=${made} uses=${uses} onUse=${use} />`)}
          ${html`<${Gallery} round=${finished} kind=${needsImage ? "image" : task === "music" ? "sound" : task} onPick=${needsImage ? (url) => use(task, url) : null} />`}</div>`}
    ${code && html`<${CodeDialog} task=${task} lanes=${calls} run=${{ inputs: images, mask, sound }} onClose=${() => setCode(false)} />`}
    ${drawing && html`<${MaskEditor} image=${images[0]} onClose=${() => setDrawing(false)}
        onDone=${(made) => { setMask(made); setDrawing(false); }} />`}
  </div>`;
}

export function Playground({ path, query }) {
  const task = Object.hasOwn(TASKS, path[0] ?? "") ? path[0] : "image";
  const all = useData(loadModels);
  useEffect(() => document.querySelector(".head [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [task]);
  return html`<div class="page wide">
    <${Head} title="Playground">
      <nav class="tabs" aria-label="Tasks">${Object.entries(TASKS).map(([name, { label, icon }]) => html`
        <a key=${name} href=${pageUrl(`playground/${name}`)} aria-current=${name === task ? "page" : undefined}><${Icon} name=${icon} />
            ${label}</a>`)}</nav>
    <//>
    <${Loaded} of=${all}>${(data) => html`<${Form} key=${`${task} ${query}`} task=${task} all=${data} from=${query.get("from")}
        model=${query.get("model")} initial=${query.get("image")} source=${query.get("source")} />`}<//>
  </div>`;
}
