/** Send calls to a gateway, and repeat those that may be repeated. */

import { type Call, KEY_HEADER } from "./calls.js";
import { CallFailed, NotConnected, Refused, refusal } from "./errors.js";

/** 0.5, 1, 2, 4 and 8 seconds: a gateway that restarts is back by then. */
export const RETRIES = 5;
/** What is waited for goes on without us: some nine minutes. */
export const POLL_RETRIES = 20;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
const TEMPORARY = new Set([408, 425, 429, 500, 502, 503, 504]);

export interface ConnectionOptions {
  url: string;
  key: string;
  headers?: Record<string, string> | undefined;
  fetch?: typeof globalThis.fetch | undefined;
}

export interface Reply {
  body: any;
  headers: Headers;
}

export class Connection {
  readonly url: string;
  readonly #key: string;
  readonly #headers: Record<string, string>;
  readonly #fetch: typeof globalThis.fetch;

  constructor(options: ConnectionOptions) {
    if (!/^https?:\/\//.test(options.url)) {
      throw new TypeError(`the URL of the gateway must begin with http:// or https://: ${options.url}`);
    }
    this.url = options.url.replace(/\/+$/, "");
    this.#key = options.key;
    this.#headers = options.headers ?? {};
    this.#fetch = options.fetch ?? globalThis.fetch;
  }

  /** Send a call, again if it may be repeated, and read the JSON of its response. */
  async send(call: Call, retries: number): Promise<Reply> {
    for (let tries = 1; ; tries++) {
      try {
        const response = await this.open(call);
        const text = await this.#guard(call.signal, () => response.text());
        try {
          return { body: text ? JSON.parse(text) : undefined, headers: response.headers };
        } catch {
          throw new NotConnected(`what answers at ${this.url} is not a Penstock gateway`);
        }
      } catch (failure) {
        const pause = retryPause(call, failure, tries, retries);
        if (pause === undefined) throw failure;
        await sleep(pause, call.signal);
      }
    }
  }

  /** Send a call once, and return its response while the body arrives. */
  async open(call: Call): Promise<Response> {
    const headers: Record<string, string> = {
      authorization: `Bearer ${this.#key}`,
      ...this.#headers,
      ...call.headers,
      ...(call.body ? { "content-type": "application/json" } : {}),
    };
    const body = call.body ? JSON.stringify(call.body) : null;
    return this.#checked(this.url + call.path, { method: call.method, headers, body, signal: call.signal ?? null });
  }

  /** Read the file at a signed URL, which needs no key and gets none. */
  async openFile(url: string, signal?: AbortSignal): Promise<Response> {
    return this.#checked(url, { signal: signal ?? null });
  }

  async #checked(url: string, init: RequestInit): Promise<Response> {
    const response = await this.#guard(init.signal, () => this.#fetch(url, init));
    if (!response.ok) throw await refusal(response);
    return response;
  }

  async #guard<T>(signal: AbortSignal | null | undefined, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (problem) {
      signal?.throwIfAborted();
      const cause = problem instanceof Error ? ((problem.cause as Error | undefined)?.message ?? problem.message) : problem;
      throw new NotConnected(`the call to ${this.url} failed: ${cause}`, { cause: problem });
    }
  }
}

/** How many milliseconds to wait before a call is sent again that failed so; undefined if it must not be. */
export function retryPause(call: Call, failure: unknown, tries: number, retries: number): number | undefined {
  const mayBeRepeated = call.method !== "POST" || KEY_HEADER in (call.headers ?? {});
  if (tries > retries || !mayBeRepeated || !(failure instanceof CallFailed)) return undefined;
  const pause = Math.min(FIRST_PAUSE_MS * 2 ** (tries - 1), LONGEST_PAUSE_MS);
  if (failure instanceof NotConnected) return pause * (0.75 + Math.random() / 2);
  if (!(failure instanceof Refused) || !isTemporary(failure)) return undefined;
  const seconds = Number(failure.headers.get("retry-after") ?? 0);
  return Math.max(pause, Math.min(seconds > 0 ? seconds * 1000 : 0, 2 * LONGEST_PAUSE_MS));
}

function isTemporary(refused: Refused): boolean {
  if (refused.code === "UPSTREAM_TIMEOUT") return true; // what a paid call began goes on, and its key finds it
  const said = refused.headers.get("x-should-retry");
  return said ? said === "true" : TEMPORARY.has(refused.status);
}

export async function sleep(milliseconds: number, signal?: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(done, milliseconds);
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      if (signal?.aborted) reject(signal.reason as Error);
      else resolve();
    }
    signal?.addEventListener("abort", done);
  });
}
