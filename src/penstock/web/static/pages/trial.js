// One trial: how far it is, what each model cost and won, the link by which people vote, and the verdict.

import { useData } from "../data.js";
import { count, duration, moment, money, percent, plural } from "../format.js";
import { ask } from "../gateway.js";
import { Confirm, CopyButton, Dialog, Head, Loaded, Panel, Problem, SelectField, TextField } from "../parts/controls.js";
import { REASONS, Resume } from "../parts/resume.js";
import { KINDS, Status } from "../parts/status.js";
import { Facts, Table } from "../parts/table.js";
import { go, pageUrl } from "../route.js";
import { html, useState } from "../view.js";
import { Outputs } from "./trial_outputs.js";

const REFRESH_MS = 2000;
const rate = (value) => (value === null ? "–" : value >= 100 ? count(Math.round(value)) : value.toPrecision(3));

// The win rate on a line from 0 to 100 %, with its interval.
function Rate({ of: { win_rate: rate_, win_rate_low: low, win_rate_high: high, model } }) {
  if (rate_ === null) return html`<span class="soft">No votes</span>`;
  const words = `${percent(rate_)}, between ${percent(low)} and ${percent(high)}`;
  return html`<div class="stack tight"><span class="figures nowrap" title=${words}>${percent(rate_)} <span class="soft small">${percent(low)} – ${percent(high)}</span></span>
    <div class="interval" role="img" aria-label=${`Win rate of ${model}: ${words}`}><span style=${{ left: `${100 * low}%`, width: `${100 * (high - low)}%` }}></span>
      <i style=${{ left: `${100 * rate_}%` }}></i></div></div>`;
}

function columns(onUse) {
  return [
    { name: "Model", kind: "words lead", cell: ({ model }) => html`<span class="medium anywhere">${model}</span>` },
    { name: "Win rate", kind: "words", cell: (row) => html`<${Rate} of=${row} />` },
    { name: "Won", kind: "number", cell: ({ wins }) => count(wins) },
    { name: "Lost", kind: "number", cell: ({ losses }) => count(losses) },
    { name: "Ties", kind: "number", cell: ({ ties }) => count(ties) },
    { name: "Each", kind: "number", cell: ({ cost_per_output: each }) => (each === null ? "–" : money(each)) },
    { name: "Takes", kind: "number", cell: ({ seconds }) => (seconds === null ? "–" : duration(seconds * 1000)) },
    { name: "Failed", kind: "number", cell: ({ failed }) => (failed ? count(failed) : "") },
    { name: "Wins per $", kind: "number", cell: (row) => rate(row.wins_per_dollar) },
    { name: "Wins per s", kind: "number", cell: (row) => rate(row.wins_per_second) },
    ...(onUse ? [{ name: "Use", quiet: true, kind: "actions", cell: ({ model, completed }) => completed > 0 && html`<button type="button" class="button small use"
        aria-label=${`Use ${model}`} onClick=${() => onUse(model)}>Use</button>` }] : []),
  ];
}

function Progress({ trial, onResume }) {
  const { counts, status, reason, batch_id: batch, estimated_cost: estimate, cost } = trial;
  const ended = counts.completed + counts.failed;
  const label = `${count(ended)} of ${count(counts.total)} outputs`;
  return html`<div class="stack"><div class="row ends"><span class="figures">${label}${counts.failed ? `, ${count(counts.failed)} failed` : ""}</span>
      <span class="figures soft">${money(cost)} of about ${money(estimate)}</span></div>
    <progress value=${ended} max=${counts.total} aria-label=${label} />
    ${status === "paused" && html`<div class="row"><span>Paused: ${REASONS[reason] ?? reason}.</span><a class="small"
        href=${pageUrl("batches")}>Its batch is ${batch.slice(0, 14)}…</a></div><${Resume} paused=${trial} verb="Go on" onDone=${onResume} />`}</div>`;
}

function Link({ trial, onChange }) {
  const [made, setMade] = useState(null);
  const [shows, setShows] = useState(true);
  const [problem, setProblem] = useState(null);
  const path = `/v1/trials/${trial.id}/link`;
  const act = (work) => work().then(() => { setProblem(null); onChange(); }, setProblem);
  const make = () => act(async () => setMade(await ask(path, { method: "POST", body: { show_prompts: shows } })));
  const revoke = () => act(async () => { await ask(path, { method: "DELETE" }); setMade(null); });
  return html`<${Panel} title="Votes" about="Whoever has the link sees two outputs side by side, without a word about the models, and needs no key."><div class="stack">
    <${Facts} of=${[["Votes", count(trial.votes)], ["Voters", count(trial.voters)], ["Link", trial.link ? `works until ${moment(trial.link.expires_at)}` : "none"]]} />
    ${made && html`<div class="snippet"><pre tabindex="0" id="vote-link" aria-label="Link to vote">${made.url}</pre><${CopyButton} text=${made.url} /></div>
      <p class="soft small">It is shown only now.</p>`}
    <label class="check"><input type="checkbox" checked=${shows} onChange=${(event) => setShows(event.target.checked)} />Voters see the prompts</label>
    <div class="row"><button type="button" class="button" id="make-link" onClick=${make}>${trial.link ? "Replace the link" : "Make a link"}</button>
      ${trial.link && html`<button type="button" class="button" id="revoke-link" onClick=${revoke}>Revoke it</button>`}</div>
    <${Problem} problem=${problem} /></div><//>`;
}

function Saving({ of: { requests, spent, expected, saves, replaces, win_rate: won, alias, model } }) {
  if (expected === null) return null;
  const money_ = saves >= 0 ? `saves ${money(saves)} a month` : `costs ${money(-saves)} a month more`;
  return html`<p id="saving">${requests === 0 ? `No call of the last 30 days asked for ${replaces ?? alias}.` : html`At the traffic of the last 30 days this <strong>${money_}</strong>:
    ${" "}${plural(requests, "call")} cost ${money(spent)} and would have cost ${money(expected)}.`}
    ${won !== null && ` Against ${replaces}, ${model} wins ${percent(won)}.`}</p>`;
}

const OTHER = "";

function Verdict({ trial, model, onClose, onDone }) {
  const others = trial.models.filter((each) => each !== model);
  const [chosen, setChosen] = useState(others[0]);
  const [name, setName] = useState("");
  const [state, setState] = useState({ busy: false, problem: null });
  const alias = chosen === OTHER ? name.trim() : chosen;
  const path = `/v1/trials/${trial.id}/verdict`;
  const seen = useData(async () => (alias ? ask(`${path}?dryRun=true`, { method: "POST", body: { model, alias } }) : null), [alias]);
  async function decide(event) {
    event.preventDefault();
    setState({ busy: true, problem: null });
    await ask(path, { method: "POST", body: { model, alias } }).then(onDone, (problem) => setState({ busy: false, problem }));
  }
  const footer = html`<button type="button" class="button" onClick=${onClose}>Cancel</button>
    <button class="button main" id="decide" form="verdict-form" disabled=${state.busy || !alias}>Use ${model}</button>`;
  return html`<${Dialog} title=${`Use ${model}`} onClose=${onClose} footer=${footer}><form id="verdict-form" class="stack" onSubmit=${decide}>
    <${SelectField} label="For calls that ask for" value=${chosen} onInput=${setChosen} options=${[...others.map((each) => [each, each]), [OTHER, "Another name"]]} />
    ${chosen === OTHER && html`<${TextField} label="Name" name="alias" required maxlength="128" value=${name} onInput=${setName} help="A model, or a new name such as hero-image." />`}
    ${seen.data && html`<${Saving} of=${seen.data} />`}
    <p class="soft small">Calls of your organization for this name get ${model} from now on. An admin can take it back under Aliases.</p>
    <${Problem} problem=${state.problem ?? (alias ? seen.problem : null)} /></form><//>`;
}

// The names that stand for models; also those of other trials.
function Aliases({ isAdmin, round, onChange }) {
  const loaded = useData((signal) => ask("/v1/aliases", { signal }), [round]);
  const [problem, setProblem] = useState(null);
  const remove = (name) => ask(`/v1/aliases/${name.split("/").map(encodeURIComponent).join("/")}`, { method: "DELETE" }).then(onChange, setProblem);
  if (!loaded.data?.data.length) return null;
  const shown = [{ name: "Calls for", kind: "words lead", cell: ({ name }) => html`<span class="medium anywhere">${name}</span>` },
    { name: "Get", kind: "words", cell: ({ model }) => model },
    ...(isAdmin ? [{ name: "Actions", quiet: true, kind: "actions", cell: ({ name }) => html`<button type="button" class="button small" aria-label=${`Remove ${name}`}
        onClick=${() => remove(name)}>Remove</button>` }] : [])];
  return html`<${Panel} title="Aliases" about="What calls of your organization ask for, and what they get." flush>
    <${Table} label="Aliases" columns=${shown} rows=${loaded.data.data} rowKey=${({ name }) => name} /><${Problem} problem=${problem} /><//>`;
}

export function Trial({ id, own }) {
  const loaded = useData((signal) => ask(`/v1/trials/${id}`, { signal }), [id], { every: REFRESH_MS });
  const [using, setUsing] = useState(null);
  const [deleting, setDeleting] = useState(false);
  const [round, setRound] = useState(0);
  const isAdmin = own.scopes.includes("admin");
  const changed = () => { setUsing(null); setRound((last) => last + 1); loaded.reload(); };
  const trial = loaded.data;
  return html`<div class="page">
    <${Head} title=${trial?.name ?? "Trial"} back=${{ href: pageUrl("trials"), label: "Trials" }}
        about=${trial && `${plural(trial.prompts, "prompt")} with ${count(trial.models.length)} models`}>
      <button type="button" class="button" onClick=${() => setDeleting(true)}>Delete</button><//>
    <${Loaded} of=${loaded}>${(data) => html`
      <${Panel} title=${KINDS[data.kind]} aside=${html`<${Status} of=${data.status} />`}><div class="stack"><${Progress} trial=${data} onResume=${changed} />
        ${data.verdict && html`<p id="verdict">Decided ${moment(data.verdict.at)}: calls for <strong>${data.verdict.alias}</strong> get <strong>${data.verdict.model}</strong>.</p>`}</div><//>
      <${Panel} title="Results" label="Results" flush><${Table} label="Results" columns=${columns(isAdmin ? setUsing : null)} rows=${data.results} rowKey=${({ model }) => model} /><//>
      <${Link} trial=${data} onChange=${loaded.reload} />
      <${Outputs} trial=${data} />
      <${Aliases} isAdmin=${isAdmin} round=${round} onChange=${changed} />`}<//>
    <p class="soft"><a href="/docs/trials">How trials work</a></p>
    ${using && html`<${Verdict} key=${using} trial=${trial} model=${using} onClose=${() => setUsing(null)} onDone=${changed} />`}
    ${deleting && html`<${Confirm} title="Delete the trial" verb="Delete" question="The trial and its votes are deleted. What was made and charged stays."
        action=${() => ask(`/v1/trials/${id}`, { method: "DELETE" })} onClose=${(done) => { setDeleting(false); if (done) go("trials"); }} />`}
  </div>`;
}
