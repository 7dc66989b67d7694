// Runs of the playground: one call to each chosen model. They are kept in this tab, so that they survive a reload.

import { ask, isPassing, pause, send } from "../gateway.js";
import { onSessionChange } from "../session.js";
import { useEffect, useReducer } from "../view.js";
import { isSound, TASKS } from "./tasks.js";

// A lane is one model's part of a run: { model, state, body, requestId, began, ended, progress, cost, size, provider, files,
// revised, said, waits, problem, tried }, where `state` is working, done, failed (the gateway said so), or lost: the page was closed, or the
// connection broke, before the call was accepted. `said`: the text of a sound. `waits`: the gateway does not answer at the moment, and is asked again. `tried`: what each provider said that failed.

const NAME = "runs";
const MOST = 20;
const POLL_MS = 700;
const QUICK_POLL_MS = 100;
const QUICK_POLLS = 20;
const listeners = new Set();
let runs = restore();

// A page that is loaded again finds its session again, and follows its runs further.
onSessionChange((session) => {
  if (session) return;
  runs = [];
  for (const listener of listeners) listener();
});

function restore() {
  try {
    return JSON.parse(sessionStorage.getItem(NAME) ?? "[]");
  } catch {
    return [];
  }
}

function changed() {
  const short = (name, value) => ((typeof value === "string" && value.startsWith("data:")) || name === "input_audio" || name === "sound" ? undefined : value);
  try {
    sessionStorage.setItem(NAME, JSON.stringify(runs, short));
  } catch { /* the storage of the tab is full: the runs stay until a reload */ }
  for (const listener of listeners) listener();
}

export function useRuns() {
  const [, update] = useReducer((round) => round + 1, 0);
  useEffect(() => {
    listeners.add(update);
    return () => listeners.delete(update);
  }, []);
  return runs;
}

const set = (lane, values) => {
  Object.assign(lane, values);
  changed();
};

export function startRun(task, calls, { prompt, inputs, mask, sound }) {
  const lanes = calls.map(({ model, body }) => ({ model, body, state: "working", began: Date.now(), files: [] }));
  const run = { id: crypto.randomUUID?.() ?? String(Math.random()), task, prompt, inputs, mask, sound, at: Date.now(), lanes };
  runs = [run, ...runs].slice(0, MOST);
  changed();
  for (const lane of lanes) work(task, lane);
}

export function runAgain(run) {
  startRun(run.task, run.lanes.map(({ model, body }) => ({ model, body })), run);
}

export function removeRun(run) {
  runs = runs.filter((other) => other !== run);
  changed();
}

// The inputs of a run are not kept across a reload; without them it cannot be repeated here.
export const canRepeat = (run) => (run.task === "transcription" ? Boolean(run.sound?.file) : run.task === "image" || !(run.inputs?.length) || run.inputs.every(({ source }) => source));

// Images are asked for like videos: the gateway accepts the call at once, and a page that is reloaded follows it further.
async function work(task, lane) {
  try {
    const response = await submit(task, lane);
    set(lane, { waits: false, requestId: response.headers.get("x-request-id") });
    if (task === "transcription") return set(lane, { ...await transcriptFields(response), state: "done", ended: Date.now() });
  } catch (problem) {
    return fail(lane, problem);
  }
  return follow(task, lane);
}

// A call whose answer got lost is repeated with the same key, so that nothing is made twice.
async function submit(task, lane) {
  const headers = { ...(task !== "transcription" && { prefer: "respond-async" }), "idempotency-key": crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}` };
  for (let failures = 0; ; failures += 1) {
    try {
      return await send(TASKS[task].path, { method: "POST", body: lane.body, headers });
    } catch (problem) {
      if (!(problem instanceof TypeError) || !isKept(lane)) throw problem;
      set(lane, { waits: true });
      await pause(failures);
    }
  }
}

function fail(lane, { message, code = null, requestId }) {
  set(lane, { state: "failed", ended: Date.now(), waits: false, problem: { message, code }, requestId: lane.requestId ?? requestId });
  if (lane.requestId) readAttempts(lane);
}

// Which provider said what; the message of a failed call alone does not tell.
async function readAttempts(lane) {
  try {
    const { attempts } = await ask(`/v1/requests/${lane.requestId}`);
    const failed = attempts.filter(({ failure }) => failure);
    set(lane, { tried: failed.map(({ provider_name: provider, http_status: status, failure }) => ({ provider, status, words: failure.message || failure.reason })) });
  } catch { /* the message is shown without it */ }
}

function imageFields(result) {
  return {
    cost: result.metadata.cost,
    size: result.size,
    provider: result.metadata.provider_name,
    files: result.data.map(({ url, b64_json: data, content_credentials: credentials }) => ({ credentials, url: url ?? `data:image/${result.output_format};base64,${data}`, type: `image/${result.output_format}` })),
    revised: result.data.find((image) => image.revised_prompt)?.revised_prompt,
  };
}

function videoFields(video) {
  const outputs = video.outputs ?? (video.output ? [video.output] : []);
  return {
    cost: video.metadata.cost,
    size: video.size ?? (video.seconds ? `${video.seconds} s` : undefined),
    provider: video.metadata.provider_name,
    progress: video.progress,
    files: outputs.map(({ url, content_type: type, content_credentials: credentials }) => ({ url, type, credentials })),
    revised: outputs.find((output) => output.revised_prompt)?.revised_prompt,
  };
}

// A transcript comes with the response, in the form that was asked for.
async function transcriptFields(response) {
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  const { text: words, segments, language } = isJson ? JSON.parse(text) : { text };
  const cost = response.headers.get("x-service-cost");
  const model = response.headers.get("x-service-executed-model");
  return { said: { text: words, segments, language }, cost: cost === null ? null : Number(cost), provider: model };
}

const isKept = (lane) => runs.some(({ lanes }) => lanes.includes(lane));

const pathOf = (task) => (task === "video" ? TASKS.video.path : isSound(task) ? TASKS.sound.path : "/compat/v1/images");

// Asks for the result until there is one. A gateway that does not answer says nothing about the call: it is asked again.
async function follow(task, lane) {
  for (let polls = 0, failures = 0; isKept(lane); polls += 1) {
    try {
      const made = await ask(`${pathOf(task)}/${lane.requestId}`);
      failures = 0;
      if (lane.waits) set(lane, { waits: false });
      if (made.data) return set(lane, { ...imageFields(made), state: "done", ended: lane.ended ?? Date.now() });
      if (made.status === "completed") return set(lane, { ...videoFields(made), state: "done", ended: made.completed_at * 1000 });
      if (made.status === "failed") return fail(lane, made.error);
      if (task === "video" || isSound(task)) set(lane, { progress: made.progress });
    } catch (problem) {
      if (!isPassing(problem)) return lane.state === "done" ? set(lane, { files: [], problem: { message: problem.message } }) : fail(lane, problem);
      if (lane.state === "working") set(lane, { waits: true });
      await pause(failures);
      failures += 1;
      continue;
    }
    await new Promise((resolve) => { setTimeout(resolve, polls < QUICK_POLLS ? QUICK_POLL_MS : POLL_MS); });
  }
  return undefined;
}

// After a reload: what was accepted is followed further, URLs of finished images are renewed, and a lost call is said to be lost.
function resume(run, lane) {
  if (!lane.requestId) return lane.state === "working" ? set(lane, { state: "lost" }) : undefined;
  return lane.state === "failed" || run.task === "transcription" ? undefined : follow(run.task, lane);
}

for (const run of runs) for (const lane of run.lanes) resume(run, lane);
