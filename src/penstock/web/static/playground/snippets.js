// A call as code that works as pasted: curl, Python with OpenAI's client, Node without any package.

import { CopyButton, Dialog } from "../parts/controls.js";
import { html, useState } from "../view.js";
import { soundNotes, soundSnippets } from "./sound_snippets.js";
import { TASKS } from "./tasks.js";

const ABOUT_SOUND = new Set(["speech", "sound", "music", "transcription"]);
const LONGEST_INLINE = 40_000; // characters of base64 that still fit into a snippet
const OPENAI_FIELDS = {
  image: ["model", "prompt", "n", "size", "quality", "style", "response_format", "output_format", "output_compression", "user"],
  edit: ["model", "prompt", "n", "size", "quality", "response_format", "output_format", "output_compression", "user"],
  chat: ["model", "messages", "temperature", "max_tokens", "top_p", "frequency_penalty", "presence_penalty", "stop", "tools",
    "tool_choice", "response_format", "seed", "user", "logprobs", "top_logprobs"],
};

const shell = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;
const pretty = (value, indent = "") => JSON.stringify(value, null, 2).replaceAll("\n", `\n${indent}`);

function python(value) {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, part]) => `${JSON.stringify(name)}: ${python(part)}`).join(", ")}}`;
  return JSON.stringify(value);
}

// The files of a call: where each comes from when the snippet runs.
function files(run) {
  const images = (run.inputs ?? []).map((input, place) => ({ name: `image-${place + 1}.png`, field: "image", input }));
  const mask = run.mask ? [{ name: "mask.png", field: "mask", input: { source: run.mask } }] : [];
  return [...images, ...mask].map(({ name, field, input }) => {
    const base64 = input.source?.startsWith("data:") ? input.source.split(",")[1] : null;
    if (input.url) return { name, field, url: input.url };
    if (base64 && base64.length <= LONGEST_INLINE) return { name, field, base64 };
    return { name: input.name ?? name, field, own: true };
  });
}

const parameters = ({ image, mask, input_reference: reference, ...rest }) => rest;

// The call itself; one for a video also waits for it and saves it.
function curlEnd(task, [first, ...options], authorization) {
  const call = [first, ...options].join(" \\\n");
  if (task !== "video") return call;
  const url = `"${location.origin}${TASKS.video.path}/$id`;
  return `video=$(${call.replace("curl ", "curl -s ")})
id=$(printf %s "$video" | sed -n 's/^{ *"id": *"\\([^"]*\\)".*/\\1/p')
if [ -z "$id" ]; then echo "$video"; else
  until curl -s ${url}"${authorization.slice(1)} | grep -qE '"status": *"(completed|failed)"'; do sleep 1; done
  curl -sf -o video.mp4 ${url}/content"${authorization.slice(1)} && echo "Saved video.mp4" ||
    curl -s ${url}"${authorization.slice(1)}
fi`;
}

function curl(task, body, given, key) {
  const authorization = `  -H ${shell(`Authorization: Bearer ${key}`)}`;
  const endpoint = location.origin + TASKS[task].path;
  const fetched = given.filter(({ own }) => !own).map(({ name, url, base64 }) => (url ? `curl -s -o ${name} ${shell(url)}` : `echo ${base64} | base64 -d > ${name}`));
  if (!given.length) {
    const json = pretty(task === "chat" ? { ...body, stream: true } : body, "  ");
    return curlEnd(task, [`curl ${endpoint}`, authorization, "  -H 'Content-Type: application/json'", `  -d ${shell(json)}`], authorization);
  }
  const field = task === "video" ? "input_reference" : given.filter((file) => file.field === "image").length > 1 ? "image[]" : "image";
  const forms = Object.entries(parameters(body)).map(([name, value]) => `  -F ${shell(`${name}=${typeof value === "object" ? JSON.stringify(value) : value}`)}`);
  const uploads = given.map((file) => `  -F ${shell(`${file.field === "mask" ? "mask" : field}=@${file.name}`)}`);
  return [...fetched, curlEnd(task, [`curl ${endpoint}`, authorization, ...forms, ...uploads], authorization)].join("\n");
}

function pythonRead({ name, url, base64 }) {
  if (url) return `urlopen(${JSON.stringify(url)}).read()`;
  return base64 ? `b64decode(${JSON.stringify(base64)})` : `Path(${JSON.stringify(name)}).read_bytes()`;
}

function pythonImports(given) {
  return [
    given.some(({ base64 }) => base64) && "from base64 import b64decode",
    given.some(({ own }) => own) && "from pathlib import Path",
    given.some(({ url }) => url) && "from urllib.request import urlopen",
  ].filter(Boolean);
}

function pythonCall(task, body, given, key) {
  if (task === "video") return pythonVideo(body, given, key);
  const known = OPENAI_FIELDS[task === "upscale" ? "edit" : task];
  const fields = task === "upscale" ? { ...parameters(body), prompt: "" } : parameters(body);
  const named = Object.entries(fields).filter(([name]) => known.includes(name)).map(([name, value]) => `    ${name}=${python(value)},`);
  const extra = Object.fromEntries(Object.entries(fields).filter(([name]) => !known.includes(name)));
  if (Object.keys(extra).length) named.push(`    extra_body=${python(extra)},`);
  const images = given.filter(({ field }) => field === "image").map((file) => `("${file.name}", ${pythonRead(file)})`);
  if (images.length) named.push(`    image=[${images.join(", ")}],`);
  const mask = given.find(({ field }) => field === "mask");
  if (mask) named.push(`    mask=("mask.png", ${pythonRead(mask)}),`);
  const imports = ["# pip install openai", ...pythonImports(given), "from openai import OpenAI"].join("\n");
  const client = `client = OpenAI(base_url="${location.origin}/compat/v1", api_key="${key}")`;
  if (task === "chat") {
    named.push("    stream=True,");
    return `${imports}\n\n${client}\nfor chunk in client.chat.completions.create(\n${named.join("\n")}\n):\n    if chunk.choices:\n        print(chunk.choices[0].delta.content or "", end="", flush=True)`;
  }
  const method = task === "image" ? "generate" : "edit";
  return `${imports}\n\n${client}\nresult = client.images.${method}(\n${named.join("\n")}\n)\nprint(result.data[0].url)`;
}

function pythonVideo(body, given, key) {
  const fields = parameters(body);
  const others = pythonImports(given).filter((line) => !line.includes("urlopen"));
  const imports = ["import json", "import time", given.length && "from base64 import b64encode", ...others, "from urllib.request import Request, urlopen"];
  const lines = Object.entries(fields).map(([name, value]) => `    ${JSON.stringify(name)}: ${python(value)},`);
  if (given.length) lines.push(`    "input_reference": {"image_url": "data:image/png;base64," + b64encode(${pythonRead(given[0])}).decode()},`);
  return `${imports.filter(Boolean).join("\n")}

def call(path, body=None):
    headers = {"Authorization": "Bearer ${key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request("${location.origin}${TASKS.video.path}" + path, data, headers), timeout=60) as response:
        return response.read()

video = json.loads(call("", {
${lines.join("\n")}
}))
while video["status"] in ("queued", "in_progress"):
    time.sleep(1)
    video = json.loads(call("/" + video["id"]))
if video["status"] == "completed":
    with open("video.mp4", "wb") as file:
        file.write(call(f"/{video['id']}/content"))
print(video["status"], video["error"] or video["output"]["url"])`;
}

function nodeRead({ name, url, base64 }) {
  if (url) return `Buffer.from(await (await fetch(${JSON.stringify(url)})).arrayBuffer()).toString("base64")`;
  return base64 ? JSON.stringify(base64) : `(await import("node:fs/promises").then((fs) => fs.readFile(${JSON.stringify(name)}))).toString("base64")`;
}

function node(task, body, given, key) {
  const lines = Object.entries(parameters(body)).map(([name, value]) => `    ${name}: ${pretty(value, "    ")},`);
  const images = given.filter(({ field }) => field === "image").map((file) => `"data:image/png;base64," + ${nodeRead(file)}`);
  if (images.length) lines.push(task === "video" ? `    input_reference: { image_url: ${images[0]} },` : `    image: [${images.join(", ")}],`);
  const mask = given.find(({ field }) => field === "mask");
  if (mask) lines.push(`    mask: "data:image/png;base64," + ${nodeRead(mask)},`);
  const call = `const headers = { Authorization: "Bearer ${key}", "Content-Type": "application/json" };
const response = await fetch("${location.origin}${TASKS[task].path}", {
  method: "POST",
  headers,
  body: JSON.stringify({
${lines.join("\n")}
  }),
});
`;
  if (task === "video") return `${call}let video = await response.json();
while (["queued", "in_progress"].includes(video.status)) {
  await new Promise((resolve) => setTimeout(resolve, 1000));
  video = await (await fetch(\`${location.origin}/compat/v1/videos/\${video.id}\`, { headers })).json();
}
if (video.output) {
  const file = await (await fetch(video.output.url)).arrayBuffer();
  await (await import("node:fs/promises")).writeFile("video.mp4", Buffer.from(file));
}
console.log(video.output?.url ?? video.error);`;
  const show = task === "chat" ? "result.choices?.[0].message.content ?? result.error" : "result.data?.[0].url ?? result.error";
  return `${call}const result = await response.json();\nconsole.log(${show});`;
}

export function snippets(task, body, run, key) {
  if (ABOUT_SOUND.has(task)) return soundSnippets(task, body, run, key, { shell, pretty, python });
  const given = files(run);
  return { curl: curl(task, body, given, key), Python: pythonCall(task, body, given, key), Node: node(task, body, given, key), own: given.filter(({ own }) => own).map(({ name }) => name) };
}

const NOTES = { curl: "", Python: "Needs: pip install openai", Node: "Node 18 or newer; save it as run.mjs" };
const NOTES_OF_VIDEOS = { curl: "Saves video.mp4", Python: "Saves video.mp4; needs no package", Node: "Saves video.mp4. Node 18 or newer; save it as run.mjs" };

export function CodeDialog({ task, lanes, run, onClose }) {
  const [language, setLanguage] = useState("curl");
  const [place, setPlace] = useState(0);
  const shown = snippets(task, lanes[place].body, run, "YOUR_KEY");
  return html`<${Dialog} title="The call as code" wide onClose=${onClose}>
    <div class="row ends">
      <div class="tabs" role="group" aria-label="Language">${Object.keys(NOTES).map((name) => html`
        <button type="button" key=${name} aria-pressed=${String(name === language)} onClick=${() => setLanguage(name)}>${name}</button>`)}</div>
      ${lanes.length > 1 && html`<select class="narrow" aria-label="Model" onChange=${(event) => setPlace(Number(event.target.value))}>
        ${lanes.map(({ model }, number) => html`<option key=${model} value=${number}>${model}</option>`)}</select>`}
    </div>
    <div class="snippet"><pre tabindex="0" aria-label=${`${language} code`} id="code">${shown[language]}</pre><${CopyButton} text=${shown[language]} /></div>
    <div class="row ends small soft">
      <span>Replace <code>YOUR_KEY</code> with one of your keys.</span>
      <span>${[(ABOUT_SOUND.has(task) ? soundNotes(task) : task === "video" ? NOTES_OF_VIDEOS : NOTES)[language], shown.own.length && `Needs ${shown.own.join(", ")} in the current folder.`].filter(Boolean).join(". ")}</span>
    </div>
  <//>`;
}
