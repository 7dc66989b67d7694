// Calls to the gateway that served this page, with the key of the session.

import { endSession, ownKeyId } from "./session.js";

export class Refused extends Error {
  constructor(status, { message, code, param } = {}, requestId = null) {
    super(message ?? `The gateway returned status ${status}.`);
    this.name = "Refused";
    Object.assign(this, { status, code, param, requestId });
  }
}

const ATTENDED_MS = 60_000;
let touched = Date.now();
for (const event of ["pointerdown", "pointermove", "keydown", "wheel"]) {
  document.addEventListener(event, () => { touched = Date.now(); }, { capture: true, passive: true });
}

// What a call says about the page that makes it. A refresh while nobody touches the page keeps no session of an operator alive.
const presence = (method) => (method === "GET" && Date.now() - touched > ATTENDED_MS ? "unattended" : "1");

// Returns the whole Response of a successful call; throws Refused for any other.
// The cookie of the session goes along; the header proves that the call comes from a page. A key is sent to sign in only.
export async function send(path, { method = "GET", body, key, headers, signal } = {}) {
  if (key !== undefined && !/^[!-~]+$/.test(key)) throw new Refused(401, { message: "This is not a valid key." }); // a header cannot contain it
  const all = { ...(key === undefined ? { "x-penstock-page": presence(method) } : { authorization: `Bearer ${key}` }), ...headers };
  const isForm = body instanceof FormData; // the browser writes its headers
  if (body !== undefined && !isForm) all["content-type"] = "application/json";
  const response = await fetch(path, { method, headers: all, body: body === undefined || isForm ? body : JSON.stringify(body), signal });
  if (response.ok || response.status === 304) return response;
  const result = await response.json().catch(() => ({}));
  if (response.status === 401 && key === undefined && ownKeyId()) endSession("Your session has ended, or your key is no longer valid. Sign in again.");
  throw new Refused(response.status, result.error, response.headers.get("x-request-id"));
}

export async function ask(path, options) {
  const response = await send(path, options);
  return response.status === 204 ? null : response.json();
}

// Whether the same call may work a moment later: the connection broke, or the gateway is starting, stopping or busy.
export const isPassing = (problem) => (problem instanceof Refused ? problem.status === 429 || problem.status >= 500
  : problem instanceof TypeError || problem instanceof SyntaxError); // a SyntaxError: the body broke off

const LONGEST_PAUSE_MS = 15_000;

// Resolves after a pause that doubles with each failure, or as soon as the browser is online or its tab is looked at again.
export function pause(failures, signal) {
  return new Promise((resolve) => {
    const control = new AbortController();
    const timer = setTimeout(wake, Math.min(LONGEST_PAUSE_MS, 500 * 2 ** failures));
    function wake() {
      clearTimeout(timer);
      control.abort();
      resolve();
    }
    for (const [target, event] of [[window, "online"], [document, "visibilitychange"], ...(signal ? [[signal, "abort"]] : [])]) {
      target.addEventListener(event, wake, { signal: control.signal });
    }
  });
}

// A problem in plain words.
export function explain(problem) {
  if (problem instanceof Refused) return problem.message;
  if (problem instanceof TypeError) return "The gateway cannot be reached. Is it running?";
  return problem?.message ?? String(problem);
}

export function withQuery(path, values) {
  const pairs = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return pairs.length ? `${path}?${new URLSearchParams(pairs)}` : path;
}

// The URL of a small copy of an output, 160, 480 or 1280 pixels wide; of one without copies, such as a vector image, the file itself.
export function thumbnailUrl({ url, thumbnail_url: small }, width) {
  if (!small) return fileUrl(url);
  const found = new URL(small, location.href);
  found.searchParams.set("w", width);
  return fileUrl(found.href);
}

// The URL that saves a file of this gateway under the first words of its prompt.
export function saveUrl(text, prompt) {
  const url = fileUrl(text);
  const name = (prompt ?? "").normalize("NFKD").replace(/[\u0300-\u036f]/g, "").match(/[A-Za-z0-9]+/g)?.slice(0, 8).join("-").slice(0, 60);
  return name && url.startsWith("/m/") ? `${url}&name=${name}` : url;
}

// A URL of a stored file. One of this gateway is used relative to the page, whatever name the browser calls it by.
export function fileUrl(text) {
  const url = new URL(text, location.href);
  return /^\/(m|compat)\//.test(url.pathname) ? url.pathname + url.search : text;
}
