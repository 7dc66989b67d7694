/** What can become of a call beside its result. */

import type { Generation } from "./results.js";

export class CallFailed extends Error {
  override name = "CallFailed";
}

/** No gateway answered, or the connection broke before the end of the response. */
export class NotConnected extends CallFailed {
  override name = "NotConnected";
}

/** The gateway answered with an error. `code` is one of those in its documentation. */
export class Refused extends CallFailed {
  override name = "Refused";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly param: string | null,
    readonly headers: Headers,
  ) {
    super(code ? `${message} (${code})` : message);
  }

  /** The id of the request's record. */
  get requestId(): string {
    return this.headers.get("x-request-id") ?? "";
  }
}

/** What was waited for has failed; `generation.error` says why. */
export class GenerationFailed extends CallFailed {
  override name = "GenerationFailed";

  constructor(readonly generation: Generation) {
    super(`${generation.error?.message} (${generation.error?.code})`);
  }
}

/** What was waited for is not finished in time, and goes on. */
export class NotFinished extends CallFailed {
  override name = "NotFinished";

  constructor(readonly generation: Generation) {
    super(`${generation.id} is not finished yet, and goes on`);
  }
}

/** A webhook was not signed with this secret, or too long ago. */
export class WebhookRefused extends Error {
  override name = "WebhookRefused";
}

/** The error that a response with an error status stands for. */
export async function refusal(response: Response): Promise<Refused> {
  const text = await response.text().catch(() => "");
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string; param?: string | null } };
    return new Refused(response.status, error.code, error.message, error.param ?? null, response.headers);
  } catch {
    const message = `the gateway answered with status ${response.status}, and not as a Penstock gateway does`;
    return new Refused(response.status, "", message, null, response.headers);
  }
}
