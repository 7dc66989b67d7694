// The sign-in page: with the account of the company, by an issuer or a proxy, with a key, or both.

import { useData } from "../data.js";
import { ask, explain } from "../gateway.js";
import { TextField } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { reasonForEnd, startSession } from "../session.js";
import { html, useEffect, useRef, useState } from "../view.js";

// Why the gateway sent the browser back here, by the code in the address.
const REFUSALS = {
  "no-access": () => "You are signed in with your company, but nobody has given you a role here yet. Ask an admin: you are on their list now.",
  deactivated: () => "Your access was taken away. Ask an admin.",
  expired: () => "This sign-in took too long, or began in another browser. Try again.",
  refused: (issuer) => `${issuer} did not let you in.`,
  unreachable: (issuer) => `${issuer} cannot be reached right now. People who are signed in already can go on.`,
  "no-proxy": () => "Your company's proxy signs people in here, and you did not come through it. Use its address.",
  failed: () => "The answer of your company's sign-in cannot be trusted. An operator finds the reason in the log.",
};

function refusalInAddress() {
  const asked = new URLSearchParams(location.hash.split("?")[1] ?? "");
  const issuer = asked.get("issuer") ?? "";
  return REFUSALS[asked.get("refused")]?.(/^[\w.-]{1,80}$/.test(issuer) ? issuer : "The issuer") ?? "";
}

function WithKey({ isAlone }) {
  const [key, setKey] = useState("");
  const [keep, setKeep] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState(isAlone ? reasonForEnd() : "");
  const form = useRef(null);
  useEffect(() => form.current.querySelector("input").focus(), []);
  async function enter(event) {
    event.preventDefault();
    setBusy(true);
    setRefusal("");
    const text = key.trim();
    try {
      startSession(await ask("/v1/session", { method: "POST", body: { keep }, key: text }));
    } catch (problem) {
      setBusy(false);
      setRefusal(problem.status === 401 ? "This key is not valid. It may be mistyped, revoked or from another gateway." : explain(problem));
    }
  }
  return html`<form class="panel stack" id="sign-in" ref=${form} onSubmit=${enter}>
      <div><h2>Sign in with an API key</h2>
        <p class="soft small">It is sent only to this gateway and not kept in the browser.</p></div>
      <${TextField} label="API key" type="password" value=${key} onInput=${setKey} placeholder="pk_…" required
        autocomplete="off" spellcheck="false" />
      <label class="check small"><input type="checkbox" checked=${keep} onChange=${(event) => setKeep(event.target.checked)} />
        Stay signed in on this computer for 30 days</label>
      ${refusal && html`<div class="notice bad" id="refusal" role="alert"><${Icon} name="alert" /><div>${refusal}</div></div>`}
      <button class="button main" disabled=${busy || !key.trim()}>Sign in</button>
    </form>`;
}

function WithIssuer({ button }) {
  const refusal = reasonForEnd() || refusalInAddress();
  const next = location.hash.startsWith("#/") && !location.hash.includes("refused=") ? `/${location.hash}` : "/";
  return html`<div class="panel stack" id="issuer">
    ${refusal && html`<div class="notice bad" id="refusal" role="alert"><${Icon} name="alert" /><div>${refusal}</div></div>`}
    <a class="button main" id="with-issuer" href=${`/auth/login?${new URLSearchParams({ next })}`}>${button}</a></div>`;
}

export function SignIn() {
  const { data: ways, loading } = useData(() => ask("/auth/options"));
  const company = ways?.oidc ?? ways?.proxy;
  const [wantsKey, setWantsKey] = useState(false);
  useEffect(() => { document.title = "Sign in · Penstock"; }, []);
  return html`<main class="door"><div>
    <div class="welcome"><h1 class="brand"><img src="/dashboard/icon.svg" alt="" />Penstock</h1>
      <p>Image, video and chat models behind one API of your own.</p></div>
    ${company && html`<${WithIssuer} button=${company.button} />`}
    ${company && ways.key && !wantsKey && html`<p><button type="button" class="button plain small" id="with-key"
      onClick=${() => setWantsKey(true)}>Sign in with an API key instead</button></p>`}
    ${!loading && (!company || wantsKey) && html`<${WithKey} isAlone=${!company} />
    <p>The gateway prints its first key once, on first start. To create another:<br />
      <code>penstock keys create --scope admin</code></p>`}
    <p><a href="/docs">Documentation</a></p>
  </div></main>`;
}
