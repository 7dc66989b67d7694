// Recordings: stored calls and their results, which replay gives back. Show, export, import, delete.

import { useData } from "../data.js";
import { ask } from "../gateway.js";
import { duration } from "../format.js";
import { Confirm, CopyButton, Dialog, Empty, Head, Loaded, Panel, Problem } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { Output } from "../parts/media.js";
import { KINDS, When } from "../parts/status.js";
import { Facts, Pager, Table, usePages } from "../parts/table.js";
import { pageUrl } from "../route.js";
import { html, useRef, useState } from "../view.js";

function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function readJson(file) {
  try {
    return JSON.parse(await file.text());
  } catch {
    throw new Error(`${file.name} is not valid JSON.`);
  }
}

function Recording({ recording, onClose }) {
  const loaded = useData((signal) => ask(`/v1/recordings/${recording.id}/export`, { signal }), [recording.id]);
  return html`<${Dialog} title="Recording" wide onClose=${onClose} footer=${html`<button type="button" class="button"
      onClick=${onClose}>Close</button>`}>
    <${Loaded} of=${loaded}>${(file) => html`
      <div class="outputs many" id="recorded">${file.files.map(({ content_type: type, data }, place) => html`<${Output} key=${place}
          type=${type} url=${`data:${type};base64,${data}`} alt=${file.request.prompt ?? "Recorded output"} />`)}</div>
      <${Facts} of=${[["Id", html`<code>
          ${recording.id}</code>`], ["Model", file.model], ["Provider", file.provider_name], ["Took", duration(file.duration_ms)],
        ["Request", recording.request_id && html`<a href=${pageUrl(`requests/${recording.request_id}`)}>${recording.request_id}</a>`],
        ...Object.entries(file.request).map(([name, value]) => [html`<code>
            ${name}</code>`, typeof value === "object" ? JSON.stringify(value) : String(value)])]} />
      <div class="row"><button type="button" class="button" onClick=${() => save(`${recording.id}.json`, JSON.stringify(file))}><${Icon}
          name="download" />Export</button>
        <${CopyButton} text=${`X-Service-Replay: replay-or-error\nX-Service-Replay-Match: pinned\nX-Service-Replay-Recording: ${recording.id}`} label="Copy replay headers" kind="" /></div>`}<//>
  <//>`;
}

export function Recordings() {
  const page = usePages("/v1/recordings", { limit: 20 });
  const [open, setOpen] = useState(null);
  const [problem, setProblem] = useState(null);
  const [done, setDone] = useState("");
  const chooser = useRef(null);
  const exported = (recording) => ask(`/v1/recordings/${recording.id}/export`).then((file) => save(`${recording.id}.json`, JSON.stringify(file)), setProblem);
  async function bring(files) {
    setProblem(null);
    setDone("");
    try {
      for (const file of files) await ask("/v1/recordings", { method: "POST", body: await readJson(file) });
      setDone(`${files.length} imported.`);
    } catch (fault) {
      setProblem(fault);
    }
    page.reload();
  }
  const columns = [
    { name: "When", kind: "nowrap", cell: ({ created_at: at }) => html`<${When} at=${at} />` },
    { name: "Kind", cell: ({ kind }) => KINDS[kind] ?? kind },
    { name: "Model", cell: ({ model }) => model },
    { name: "Prompt", kind: "words", cell: ({ request }) => html`<span class="clamp">${request?.prompt ?? ""}</span>` },
    { name: "Took", kind: "number", cell: ({ duration_ms: ms }) => duration(ms) },
    { name: "Actions", quiet: true, kind: "actions", cell: (recording) => html`<div class="row">
      <button type="button" class="button small show" aria-label=${`Show ${recording.id}`}
          onClick=${() => setOpen({ kind: "show", recording })}>Show</button>
      <button type="button" class="button small export" aria-label=${`Export ${recording.id}`}
          onClick=${() => exported(recording)}>Export</button>
      <button type="button" class="button small danger delete" aria-label=${`Delete ${recording.id}`}
          onClick=${() => setOpen({ kind: "delete", recording })}>Delete</button></div>` },
  ];
  return html`<div class="page">
    <${Head} title="Recordings" about="Recorded calls. Replays answer in milliseconds and cost nothing: ideal for tests.">
      <button type="button" class="button" onClick=${() => chooser.current.click()}>Import files</button>
      <input ref=${chooser} id="import" class="only-heard" tabindex="-1" type="file" accept="application/json,.json" multiple
          aria-label="Recording files" onChange=${(event) => { bring([...event.target.files]); event.target.value = ""; }} />
    <//>
    <${Problem} problem=${problem} />${done && html`<div class="notice good" role="status">${done}</div>`}
    <${Panel} label="Recordings" flush><${Loaded} of=${page}>${(data) => (data.data.length
      ? html`<${Table} label="Recordings" columns=${columns} rows=${data.data} rowKey=${({ id }) => id} /><${Pager} of=${page} />`
      : html`<${Empty} icon="tape" title="No recordings" action=${html`<a class="button" href="/docs/replay">How recordings work</a>`}>Send a call with the header <code>X-Service-Replay: record</code>, or give a key the replay mode <code>record</code>.<//>`)}<//><//>
    ${open?.kind === "show" && html`<${Recording} recording=${open.recording} onClose=${() => setOpen(null)} />`}
    ${open?.kind === "delete" && html`<${Confirm} title="Delete a recording" verb="Delete"
        question=${`Delete ${open.recording.id}? Its files are deleted too.`}
      action=${() => ask(`/v1/recordings/${open.recording.id}`, { method: "DELETE" })} onClose=${(yes) => { setOpen(null); if (yes) page.reload(); }} />`}
  </div>`;
}
