// Says why something is paused, and goes on with it; if its budget is used up, with a larger one.

import { ask } from "../gateway.js";
import { html, useState } from "../view.js";
import { Problem, TextField } from "./controls.js";

export const REASONS = {
  caller: "by a caller",
  not_started: "not started yet",
  max_cost: "what comes next might cost more than is left of its budget",
  insufficient_balance: "the balance is used up",
  rate_limited: "a limit of dollars is reached",
  key_revoked: "its key was revoked",
};

// `paused` is a batch, or a trial with the id of its batch as `batch_id`.
export function Resume({ paused: { id, batch_id: batch = id, reason, max_cost: budget }, verb, onDone }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState(null);
  const needsMore = reason === "max_cost";
  async function resume(event) {
    event.preventDefault();
    const body = needsMore ? { max_cost: Number(text) } : {};
    await ask(`/v1/batches/${batch}/resume`, { method: "POST", body }).then(onDone, setProblem);
  }
  return html`<form class="stack" onSubmit=${resume}>
    ${needsMore && html`<${TextField} label="US dollars at most" name="budget" type="number" min=${budget} step="any" required value=${text}
        onInput=${setText} help="For all of it, with what it has cost so far." />`}
    <div class="row"><button class="button" id="resume">${verb}</button></div>
    <${Problem} problem=${problem} /></form>`;
}
