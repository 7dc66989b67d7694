/** A client for Penstock. The provider for the AI SDK is in `@penstock/client/ai-sdk`. */

export { type ClientOptions, Penstock, type WaitOptions } from "./client.js";
export type { CommonFields, EditFields, ImageFields, Input, SpeechFields, UpscaleFields, VideoFields } from "./calls.js";
export { CallFailed, GenerationFailed, NotConnected, NotFinished, Refused, WebhookRefused } from "./errors.js";
export type { Balance, Generation, Kind, OutputFile, Price, Status } from "./results.js";
export { type WebhookEvent, checkWebhook } from "./webhook.js";
