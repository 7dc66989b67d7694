/** Calls a gateway: images, edits, upscales, videos, speech, prices and the balance. */

import {
  type Call,
  EDITS,
  type EditFields,
  IMAGES,
  type ImageFields,
  type Input,
  SPEECH,
  type SpeechFields,
  type UpscaleFields,
  VIDEOS,
  type VideoFields,
  dryRun,
  inputUrl,
  paid,
  references,
  started,
} from "./calls.js";
import { Connection, POLL_RETRIES, RETRIES, type Reply, sleep } from "./connection.js";
import { GenerationFailed, NotFinished } from "./errors.js";
import { type Balance, type Generation, type Json, type Kind, type OutputFile, type Price, generationPath, readGeneration } from "./results.js";

export interface ClientOptions {
  /** Default: the environment variable PENSTOCK_URL, else http://127.0.0.1:8080. */
  url?: string | undefined;
  /** Default: the environment variable PENSTOCK_KEY. Keep it out of browsers. */
  key?: string | undefined;
  /** How often a call is sent again that got no answer, or that cannot be served now; 5 by default. */
  retries?: number | undefined;
  /** They go with every call, such as those of record and replay. */
  headers?: Record<string, string> | undefined;
  fetch?: typeof globalThis.fetch | undefined;
}

export interface WaitOptions {
  onProgress?: ((state: Generation) => void) | undefined;
  /** Stop waiting after so many seconds; the generation goes on. */
  waitSeconds?: number | undefined;
  signal?: AbortSignal | undefined;
}

type WithModel<Fields> = Fields & { model: string };

const POLL_MS = 1000; // where the gateway does not say when to ask again

/** Each paid call has an idempotency key, with which it is sent again; it is made and charged once. */
export class Penstock {
  readonly #connection: Connection;
  readonly #retries: number;

  constructor(options: ClientOptions = {}) {
    const variables: Record<string, string | undefined> = (globalThis as Json).process?.env ?? {};
    const key = options.key ?? variables["PENSTOCK_KEY"];
    if (!key) throw new TypeError("a key is needed: give `key`, or set PENSTOCK_KEY");
    const url = options.url ?? variables["PENSTOCK_URL"] ?? "http://127.0.0.1:8080";
    this.#connection = new Connection({ url, key, headers: options.headers, fetch: options.fetch });
    this.#retries = options.retries ?? RETRIES;
  }

  /** Make images from a prompt, and wait for them. */
  async image(prompt: string, fields: WithModel<ImageFields>): Promise<Generation> {
    return this.#generation(imageCall(prompt, fields));
  }

  /** Start images, and return at once. */
  async startImage(prompt: string, fields: WithModel<ImageFields>): Promise<Generation> {
    return this.#generation(started(imageCall(prompt, fields)));
  }

  /** Edit images, only where the mask is transparent if there is one, and wait for the result. */
  async edit(prompt: string, images: Input | Input[], fields: WithModel<EditFields>): Promise<Generation> {
    return this.#generation(await editCall(prompt, images, fields));
  }

  /** Enlarge an image, and wait for it. */
  async upscale(image: Input, fields: WithModel<UpscaleFields>): Promise<Generation> {
    return this.#generation(await upscaleCall(image, fields));
  }

  /** Speak a text, and wait for the sound, which the gateway keeps as long as an image. */
  async speech(text: string, fields: WithModel<SpeechFields>): Promise<Generation> {
    return this.#generation(speechCall(text, fields));
  }

  /** Start to speak a text of up to 100,000 characters, and return at once. */
  async startSpeech(text: string, fields: WithModel<SpeechFields>): Promise<Generation> {
    return this.#generation(started(speechCall(text, fields)));
  }

  /** Speak a text, and get the sound while it is made. The gateway keeps nothing, so this is never repeated. */
  async streamSpeech(text: string, fields: WithModel<SpeechFields>): Promise<ReadableStream<Uint8Array>> {
    const { headers: _, ...call } = paid(SPEECH, { input: text }, fields);
    return (await this.#connection.open(call)).body ?? new Blob().stream();
  }

  /** Start a video, and return at once. A model that enlarges a video takes no prompt: give an empty one. */
  async startVideo(prompt: string, fields: WithModel<VideoFields>): Promise<Generation> {
    return this.#generation(await videoCall(prompt, fields));
  }

  /** Make a video, and wait until it is complete; see `wait`. */
  async video(prompt: string, fields: WithModel<VideoFields> & WaitOptions): Promise<Generation> {
    const { onProgress, waitSeconds, ...others } = fields;
    return this.wait(await this.startVideo(prompt, others), { onProgress, waitSeconds, signal: fields.signal });
  }

  /** Return a generation in whatever state it is, with fresh URLs of its files. */
  async get(id: string, kind: Kind = "video", signal?: AbortSignal): Promise<Generation> {
    return this.#generation({ method: "GET", path: generationPath(id, kind), signal });
  }

  /**
   * Wait until a generation is complete. Throws GenerationFailed, or NotFinished after `waitSeconds`. A gateway that is
   * away for some minutes is waited for, because what it has accepted goes on.
   */
  async wait(begun: Generation, options: WaitOptions = {}): Promise<Generation> {
    const deadline = options.waitSeconds === undefined ? Infinity : Date.now() + options.waitSeconds * 1000;
    const call: Call = { method: "GET", path: generationPath(begun.id, begun.kind), signal: options.signal };
    for (;;) {
      const reply = await this.#connection.send(call, Math.max(this.#retries, POLL_RETRIES));
      const state = readGeneration(reply.body);
      options.onProgress?.(state);
      if (state.status === "failed") throw new GenerationFailed(state);
      if (state.status === "completed") return state;
      const pause = Number(reply.headers.get("openai-poll-after-ms")) || POLL_MS;
      if (Date.now() + pause > deadline) throw new NotFinished(state);
      await sleep(pause, options.signal);
    }
  }

  /** Cancel a generation, if it is not finished yet. */
  async cancel(begun: Generation): Promise<void> {
    await this.#send({ method: "DELETE", path: generationPath(begun.id, begun.kind) });
  }

  /** Return an output as a stream of bytes. */
  async download(file: OutputFile, signal?: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return (await this.#connection.openFile(file.url, signal)).body ?? new Blob().stream();
  }

  /** Return an output as bytes. */
  async read(file: OutputFile, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await (await this.#connection.openFile(file.url, signal)).arrayBuffer());
  }

  /** Return what a call would cost, and make nothing. An edit's images are `images`, the image to enlarge is `image`. */
  async price(kind: "image" | "edit" | "upscale" | "video" | "speech", prompt: string, fields: WithModel<Json>): Promise<Price> {
    const { images, image, ...others } = fields;
    const calls: Record<string, () => Call | Promise<Call>> = {
      image: () => imageCall(prompt, others),
      edit: () => editCall(prompt, images, others),
      upscale: () => upscaleCall(image, others),
      video: () => videoCall(prompt, fields),
      speech: () => speechCall(prompt, others),
    };
    const make = calls[kind];
    if (!make) throw new TypeError(`the kind of a call must be one of ${Object.keys(calls).join(", ")}, not ${kind}`);
    const { body } = await this.#send(dryRun(await make()));
    return { total: body.total_cost_micros / 1e6, model: body.model, body };
  }

  /** Return what the organization can spend. */
  async balance(): Promise<Balance> {
    const { body } = await this.#send({ method: "GET", path: "/v1/balance" });
    return { available: body.available.amount ?? undefined, billingType: body.billing_type, body };
  }

  /** List the models that can be called; `mode` is one of theirs, such as text-to-image. */
  async models(mode?: string): Promise<Json[]> {
    const { body } = await this.#send({ method: "GET", path: "/compat/v1/models" });
    return (body.data as Json[]).filter((model) => !mode || model.modes?.includes(mode));
  }

  /** Return the secret that signs the webhooks of the organization, for `checkWebhook`. */
  async webhookSecret(): Promise<string> {
    return (await this.#send({ method: "GET", path: "/v1/webhooks/secret" })).body.key;
  }

  async #generation(call: Call): Promise<Generation> {
    return readGeneration((await this.#send(call)).body);
  }

  async #send(call: Call): Promise<Reply> {
    return this.#connection.send(call, this.#retries);
  }
}

function imageCall(prompt: string, fields: Json): Call {
  return paid(IMAGES, { prompt }, fields);
}

async function editCall(prompt: string, images: Input | Input[], fields: Json): Promise<Call> {
  const image = await Promise.all((Array.isArray(images) ? images : [images]).map((each) => inputUrl(each)));
  return paid(EDITS, { prompt, image, ...(fields.mask ? { mask: await inputUrl(fields.mask) } : {}) }, fields);
}

async function upscaleCall(image: Input, fields: Json): Promise<Call> {
  return paid(EDITS, { image: [await inputUrl(image)] }, fields);
}

/** Speech in JSON: the URL of a file that is kept, so that the call can be repeated. */
function speechCall(text: string, fields: Json): Call {
  const call = paid(SPEECH, { input: text }, fields);
  return { ...call, headers: { ...call.headers, accept: "application/json" } };
}

async function videoCall(prompt: string, fields: Json): Promise<Call> {
  return paid(VIDEOS, { prompt: prompt || undefined, input_reference: await references(fields) }, fields);
}
