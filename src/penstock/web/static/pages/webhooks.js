// Webhooks: the signing secret.

import { ask } from "../gateway.js";
import { CopyButton, Head, Panel, Problem } from "../parts/controls.js";
import { html, useState } from "../view.js";

function Secret() {
  const [secret, setSecret] = useState(null);
  const [problem, setProblem] = useState(null);
  const run = (pending) => pending.then((answer) => { setSecret(answer); setProblem(null); }, setProblem);
  return html`<${Panel} title="Signing secret" about="Receivers check the header webhook-signature with it.">
    <div class="stack">
      ${secret && html`<div class="snippet"><pre id="secret" tabindex="0" aria-label="The secret">${secret.key}</pre><${CopyButton} text=${secret.key} /></div>`}
      <div class="row">
        ${secret
          ? html`<button type="button" class="button" id="hide-secret" onClick=${() => setSecret(null)}>Hide</button>`
          : html`<button type="button" class="button" id="show-secret" onClick=${() => run(ask("/v1/webhooks/secret"))}>Show the secret</button>`}
      </div>
      <${Problem} problem=${problem} />
    </div>
  <//>`;
}

export function Webhooks() {
  return html`<div class="page narrow">
    <${Head} title="Webhooks" about="Signed messages about finished videos and asynchronous images, to the webhook_url of each call." />
    <${Secret} />
  </div>`;
}
