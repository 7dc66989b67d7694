// The page of recordings: list, show, export, import, delete.

import { ask, explain } from "./gateway.js";
import { Pages, at, button, element, fill, moment, row, say, show, sure, took } from "./paint.js";

const MAX_PROMPT_CHARS = 80;
let shownId = ""; // id of the recording that was opened last

export function recordings(refresh) {
  const pages = new Pages(() => "/v1/recordings?limit=20", at("recordings-newer"), at("recordings-older"), refresh);
  at("bring").addEventListener("click", () => at("brought").click());
  at("brought").addEventListener("change", async () => {
    await importFiles([...at("brought").files]);
    at("brought").value = "";
    pages.restart();
    refresh();
  });

  async function remove(one) {
    if (!(await sure(`Delete recording ${one.id} of ${one.model} and its files? This cannot be undone.`, "Delete"))) return;
    await report(async () => {
      await ask(`/v1/recordings/${one.id}`, { method: "DELETE" });
      return `Deleted ${one.id}.`;
    });
    refresh();
  }

  return {
    load: () => pages.read(ask),

    paint(list) {
      pages.seen(list);
      at("no-recordings").hidden = list.data.length > 0;
      fill(at("recordings-list"), list.data.map((one) => row(
        [moment(one.created_at)], [one.model, "words"], [one.kind], [shortened(one.request?.prompt), "quiet words long"],
        [took(one.duration_ms), "number"], [button(one.id, () => look(one), { of: one.id })],
        [[
          button("Export", () => save(one), { of: one.id, label: `Export ${one.id} to a file` }),
          button("Delete", () => remove(one), { of: one.id, kind: "bad", label: `Delete ${one.id}` }),
        ]],
      )));
    },

    clear() {
      pages.restart();
      at("recordings-list").replaceChildren();
      say("recordings-said", "");
    },
  };
}

function shortened(prompt) {
  const text = typeof prompt === "string" ? prompt : "";
  return text.length > MAX_PROMPT_CHARS ? `${text.slice(0, MAX_PROMPT_CHARS)}…` : text;
}

async function report(act) {
  try {
    say("recordings-said", await act());
  } catch (problem) {
    say("recordings-said", problem instanceof SyntaxError ? "The file is not valid JSON." : explain(problem), { bad: true });
  }
}

const exported = (one) => ask(`/v1/recordings/${one.id}/export`);

function look(one) {
  return report(async () => {
    shownId = one.id;
    show(await ask(`/v1/recordings/${one.id}`));
    if (one.kind === "video") return ""; // videos are large, and the security policy of this page allows none
    const { files, ...rest } = await exported(one);
    const pictures = files.filter((file) => /^image\/[a-z]+$/.test(file.content_type));
    if (!at("detail").open || shownId !== one.id) return ""; // the dialog was closed meanwhile
    show(
      { ...one, ...rest, files: files.map(({ data, ...file }) => ({ ...file, size_bytes: atob(data).length })) },
      pictures.map((file) => element("img", "", { src: `data:${file.content_type};base64,${file.data}`, alt: "Output" })),
    );
    return "";
  });
}

function save(one) {
  return report(async () => {
    const file = new Blob([JSON.stringify(await exported(one), null, 2)], { type: "application/json" });
    const url = URL.createObjectURL(file);
    element("a", "", { href: url, download: `${one.id}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000); // long after it has been read
    return `Exported ${one.id}.`;
  });
}

function importFiles(files) {
  return report(async () => {
    const ids = [];
    for (const file of files) {
      const made = await ask("/v1/recordings", { method: "POST", body: JSON.parse(await file.text()) });
      ids.push(made.id);
    }
    return `Imported: ${ids.join(", ")}.`;
  });
}
