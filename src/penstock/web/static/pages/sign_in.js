// The sign-in page: a key, checked by a call to the gateway.

import { ask, explain } from "../gateway.js";
import { TextField } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { reasonForEnd, startSession } from "../session.js";
import { html, useEffect, useRef, useState } from "../view.js";

export function SignIn() {
  const [key, setKey] = useState("");
  const [keep, setKeep] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState(reasonForEnd());
  const form = useRef(null);
  useEffect(() => {
    document.title = "Sign in · Penstock";
    form.current.querySelector("input").focus();
  }, []);
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
  return html`<main class="door"><div>
    <div class="welcome"><h1 class="brand"><img src="/dashboard/icon.svg" alt="" />Penstock</h1>
      <p>Image, video and chat models behind one API of your own.</p></div>
    <form class="panel stack" id="sign-in" ref=${form} onSubmit=${enter}>
      <div><h2>Sign in with an API key</h2>
        <p class="soft small">It is sent only to this gateway, and not kept in the browser.</p></div>
      <${TextField} label="API key" type="password" value=${key} onInput=${setKey} placeholder="pk_…" required
        autocomplete="off" spellcheck="false" />
      <label class="check small"><input type="checkbox" checked=${keep} onChange=${(event) => setKeep(event.target.checked)} />
        Stay signed in on this computer for 30 days</label>
      ${refusal && html`<div class="notice bad" id="refusal" role="alert"><${Icon} name="alert" /><div>${refusal}</div></div>`}
      <button class="button main" disabled=${busy || !key.trim()}>Sign in</button>
    </form>
    <p>The gateway prints its first key once, at its first start. To make another one:<br />
      <code>penstock keys create --scope admin</code></p>
    <p><a href="/docs">Documentation</a></p>
  </div></main>`;
}
