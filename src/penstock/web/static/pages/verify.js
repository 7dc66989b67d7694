// Verify a file: where it comes from, by its Content Credentials and by what this gateway delivered.

import { ask } from "../gateway.js";
import { Head, Loading, Panel, Problem } from "../parts/controls.js";
import { sourceType } from "../parts/credentials.js";
import { Icon } from "../parts/icons.js";
import { Facts, Table } from "../parts/table.js";
import { pageUrl } from "../route.js";
import { html, useRef, useState } from "../view.js";

const VERDICTS = {
  made_here: ["Made here", "good"],
  tampered: ["Changed after signing", "bad"],
  ai_marked: ["Marked as made by a model", "warn"],
  signed: ["Signed", "good"],
  none: ["No credentials", ""],
};
const UNTRUSTED = "signingCredential.untrusted"; // said in words
const STATES = { Trusted: "Holds, on the trust list", Valid: "Holds, not on the trust list", Invalid: "Does not hold" };
const ROLES = { inputTo: "An input", parentOf: "The file before", componentOf: "A part of it" };
const DONE = { created: "made", opened: "opened", converted: "converted", edited: "edited", placed: "put together" };
const CHAIN = [
  { name: "File", kind: "words", cell: ({ relationship }) => (relationship ? ROLES[relationship] ?? relationship : "This file") },
  { name: "Done", kind: "words", cell: ({ actions }) => actions.map((action) => DONE[action.replace("c2pa.", "")] ?? action).join(", ") },
  { name: "Signed by", cell: ({ signer }) => signer ?? "unknown" },
  { name: "Made with", kind: "words", cell: ({ model }) => model ?? "" },
  { name: "Signature", kind: "words", cell: ({ state }) => STATES[state] ?? state },
  { name: "Origin", kind: "words", cell: ({ digital_source_type: type }) => sourceType(type) ?? "" },
];

function Found({ name, found }) {
  const [words, colour] = VERDICTS[found.verdict] ?? [found.verdict, ""];
  const { credentials, marks } = found;
  return html`<${Panel} title=${name} aside=${html`<span class=${`chip ${colour}`} id="verdict"><span class="dot"></span>${words}</span>`}>
    <div class="stack"><p>${found.explanation}</p>
      <${Facts} of=${[
        ["Request", found.request_id && html`<a href=${pageUrl(`requests/${found.request_id}`)}>${found.request_id}</a>`],
        ["Signed by", credentials?.signer], ["Type", found.content_type], ["Marked as", sourceType(marks.digital_source_type)],
        ["Trusted", credentials && (credentials.trusted ? "Yes" : "Not on the trust list")],
        ["Problems", credentials?.problems?.filter((code) => code !== UNTRUSTED).join(", ")], ["SHA-256", html`<code class="anywhere small">${found.sha256}</code>`]]} />
    </div>
  <//>
  ${credentials?.chain?.length > 0 && html`<${Panel} title="History" about="What each signature in the file says, the newest first." flush>
    <${Table} label="History of the file, newest first" columns=${CHAIN} rows=${credentials.chain} /><//>`}`;
}

// `at`: the path that takes the file; another one needs no key and names no requests.
export function Verify({ at = "/v1/verify" }) {
  const [state, setState] = useState({ busy: false, name: "", found: null, problem: null });
  const [over, setOver] = useState(false);
  const chooser = useRef(null);
  async function verify(file) {
    if (!file) return;
    setState({ busy: true, name: file.name, found: null, problem: null });
    try {
      const body = new FormData();
      body.append("file", file);
      setState({ busy: false, name: file.name, found: await ask(at, { method: "POST", body }), problem: null });
    } catch (problem) {
      setState({ busy: false, name: file.name, found: null, problem });
    }
  }
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    verify(event.dataTransfer.files[0]);
  };
  return html`<div class="page">
    <${Head} title="Verify" about="Find out where an image or video came from." />
    <div class=${`drop ${over ? "over" : ""}`} onDragOver=${(event) => { event.preventDefault(); setOver(true); }}
        onDragLeave=${() => setOver(false)} onDrop=${drop}>
      <p class="soft">Drop a file here. It is checked, but not stored.</p>
      <button type="button" class="button" onClick=${() => chooser.current.click()}><${Icon} name="seal" />Choose a file</button>
      <input ref=${chooser} class="only-heard" type="file" tabindex="-1" aria-label="File to verify"
          onChange=${(event) => { verify(event.target.files[0]); event.target.value = ""; }} />
    </div>
    ${state.busy && html`<${Loading} what="Verifying" />`}
    <${Problem} problem=${state.problem} />
    ${state.found && html`<${Found} name=${state.name} found=${state.found} />`}
  </div>`;
}
