// A conversation with up to four models at once: each answer streams in, with its tokens and its cost.

import { ask, explain, send } from "../gateway.js";
import { duration, money, plural } from "../format.js";
import { Icon } from "../parts/icons.js";
import { Markdown } from "../parts/markdown.js";
import { pageUrl } from "../route.js";
import { onSessionChange } from "../session.js";
import { html, useEffect, useReducer, useRef, useState } from "../view.js";
import { CodeDialog } from "./snippets.js";
import { SAMPLES, TASKS } from "./tasks.js";

// A turn: what the user wrote, its images, and an answer of each model: { model, text, state, usage, cost, began, first, ended, problem, requestId }.
const NAME = "chat";
const COST_TRIES = 12;
const COST_PAUSE_MS = 250;
let turns = restore();
let changed = () => {};
onSessionChange((session) => { if (!session) turns = []; });

function restore() {
  try {
    const saved = JSON.parse(sessionStorage.getItem(NAME) ?? "[]");
    for (const turn of saved) for (const answer of turn.answers) if (answer.state === "working") answer.state = "stopped";
    return saved;
  } catch {
    return [];
  }
}

// Images are not kept across a reload: they are too large for the storage of a tab.
function update() {
  sessionStorage.setItem(NAME, JSON.stringify(turns, (name, value) => (name === "images" ? undefined : value)));
  changed();
}

export function userMessage(text, images = []) {
  if (!images.length) return { role: "user", content: text };
  const parts = images.map(({ source }) => ({ type: "image_url", image_url: { url: source } }));
  return { role: "user", content: [{ type: "text", text }, ...parts] };
}

// What one model has seen so far. A model that joined later sees the answers of the first one.
function messagesFor(model, system, next) {
  const before = turns.flatMap(({ user, images, answers }) => {
    const answer = answers.find((other) => other.model === model) ?? answers[0];
    const asked = userMessage(user, images);
    return answer?.text ? [asked, { role: "assistant", content: answer.text }] : [asked];
  });
  return [...(system ? [{ role: "system", content: system }] : []), ...before, next];
}

// The JSON of each server-sent event.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data: ") && line !== "data: [DONE]") yield JSON.parse(line.slice(6));
  }
}

async function answerOne(answer, body, signal) {
  try {
    const streamed = { ...body, stream: true, stream_options: { include_usage: true } };
    const response = await send(TASKS.chat.path, { method: "POST", body: streamed, signal });
    answer.requestId = response.headers.get("x-request-id");
    for await (const event of events(response)) {
      if (event.error) throw new Error(event.error.message);
      answer.first ??= Date.now();
      answer.text += event.choices?.[0]?.delta?.content ?? "";
      answer.usage = event.usage ?? answer.usage;
      update();
    }
    answer.state = "done";
  } catch (problem) {
    answer.state = problem.name === "AbortError" ? "stopped" : "failed";
    if (answer.state === "failed") answer.problem = explain(problem);
    answer.requestId ??= problem.requestId;
  }
  answer.ended = Date.now();
  update();
  if (answer.requestId) await readRecord(answer);
}

// The record of a chat is written shortly after its response.
async function readRecord(answer) {
  for (let tries = 0; tries < COST_TRIES; tries += 1) {
    try {
      const { cost, attempts } = await ask(`/v1/requests/${answer.requestId}`);
      if (answer.state !== "failed") answer.cost = cost;
      answer.provider = attempts?.at(-1)?.provider_name;
      return update();
    } catch {
      await new Promise((resolve) => { setTimeout(resolve, COST_PAUSE_MS); });
    }
  }
  return undefined;
}

function Answer({ answer }) {
  const { usage } = answer;
  const total = answer.ended - answer.began;
  return html`<div class="answer">
    <p class="small soft">${answer.model}${answer.provider ? ` · ${answer.provider}` : ""}</p>
    <div class="said anywhere" aria-busy=${String(answer.state === "working")}><${Markdown} text=${answer.text} />${answer.state === "working" && html`<span
        class="caret"></span>`}</div>
    ${answer.problem && html`<div class="notice bad" role="alert"><${Icon} name="alert" /><div>${answer.problem}</div></div>`}
    ${answer.ended && html`<p class="measures figures">
      ${answer.state === "stopped" && html`<span>stopped</span>`}
      ${usage && html`<span>${plural(usage.prompt_tokens, "token")} in, ${usage.completion_tokens} out</span>`}
      ${answer.first && html`<span title="Until the first word">${duration(answer.first - answer.began)} to first</span>`}
      <span>${duration(total)}</span>
      ${answer.cost !== undefined && html`<span class="cost">${money(answer.cost)}</span>`}
      ${answer.requestId && html`<a href=${pageUrl(`requests/${answer.requestId}`)}>Open request</a>`}</p>`}
  </div>`;
}

export function Conversation({ models, system, bodyFor, price, text, onText, images, onImages }) {
  const [, redraw] = useReducer((round) => round + 1, 0);
  const [code, setCode] = useState(false);
  const control = useRef(null);
  const end = useRef(null);
  useEffect(() => {
    changed = redraw;
    return () => { changed = () => {}; };
  }, []);
  const working = turns.some(({ answers }) => answers.some(({ state }) => state === "working"));
  useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [turns.length]);

  function say() {
    const words = text.trim();
    if (!words || working || !models.length) return;
    control.current = new AbortController();
    const bodies = models.map((model) => bodyFor(model, messagesFor(model.id, system, userMessage(words, images))));
    const answers = models.map((model) => ({ model: model.id, text: "", state: "working", began: Date.now() }));
    turns = [...turns, { user: words, images, answers }];
    onText("");
    onImages([]);
    update();
    answers.forEach((answer, place) => answerOne(answer, bodies[place], control.current.signal));
  }
  const press = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      say();
    }
  };
  const lanes = models.map((model) => ({ model: model.id, body: bodyFor(model, messagesFor(model.id, system, userMessage(text.trim() || "Hello", images))) }));
  return html`<section class="panel conversation" aria-label="Conversation">
    <header><h2>Conversation</h2><div class="row">
      <button type="button" class="button small" disabled=${!lanes.length} onClick=${() => setCode(true)}><${Icon}
          name="code" />Code</button>
      <button type="button" class="button small" disabled=${!turns.length || working}
          onClick=${() => { turns = []; update(); }}>Clear</button></div></header>
    <div class="turns" tabindex="0" role="log" aria-label="Messages">
      ${turns.length === 0 && html`<div class="empty"><${Icon} name="chat" size="28" /><h2>Say something</h2>
        <p>The answer streams in here, with its tokens and its cost.</p>
        <div class="row">${SAMPLES.chat.map((sample) => html`<button type="button" class="button small" key=${sample}
            onClick=${() => onText(sample)}>${sample}</button>`)}</div></div>`}
      ${turns.map((turn, place) => html`<div class="turn" key=${place}>
        <p class="user anywhere">${turn.user}</p>
        ${turn.images?.length > 0 && html`<ul class="thumbs">${turn.images.map((image, number) => html`<li key=${number}>
            <img src=${image.preview} alt=${`Image ${number + 1} of the message`} /></li>`)}</ul>`}
        <div class=${`lanes of${turn.answers.length}`}>${turn.answers.map((answer) => html`<${Answer} key=${answer.model}
            answer=${answer} />`)}</div></div>`)}
      <div ref=${end}></div>
    </div>
    <div class="composer">
      <textarea id="message" rows="2" aria-label="Message" placeholder="Write a message, press Enter to send" value=${text}
          onInput=${(event) => onText(event.target.value)} onKeyDown=${press}></textarea>
      <div class="row ends"><span class="small soft figures" id="price">${price}</span>
        ${working
          ? html`<button type="button" class="button" onClick=${() => control.current?.abort()}><${Icon} name="stop" />Stop</button>`
          : html`<button type="button" class="button main" id="run" disabled=${!text.trim()} onClick=${say}>Send</button>`}</div>
    </div>
    ${code && html`<${CodeDialog} task="chat" lanes=${lanes} run=${{}} onClose=${() => setCode(false)} />`}
  </section>`;
}
