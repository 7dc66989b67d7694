// Recordings: what can be replayed, one looked at, carried away, brought in or deleted.

import { ask, explain } from "./gateway.js";
import { Pages, at, button, element, fill, moment, row, say, show, sure, took } from "./paint.js";

const MOST_PROMPT_CHARS = 80;
let looked = ""; // at what, last

export function recordings(refresh) {
  const pages = new Pages(() => "/v1/recordings?limit=20", at("recordings-newer"), at("recordings-older"), refresh);
  at("bring").addEventListener("click", () => at("brought").click());
  at("brought").addEventListener("change", async () => {
    await bring([...at("brought").files]);
    at("brought").value = "";
    pages.restart();
    refresh();
  });

  async function remove(one) {
    if (!(await sure(`Delete ${one.id}, a recording of ${one.model}, and what it made? That is final.`, "Delete"))) return;
    await tried(async () => {
      await ask(`/v1/recordings/${one.id}`, { method: "DELETE" });
      return `${one.id} is deleted.`;
    });
    refresh();
  }

  return {
    load: () => pages.read(ask),

    paint(list) {
      pages.seen(list);
      at("no-recordings").hidden = list.data.length > 0;
      fill(at("recordings-list"), list.data.map((one) => row(
        [moment(one.created_at)], [one.model, "words"], [one.kind], [shortened(one.request.prompt), "quiet words long"],
        [took(one.duration_ms), "number"], [button(one.id, () => look(one), { of: one.id })],
        [[
          button("Save", () => save(one), { of: one.id, label: `Save ${one.id} as a file` }),
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
  return text.length > MOST_PROMPT_CHARS ? `${text.slice(0, MOST_PROMPT_CHARS)}…` : text;
}

async function tried(act) {
  try {
    say("recordings-said", await act());
  } catch (problem) {
    say("recordings-said", problem instanceof SyntaxError ? "That file is not JSON." : explain(problem), { bad: true });
  }
}

const whole = (one) => ask(`/v1/recordings/${one.id}/export`);

function look(one) {
  return tried(async () => {
    looked = one.id;
    show(await ask(`/v1/recordings/${one.id}`));
    if (one.kind === "video") return ""; // large, and the policy of this page plays nothing
    const { files, ...rest } = await whole(one);
    const pictures = files.filter((file) => /^image\/[a-z]+$/.test(file.content_type));
    if (!at("detail").open || looked !== one.id) return ""; // closed in the meantime
    show(
      { ...one, ...rest, files: files.map(({ data, ...file }) => ({ ...file, size_bytes: atob(data).length })) },
      pictures.map((file) => element("img", "", { src: `data:${file.content_type};base64,${file.data}`, alt: "What was made" })),
    );
    return "";
  });
}

function save(one) {
  return tried(async () => {
    const file = new Blob([JSON.stringify(await whole(one), null, 2)], { type: "application/json" });
    const address = URL.createObjectURL(file);
    element("a", "", { href: address, download: `${one.id}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000); // when it has surely been read
    return `${one.id} is saved.`;
  });
}

function bring(files) {
  return tried(async () => {
    const ids = [];
    for (const file of files) {
      const made = await ask("/v1/recordings", { method: "POST", body: JSON.parse(await file.text()) });
      ids.push(made.id);
    }
    return `Brought in: ${ids.join(", ")}.`;
  });
}
