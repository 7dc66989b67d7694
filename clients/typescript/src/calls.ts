/** Make calls of what a caller asks for: paths, bodies, inputs, and the key that lets a paid call be repeated. */

import type { Json } from "./results.js";

/** An image or a video for a call: the bytes of a file, a URL, or a data URI. */
export type Input = string | URL | Uint8Array | Blob;

/** What every paid call takes. */
export interface CommonFields {
  /** Instead of one that the client makes. */
  idempotencyKey?: string | undefined;
  labels?: Record<string, string> | undefined;
  /** Routing: which providers are tried, in which order and at what price. */
  provider?: Json | undefined;
  sessionId?: string | undefined;
  user?: string | undefined;
  mediaRetention?: string | undefined;
  webhookUrl?: string | undefined;
  /** Any other field, by the name that the gateway or a provider has for it. */
  extra?: Json | undefined;
  signal?: AbortSignal | undefined;
}

export interface ImageFields extends CommonFields {
  n?: number | undefined;
  size?: string | undefined;
  aspectRatio?: string | undefined;
  resolution?: string | undefined;
  quality?: string | undefined;
  seed?: number | undefined;
  negativePrompt?: string | undefined;
  outputFormat?: "png" | "jpeg" | "gif" | "webp" | "avif" | "svg" | undefined;
  outputCompression?: number | undefined;
  thinking?: string | undefined;
  promptEnhancement?: "on" | "off" | undefined;
}

export interface EditFields extends ImageFields {
  /** A PNG whose transparent pixels are the area to edit. */
  mask?: Input | undefined;
}

export interface UpscaleFields extends ImageFields {
  scaleFactor?: number | undefined;
}

export interface VideoFields extends CommonFields {
  n?: number | undefined;
  seconds?: number | undefined;
  size?: string | undefined;
  aspectRatio?: string | undefined;
  resolution?: string | undefined;
  seed?: number | undefined;
  negativePrompt?: string | undefined;
  generateAudio?: boolean | undefined;
  scaleFactor?: number | undefined;
  metadata?: Record<string, string> | undefined;
  /** The first frame. */
  image?: Input | undefined;
  lastFrame?: Input | undefined;
  /** Images of what the video shows. */
  references?: Input[] | undefined;
  /** A video to edit, extend or enlarge. */
  video?: Input | undefined;
  videoRole?: "edit" | "extend" | undefined;
}

export interface SpeechFields extends CommonFields {
  voice?: string | undefined;
  responseFormat?: "mp3" | "opus" | "aac" | "flac" | "wav" | "pcm" | undefined;
  speed?: number | undefined;
  instructions?: string | undefined;
  language?: string | undefined;
  sampleRate?: number | undefined;
}

/** A request to the gateway, before it has a URL and the caller's key. */
export interface Call {
  method: "GET" | "POST" | "DELETE";
  path: string;
  body?: Json;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

export const IMAGES = "/compat/v1/images/generations";
export const EDITS = "/compat/v1/images/edits";
export const VIDEOS = "/compat/v1/videos";
export const SPEECH = "/compat/v1/audio/speech";
export const KEY_HEADER = "idempotency-key";
const INPUTS = new Set(["image", "lastFrame", "references", "video", "videoRole", "mask"]);

/** A call that costs money. Its key lets it be sent again without being made or charged twice. */
export function paid(path: string, own: Json, fields: CommonFields & Json = {}): Call {
  const { idempotencyKey, extra, signal, ...others } = fields;
  const named = Object.entries(others)
    .filter(([name]) => !INPUTS.has(name))
    .map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]);
  const body = { ...own, ...Object.fromEntries(named), ...extra };
  const key = idempotencyKey ?? `ts_${crypto.randomUUID()}`;
  return { method: "POST", path, body, headers: { [KEY_HEADER]: key }, signal };
}

/** The same call, which does not wait for its result. */
export function started(call: Call): Call {
  const { accept: _, ...headers } = call.headers ?? {};
  return { ...call, headers: { ...headers, prefer: "respond-async" } };
}

/** The same call, which only asks for its price. */
export function dryRun(call: Call): Call {
  return { ...call, path: `${call.path}?dryRun=true`, headers: {} };
}

export async function inputUrl(input: Input, kind = "image/png"): Promise<string> {
  if (input instanceof URL) return input.href;
  if (typeof input === "string") {
    if (!/^(https?:\/\/|data:)/.test(input)) throw new TypeError("a text must be a URL or a data URI; give a file as bytes");
    return input;
  }
  const bytes = input instanceof Blob ? new Uint8Array(await input.arrayBuffer()) : input;
  return `data:${(input instanceof Blob && input.type) || kind};base64,${base64(bytes)}`;
}

export function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

/** The `input_reference` of a video; undefined if it has no input. */
export async function references(fields: VideoFields): Promise<unknown> {
  if (fields.video) {
    const url = await inputUrl(fields.video, "video/mp4");
    return { video_url: url, ...(fields.videoRole ? { role: fields.videoRole } : {}) };
  }
  const roles: [string, Input][] = [];
  if (fields.image) roles.push(["first_frame", fields.image]);
  if (fields.lastFrame) roles.push(["last_frame", fields.lastFrame]);
  for (const each of fields.references ?? []) roles.push(["reference", each]);
  if (!roles.length) return undefined;
  return Promise.all(roles.map(async ([role, each]) => ({ image_url: await inputUrl(each), role })));
}
