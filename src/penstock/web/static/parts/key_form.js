// What shows and changes a key: its form, the new key, its limits and what it spent.

import { day, money } from "../format.js";
import { html, useState } from "../view.js";
import { CopyButton, Dialog, Problem, SelectField, TextField } from "./controls.js";

const MODES = ["off", "record", "replay-or-record", "replay-or-live", "replay-or-error", "replay-or-mock", "mock"];
const NUMBERS = {
  requests_per_minute: ["Requests per minute", { min: 1, step: 1 }],
  concurrent_requests: ["Concurrent requests", { min: 1, step: 1 }],
  usd_per_day: ["US dollars per day", { min: 0, step: "any" }],
  usd_per_month: ["US dollars per month", { min: 0, step: "any" }],
};
const GRANTS = [["admin", "May manage keys (admin)"], ["faults", "May ask for faults in its own calls (faults)"]];
const lines = (text) => text.split(/[\s,]+/).filter(Boolean);

// The fields of a key as the form has them: texts.
export function asTexts(key) {
  const numbers = Object.keys(NUMBERS).map((name) => [name, key[name]?.toString() ?? ""]);
  return {
    ...Object.fromEntries(numbers),
    name: key.name ?? "",
    models: (key.models ?? []).join(" "),
    replay_mode: key.replay_mode ?? "",
    image_response_format: key.image_response_format ?? "",
    expires_at: key.expires_at?.slice(0, 10) ?? "",
  };
}

// Only what differs from `before` is sent; what was emptied becomes null.
function difference(before, after) {
  const changed = Object.keys(after).filter((name) => after[name].trim() !== before[name].trim());
  return Object.fromEntries(changed.map((name) => {
    const text = after[name].trim();
    if (!text) return [name, null];
    if (NUMBERS[name]) return [name, Number(text)];
    if (name === "models") return [name, lines(text)];
    return [name, name === "expires_at" ? `${text}T00:00:00Z` : text];
  }));
}

// With `isNew`, only what has a value is sent; with `mayManage`, the key may be given scopes. `bounds` are the limits of
// the organization, which count where the form says nothing.
export function KeyForm({ title, verb, before, isNew, mayManage, bounds, onSave, onClose }) {
  const [texts, setTexts] = useState(before);
  const [scopes, setScopes] = useState([]);
  const [state, setState] = useState({ busy: false, problem: null });
  const set = (name) => (text) => setTexts({ ...texts, [name]: text });
  const wrong = (name) => (state.problem?.param === name ? state.problem.message : undefined);
  async function save(event) {
    event.preventDefault();
    setState({ busy: true, problem: null });
    try {
      const body = difference(before, texts);
      const present = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
      await onSave(isNew ? { ...present, ...(scopes.length && { scopes }) } : body);
    } catch (problem) {
      setState({ busy: false, problem });
    }
  }
  const footer = html`<button type="button" class="button" onClick=${onClose}>Cancel</button>
    <button class="button main" form="key-form" id="save-key" disabled=${state.busy}>${verb}</button>`;
  return html`<${Dialog} title=${title} onClose=${onClose} footer=${footer}>
    <form id="key-form" class="stack" onSubmit=${save}>
      <${TextField} label="Name" type="text" value=${texts.name} onInput=${set("name")} wrong=${wrong("name")} maxlength="200"
          placeholder="Which program uses it" />
      <div class="fields">${Object.entries(NUMBERS).map(([name, [label, limits]]) => html`<${TextField} key=${name} label=${label}
          type="number" ...${limits}
        value=${texts[name]} onInput=${set(name)} wrong=${wrong(name)} placeholder=${bounds?.[name] ? `At most ${bounds[name]}` : "No limit"} />`)}</div>
      <div class="field"><${TextField} label="Expires" type="date" value=${texts.expires_at} onInput=${set("expires_at")}
          wrong=${wrong("expires_at")} help=${bounds ? `Expires at 00:00 UTC on this date, or in ${bounds.days} days if empty.`
            : "Expires at 00:00 UTC on this date. Leave empty for never."} /></div>
      <${TextField} label="Allowed models" type="text" value=${texts.models} onInput=${set("models")} wrong=${wrong("models")}
          placeholder=${bounds?.models?.join(" ") ?? "All"} spellcheck="false"
        help="Model IDs separated by spaces. openai/* allows every model starting with openai/." />
      <${SelectField} label="Replay mode" value=${texts.replay_mode} onInput=${set("replay_mode")} wrong=${wrong("replay_mode")}
        options=${[["", "None"], ...MODES.map((mode) => [mode, mode])]} help="Used when a call doesn't set its own." />
      <${SelectField} label="Images are returned as" value=${texts.image_response_format} onInput=${set("image_response_format")}
        wrong=${wrong("image_response_format")} options=${[["", "The gateway's default"], ["url", "url"], ["b64_json", "b64_json"]]}
        help="Used when a call names no response_format. Some clients can only read b64_json." />
      ${mayManage && GRANTS.map(([scope, label]) => html`<label key=${scope} class="check"><input type="checkbox" id=${`key-${scope}`}
          checked=${scopes.includes(scope)} onChange=${() => setScopes(scopes.includes(scope) ? scopes.filter((each) => each !== scope)
            : [...scopes, scope])} />${label}</label>`)}
      ${state.problem && !state.problem.param && html`<${Problem} problem=${state.problem} />`}
    </form>
  <//>`;
}

export function NewKey({ made, onClose }) {
  return html`<${Dialog} title="Your new key" onClose=${onClose} footer=${html`<button type="button" class="button main"
      onClick=${onClose}>Done</button>`}>
    <p>Copy it now. It is shown only once and cannot be read again.</p>
    <div class="snippet"><pre id="made-key" tabindex="0" aria-label="The key">${made.key}</pre><${CopyButton} text=${made.key} /></div>
  <//>`;
}

export function Spend({ spent, limit, period }) {
  if (spent === undefined || spent === null) return null;
  const share = limit ? Math.min(1, spent / limit) : 0;
  const colour = share >= 1 ? "bad" : share >= 0.8 ? "warn" : "";
  return html`<div class="spend"><span class="figures nowrap">${money(spent)}${limit ? ` of ${money(limit)}` : ""} <span class="soft">
      ${period}</span></span>
    ${limit ? html`<div class=${`meter ${colour}`} role="img" aria-label=${`${Math.round(share * 100)} % of the budget`}><span
        style=${{ width: `${share * 100}%` }}></span></div>` : null}</div>`;
}

export function limitsOf(key) {
  return [
    key.requests_per_minute && `${key.requests_per_minute} per minute`,
    key.usd_per_day !== null && `${money(key.usd_per_day)} a day`,
    key.usd_per_month !== null && `${money(key.usd_per_month)} a month`,
    key.concurrent_requests && `${key.concurrent_requests} at once`,
    key.models?.length && `only ${key.models.join(", ")}`,
    key.replay_mode && key.replay_mode !== "off" && `replay: ${key.replay_mode}`,
    key.expires_at && `expires ${day(key.expires_at)}`,
  ].filter(Boolean);
}

export const named = ({ name, last_four: four }) => `${name || "the key without a name"} (…${four})`;
