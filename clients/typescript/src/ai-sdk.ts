/** A provider for the AI SDK: images, videos, speech and chats of a Penstock gateway. */

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  APICallError,
  type ImageModelV4,
  type ImageModelV4CallOptions,
  type ImageModelV4File,
  type JSONObject,
  type LanguageModelV4,
  NoSuchModelError,
  type ProviderV4,
  type SharedV4Warning,
  type SpeechModelV4,
  type SpeechModelV4CallOptions,
  type Experimental_VideoModelV4 as VideoModelV4,
  type Experimental_VideoModelV4CallOptions as VideoModelV4CallOptions,
} from "@ai-sdk/provider";
import type { CommonFields, Input } from "./calls.js";
import { type ClientOptions, Penstock } from "./client.js";
import { GenerationFailed, NotConnected, Refused } from "./errors.js";
import type { Generation, Json, OutputFile } from "./results.js";

export interface PenstockProvider extends ProviderV4 {
  (model: string): LanguageModelV4;
  videoModel(model: string): VideoModelV4;
  video(model: string): VideoModelV4;
  image(model: string): ImageModelV4;
  speechModel(model: string): SpeechModelV4;
  speech(model: string): SpeechModelV4;
}

const NAME = "penstock";

/** Make a provider. `providerOptions.penstock` takes any further field of a call, by the gateway's own name. */
export function createPenstock(options: ClientOptions = {}): PenstockProvider {
  const variables: Record<string, string | undefined> = (globalThis as Json).process?.env ?? {};
  const url = (options.url ?? variables["PENSTOCK_URL"] ?? "http://127.0.0.1:8080").replace(/\/+$/, "");
  const key = options.key ?? variables["PENSTOCK_KEY"] ?? "";
  const client = (headers: Headers): Penstock =>
    new Penstock({ ...options, url, key, headers: { ...options.headers, ...given(headers) } });
  const chats = createOpenAICompatible({
    name: NAME,
    baseURL: `${url}/compat/v1`,
    apiKey: key,
    includeUsage: true,
    supportsStructuredOutputs: true,
    ...(options.headers ? { headers: options.headers } : {}),
    ...(options.fetch ? { fetch: options.fetch } : {}),
  });
  const languageModel = (model: string): LanguageModelV4 => chats.chatModel(model);
  const image = (model: string): ImageModelV4 => imageModel(model, client);
  const video = (model: string): VideoModelV4 => videoModel(model, client);
  const speech = (model: string): SpeechModelV4 => speechModel(model, client);
  return Object.assign((model: string) => languageModel(model), {
    specificationVersion: "v4" as const,
    languageModel,
    imageModel: image,
    image,
    videoModel: video,
    video,
    speechModel: speech,
    speech,
    embeddingModel(model: string): never {
      throw new NoSuchModelError({ modelId: model, modelType: "embeddingModel" });
    },
  });
}

/** The provider of the gateway that PENSTOCK_URL and PENSTOCK_KEY name. */
export const penstock: PenstockProvider = createPenstock();

type Headers = Record<string, string | undefined> | undefined;
type MakeClient = (headers: Headers) => Penstock;

// -------------------------------------------------------------------------------------------------------------- images

function imageModel(modelId: string, client: MakeClient): ImageModelV4 {
  return {
    specificationVersion: "v4",
    provider: `${NAME}.image`,
    modelId,
    maxImagesPerCall: 10,
    supportsFileInputs: true,
    supportsMaskInputs: true,
    async doGenerate(options: ImageModelV4CallOptions) {
      const { n, size, aspectRatio, seed, files, mask, prompt } = options;
      const caller = client(options.headers);
      const fields = { ...common(options), model: modelId, n, size, aspectRatio, seed };
      const made = await calling(`${NAME}.image`, fields, async () => {
        const inputs = files?.map(imageInput);
        if (!inputs?.length) return caller.image(prompt ?? "", fields);
        if (prompt === undefined && inputs.length === 1) return caller.upscale(inputs[0]!, fields);
        return caller.edit(prompt ?? "", inputs, { ...fields, mask: mask && imageInput(mask) });
      });
      return {
        images: await Promise.all(made.files.map((file) => caller.read(file, options.abortSignal))),
        warnings: [],
        providerMetadata: { [NAME]: { images: made.files.map((file) => imageMetadata(made, file)) } },
        response: response(modelId),
      };
    },
  };
}

/** What the SDK passes on of each image. `callCost` is the cost of the call, which may have made several. */
function imageMetadata(made: Generation, file: OutputFile): JSONObject {
  const { id, executedModel, cost } = made;
  return { id, executedModel: executedModel ?? null, callCost: cost ?? null, revisedPrompt: file.revisedPrompt ?? null };
}

function imageInput(file: ImageModelV4File): Input {
  if (file.type === "url") return file.url;
  return fileInput(file.data, file.mediaType);
}

function fileInput(data: string | Uint8Array, mediaType: string): Input {
  if (typeof data === "string") return `data:${mediaType};base64,${data}`;
  return new Blob([data as Uint8Array<ArrayBuffer>], { type: mediaType });
}

// -------------------------------------------------------------------------------------------------------------- videos

function videoModel(modelId: string, client: MakeClient): VideoModelV4 {
  async function start(options: VideoModelV4CallOptions & { webhookUrl?: string }): Promise<Generation> {
    const references = (options.inputReferences ?? []).map(videoInput);
    const frames = Object.fromEntries((options.frameImages ?? []).map((each) => [each.frameType, videoInput(each.image).input]));
    const video = references.find((each) => each.kind.startsWith("video/"));
    const fields = {
      ...common(options),
      model: modelId,
      n: options.n,
      seconds: options.duration,
      size: options.resolution,
      aspectRatio: options.aspectRatio === "adaptive" ? undefined : options.aspectRatio,
      seed: options.seed,
      generateAudio: options.generateAudio,
      webhookUrl: options.webhookUrl,
      image: options.image ? videoInput(options.image).input : frames["first_frame"],
      lastFrame: frames["last_frame"],
      references: references.filter((each) => each !== video).map((each) => each.input),
      video: video?.input,
    };
    return calling(`${NAME}.video`, {}, () => client(options.headers).startVideo(options.prompt ?? "", fields));
  }

  async function videos(made: Generation, headers: Headers, signal: AbortSignal | undefined) {
    const caller = client(headers);
    return Promise.all(
      made.files.map(async (file) => ({
        type: "binary" as const,
        data: await caller.read(file, signal),
        mediaType: file.contentType ?? "video/mp4",
      })),
    );
  }

  return {
    specificationVersion: "v4",
    provider: `${NAME}.video`,
    modelId,
    maxVideosPerCall: 4,
    async doGenerate(options: VideoModelV4CallOptions) {
      const begun = await start(options);
      const made = await calling(`${NAME}.video`, {}, () =>
        client(options.headers).wait(begun, { signal: options.abortSignal }),
      );
      return {
        videos: await videos(made, options.headers, options.abortSignal),
        warnings: warnings(options),
        providerMetadata: { [NAME]: said(made) },
        response: response(modelId),
      };
    },
    async handleWebhookOption({ webhook }) {
      const { url, received } = await webhook();
      return { webhookUrl: url, received };
    },
    async doStart(options) {
      const begun = await start(options);
      return {
        operation: { id: begun.id },
        warnings: warnings(options),
        providerMetadata: { [NAME]: said(begun) },
        response: response(modelId),
      };
    },
    async doStatus({ operation, headers, abortSignal }) {
      const { id } = operation as { id: string };
      const made = await calling(`${NAME}.video`, {}, () => client(headers).get(id, "video", abortSignal));
      const rest = { providerMetadata: { [NAME]: said(made) }, response: response(modelId) };
      if (made.status === "failed") return { status: "error", error: new GenerationFailed(made).message, ...rest };
      if (made.status !== "completed") return { status: "pending", ...rest };
      return { status: "completed", videos: await videos(made, headers, abortSignal), warnings: [], ...rest };
    },
  };
}

type VideoInput = { input: Input; kind: string };

function videoInput(file: NonNullable<VideoModelV4CallOptions["image"]>): VideoInput {
  if (file.type === "url") return { input: file.url, kind: file.mediaType ?? "image/*" };
  return { input: fileInput(file.data, file.mediaType), kind: file.mediaType };
}

function warnings(options: VideoModelV4CallOptions): SharedV4Warning[] {
  return options.fps === undefined
    ? []
    : [{ type: "unsupported", feature: "fps", details: "Give it in providerOptions.penstock, by the name of the model's provider." }];
}

// -------------------------------------------------------------------------------------------------------------- speech

function speechModel(modelId: string, client: MakeClient): SpeechModelV4 {
  return {
    specificationVersion: "v4",
    provider: `${NAME}.speech`,
    modelId,
    async doGenerate(options: SpeechModelV4CallOptions) {
      const caller = client(options.headers);
      const { voice, speed, instructions, language } = options;
      const format = options.outputFormat as "mp3" | undefined; // the gateway refuses what it does not know
      const fields = { ...common(options), model: modelId, voice, speed, instructions, responseFormat: format };
      const made = await calling(`${NAME}.speech`, fields, () =>
        caller.speech(options.text, language && language !== "auto" ? { ...fields, language } : fields),
      );
      const [file] = made.files;
      return {
        audio: file ? await caller.read(file, options.abortSignal) : new Uint8Array(),
        warnings: [],
        providerMetadata: { [NAME]: said(made) },
        response: response(modelId),
      };
    },
  };
}

// -------------------------------------------------------------------------------------------------- what they all share

interface AnyOptions {
  providerOptions?: Record<string, Json> | undefined;
  abortSignal?: AbortSignal | undefined;
  headers?: Headers;
}

/** What the caller gave for the gateway only, the key of the call if the SDK made one, and the signal that ends it. */
function common(options: AnyOptions): CommonFields {
  const key = Object.entries(options.headers ?? {}).find(([name]) => name.toLowerCase() === "idempotency-key")?.[1];
  return { extra: options.providerOptions?.[NAME], idempotencyKey: key, signal: options.abortSignal };
}

/** The headers of one call, without the key: that is one of the fields. */
function given(headers: Headers): Record<string, string> {
  const found = Object.entries(headers ?? {}).filter(([name, value]) => value !== undefined && name.toLowerCase() !== "idempotency-key");
  return Object.fromEntries(found) as Record<string, string>;
}

/** What the gateway says beside the files. */
function said(made: Generation): JSONObject {
  const { id, status, progress, executedModel, cost, costEstimate } = made;
  return JSON.parse(JSON.stringify({ id, status, progress, executedModel, cost, costEstimate })) as JSONObject;
}

function response(modelId: string) {
  return { timestamp: new Date(), modelId, headers: {} };
}

/** Run a call. Its failure is not to be retried: the client has done that, with the key that lets it be paid once. */
async function calling<T>(url: string, fields: unknown, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (failure) {
    if (!(failure instanceof Refused || failure instanceof NotConnected || failure instanceof GenerationFailed)) throw failure;
    const refused = failure instanceof Refused ? { statusCode: failure.status, data: { code: failure.code } } : {};
    throw new APICallError({
      message: failure.message,
      url,
      requestBodyValues: fields,
      isRetryable: false,
      cause: failure,
      ...refused,
    });
  }
}
