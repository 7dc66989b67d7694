/** Check that a webhook comes from the gateway, and read it. */

import { base64 } from "./calls.js";
import { WebhookRefused } from "./errors.js";
import type { Json } from "./results.js";

/** A webhook whose signature was right. */
export interface WebhookEvent {
  /** The same event may arrive more than once. */
  messageId: string;
  /** Such as video.completed. */
  type: string;
  data: Json;
}

const TOLERANCE_SECONDS = 300;

/** Return the event of a webhook. `body` is exactly what was received. Throws WebhookRefused. */
export async function checkWebhook(
  body: string | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  secret: string,
  now = Date.now(),
): Promise<WebhookEvent> {
  const named = headers instanceof Headers ? headers : lowerCase(headers);
  const messageId = named.get("webhook-id") ?? "";
  const timestamp = named.get("webhook-timestamp") ?? "";
  if (!/^\d+$/.test(timestamp) || Math.abs(now / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) {
    throw new WebhookRefused("the webhook has no timestamp of the last five minutes");
  }
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const key = Uint8Array.from(atob(secret.replace(/^whsec_/, "")), (letter) => letter.charCodeAt(0));
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", key, algorithm, false, ["sign"]);
  const signed = new TextEncoder().encode(`${messageId}.${timestamp}.${text}`);
  const expected = `v1,${base64(new Uint8Array(await crypto.subtle.sign("HMAC", imported, signed)))}`;
  const given = (named.get("webhook-signature") ?? "").split(" ");
  if (!given.some((each) => isEqual(each, expected))) {
    throw new WebhookRefused("the webhook is not signed with this secret");
  }
  const event = JSON.parse(text) as { type: string; data: Json };
  return { messageId, type: event.type, data: event.data };
}

function lowerCase(headers: Record<string, string | string[] | undefined>): Map<string, string> {
  return new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));
}

/** Compare without saying by the time it takes where they differ. */
function isEqual(one: string, other: string): boolean {
  let differs = one.length ^ other.length;
  for (let at = 0; at < other.length; at++) differs |= (one.charCodeAt(at) || 0) ^ other.charCodeAt(at);
  return differs === 0;
}
