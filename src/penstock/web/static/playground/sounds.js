// What the playground needs for sound: a voice to choose and to hear, a sound to send, and the text that came of one.

import { ask, explain, fileUrl, Refused, send } from "../gateway.js";
import { useData } from "../data.js";
import { bytes, money } from "../format.js";
import { CopyButton, Dialog, Empty, Field, Loaded } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { Player } from "../parts/player.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { usePrice } from "./price.js";
import { TASKS } from "./tasks.js";

const HEARD = "Hello. This is how I sound.";
const MOST_OFFERED = 24;
const OPENAI_VOICES = ["alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer", "verse", "marin", "cedar"];

// The voices of a model as the options of a list: OpenAI's names, then the model's own.
const optionsOf = (voices) => {
  const mapped = Object.fromEntries(voices.flatMap(({ openai_names: names, name }) => names.map((each) => [each, name])));
  const named = OPENAI_VOICES.map((name) => [name, mapped[name] && mapped[name] !== name ? `${name}: ${mapped[name]}` : name]);
  const shown = (type) => voices.filter((each) => each.type === type && !OPENAI_VOICES.includes(each.id))
    .map(({ id, name, description }) => [id, [name, description].filter(Boolean).join(", ")]);
  return { named, own: shown("preset"), ofAccount: shown("account") };
};

// Plays what the vendor has of a voice, or else speaks a short sentence with it. That is a call like any other, so its
// price is on the button.
function Hear({ model, voice, sample }) {
  const [state, setState] = useState({ url: null, busy: false, problem: null });
  const body = { model, input: HEARD, ...(voice && { voice }) };
  const price = usePrice([{ path: TASKS.speech.path, body }], `${model} ${voice}`);
  useEffect(() => () => { if (state.url) URL.revokeObjectURL(state.url); }, [state.url]);
  useEffect(() => setState({ url: null, busy: false, problem: null }), [model, voice]);
  const hear = async () => {
    setState({ url: null, busy: true, problem: null });
    try {
      const response = await (sample ? send(fileUrl(sample)) : send(TASKS.speech.path, { method: "POST", body }));
      setState({ url: URL.createObjectURL(await response.blob()), busy: false, problem: null });
    } catch (problem) {
      setState({ url: null, busy: false, problem });
    }
  };
  return html`<button type="button" class="button small" id="hear" disabled=${state.busy || (price.total === null && !sample)} onClick=${hear}>
      <${Icon} name="play" size="12" />Hear it${sample || price.total === null ? "" : ` · ${money(price.total)}`}</button>
    ${state.url && html`<audio src=${state.url} autoplay controls aria-label=${`The voice ${voice || "of the model"}`}></audio>`}
    ${state.problem && html`<span class="wrong" role="alert">${explain(state.problem)}</span>`}`;
}

export function Voice({ model, value, wrong, onInput }) {
  const found = useData((signal) => ask(`/compat/v1/audio/voices?model=${encodeURIComponent(model.id)}`, { signal }), [model.id]);
  const voices = found.data?.data ?? [];
  const { named, own, ofAccount } = optionsOf(voices);
  const listed = [...named, ...own, ...ofAccount].some(([id]) => id === value);
  const sample = voices.find(({ id, openai_names: names }) => id === value || names.includes(value))?.preview_url;
  const option = ([id, words]) => html`<option key=${id} value=${id} selected=${id === value}>${words}</option>`;
  return html`<div class="stack tight"><${Field} label="Voice" wrong=${wrong}>${(attributes) => html`
    <select ...${attributes} value=${value} onChange=${(event) => onInput(event.target.value)}>
      <option value="">${"The model's default"}</option>
      ${value && !listed && option([value, value])}
      ${ofAccount.length > 0 && html`<optgroup label="Voices of the account">${ofAccount.map(option)}</optgroup>`}
      ${own.length > 0 && html`<optgroup label="Voices of the model">${own.map(option)}</optgroup>`}
      <optgroup label="OpenAI's names">${named.map(option)}</optgroup></select>`}<//>
    <div class="row"><${Hear} model=${model.id} voice=${value} sample=${sample} /></div></div>`;
}

const FORMATS = { mpeg: "mp3", "x-wav": "wav", "mp4": "m4a" };
const typeFormat = (type) => type.split("/")[1]?.split(";")[0] || "mp3";
const formatOf = ({ name = "", type }) => /\.([a-z0-9]{2,5})$/i.exec(name)?.[1].toLowerCase() ?? FORMATS[typeFormat(type)] ?? typeFormat(type);

// A sound to send: `data` in base64, its `file` to be heard here.
export function soundFromFile(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(new Error(`${file.name || "The file"} cannot be read.`));
    reader.onload = () => resolve({ data: reader.result.split(",")[1] ?? "", format: formatOf(file), name: file.name || `sound.${formatOf(file)}`, file });
    reader.readAsDataURL(file);
  });
}

export async function soundFromStored(url) {
  const response = await fetch(fileUrl(url));
  if (!response.ok) throw new Refused(response.status, { message: "This sound is no longer stored." });
  return soundFromFile(await response.blob());
}

function EarlierSounds({ onPick, onClose }) {
  const found = useData(async (signal) => (await ask(`/v1/outputs?type=audio&limit=${MOST_OFFERED}`, { signal })).data);
  return html`<${Dialog} title="Earlier sounds" onClose=${onClose}><${Loaded} of=${found}>${(outputs) => (outputs.length === 0
    ? html`<${Empty} icon="sound" title="No sounds yet">Make one first, then pick it here.<//>`
    : html`<ul class="plain prompts">${outputs.map((output) => html`<li key=${output.id}><button type="button" onClick=${() => onPick(output.url)}>
        <span class="clamp anywhere">${output.prompt || output.model}</span><span class="small soft">${output.model} · ${bytes(output.size_bytes)}</span></button></li>`)}</ul>`)}<//><//>`;
}

// Records with the microphone until it is pressed again. Browsers allow it on a secure address only.
function Record({ onDone, onProblem }) {
  const [recorder, setRecorder] = useState(null);
  useEffect(() => () => recorder?.stream.getTracks().forEach((track) => track.stop()), [recorder]);
  if (!navigator.mediaDevices || typeof MediaRecorder === "undefined") return null;
  const begin = async () => {
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      const made = new MediaRecorder(stream);
      made.ondataavailable = ({ data }) => { if (data.size) onDone(data); };
      made.onstop = () => setRecorder(null);
      made.start();
      setRecorder(made);
    } catch {
      onProblem("The browser does not allow the microphone here.");
    }
  };
  return html`<button type="button" class="button small" id="record" aria-pressed=${String(Boolean(recorder))}
      onClick=${() => (recorder ? recorder.stop() : begin())}><${Icon} name=${recorder ? "stop" : "microphone"} size="12" />
      ${recorder ? "Stop recording" : "Record"}</button>`;
}

export function SoundInput({ sound, wrong, onChange }) {
  const [picking, setPicking] = useState(false);
  const [problem, setProblem] = useState("");
  const [over, setOver] = useState(false);
  const chooser = useRef(null);
  const take = async (pending) => {
    setProblem("");
    try {
      onChange(await pending);
    } catch (fault) {
      setProblem(explain(fault));
    }
  };
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer.files.length) take(soundFromFile(event.dataTransfer.files[0]));
  };
  return html`<div class="field" role="group" aria-label="Sound">
    <span class="label">Sound</span>
    <div class=${`drop ${over ? "over" : ""}`} onDragOver=${(event) => { event.preventDefault(); setOver(true); }}
        onDragLeave=${() => setOver(false)} onDrop=${drop}>
      <p class="soft small">${sound ? html`<span class="anywhere">${sound.name}</span> · ${bytes(sound.file.size)}` : "Drop a sound or a video here."}</p>
      <div class="row">
        <button type="button" class="button small" onClick=${() => chooser.current.click()}>Choose a file</button>
        <${Record} onDone=${(data) => take(soundFromFile(data))} onProblem=${setProblem} />
        <button type="button" class="button small" onClick=${() => setPicking(true)}>Earlier sounds</button>
      </div>
      <input ref=${chooser} class="only-heard" type="file" accept="audio/*,video/*" tabindex="-1" aria-label="Sound: file"
        onChange=${(event) => { if (event.target.files.length) take(soundFromFile(event.target.files[0])); event.target.value = ""; }} />
    </div>
    ${(problem || wrong) && html`<span class="wrong" role="alert">${problem || wrong}</span>`}
    ${picking && html`<${EarlierSounds} onClose=${() => setPicking(false)} onPick=${(url) => { setPicking(false); take(soundFromStored(url)); }} />`}
  </div>`;
}

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

// What was said. Where the times are known, a press on a piece plays it from there.
export function Transcript({ said, sound }) {
  const [url, setUrl] = useState(null);
  const [player, setPlayer] = useState(null);
  useEffect(() => {
    if (!sound?.file) return undefined;
    const made = URL.createObjectURL(sound.file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [sound?.file]);
  const play = (start) => {
    player.currentTime = start;
    player.play();
  };
  return html`<div class="stack tight transcript">
    ${url && html`<${Player} key=${url} url=${url} file=${sound.file} alt="The sound that was sent" onPlayer=${setPlayer} />`}
    ${said.segments?.length > 0
      ? html`<ol class="plain segments">${said.segments.map(({ start, speaker, text }, place) => html`<li key=${place}>
          <button type="button" class="button plain small figures" disabled=${!player} aria-label=${`Play from ${clock(start)}`} onClick=${() => play(start)}>${clock(start)}</button>
          <span class="anywhere">${speaker && html`<strong>${speaker}: </strong>`}${text.trim()}</span></li>`)}</ol>`
      : html`<p class="said anywhere">${said.text || html`<span class="soft">Nothing was said.</span>`}</p>`}
    <div class="row"><${CopyButton} text=${said.text} label="Copy text" /></div>
  </div>`;
}
