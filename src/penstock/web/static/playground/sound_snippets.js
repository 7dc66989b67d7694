// A call about sound as code that works as pasted: curl, Python, Node without any package.

import { TASKS } from "./tasks.js";

const ENDINGS = { opus: "ogg" };
const SPEECH_FIELDS = ["model", "input", "voice", "instructions", "response_format", "speed"];
const LISTEN_FIELDS = ["model", "language", "prompt", "response_format", "temperature", "timestamp_granularities"];

const endingOf = ({ response_format: one, output_format: other }) => {
  const format = one ?? other ?? "mp3";
  return ENDINGS[format] ?? format;
};
const fileOf = (task, body) => `${task}.${endingOf(body)}`;

function curl({ task, body, sound, key, shell, pretty }) {
  const call = [`curl ${location.origin}${TASKS[task].path}`, `  -H ${shell(`Authorization: Bearer ${key}`)}`];
  if (task === "transcription") {
    const fields = Object.entries(body).map(([name, value]) => `  -F ${shell(`${name}=${typeof value === "object" ? JSON.stringify(value) : value}`)}`);
    return [...call, ...fields, `  -F ${shell(`file=@${sound}`)}`].join(" \\\n");
  }
  const json = ["  -H 'Content-Type: application/json'", `  -d ${shell(pretty(body, "  "))}`];
  if (task === "speech") return [...call, ...json, `  -o ${fileOf(task, body)}`].join(" \\\n");
  return [...call, "  -H 'Prefer: wait=60'", ...json].join(" \\\n");
}

function pythonCall({ task, body, sound, key, python }) {
  const known = task === "speech" ? SPEECH_FIELDS : LISTEN_FIELDS;
  const named = Object.entries(body).filter(([name]) => known.includes(name)).map(([name, value]) => `    ${name}=${python(value)},`);
  const extra = Object.fromEntries(Object.entries(body).filter(([name]) => !known.includes(name)));
  if (task === "speech" && !body.voice) named.push('    voice="alloy",');
  if (Object.keys(extra).length) named.push(`    extra_body=${python(extra)},`);
  const client = `# pip install openai
from openai import OpenAI

client = OpenAI(base_url="${location.origin}/compat/v1", api_key="${key}")`;
  if (task === "speech") {
    return `${client}
with client.audio.speech.with_streaming_response.create(
${named.join("\n")}
) as response:
    response.stream_to_file("${fileOf(task, body)}")`;
  }
  return `${client}
result = client.audio.transcriptions.create(
    file=open(${JSON.stringify(sound)}, "rb"),
${named.join("\n")}
)
print(getattr(result, "text", result))`;
}

function pythonSound({ task, body, key, python }) {
  const lines = Object.entries(body).map(([name, value]) => `    ${JSON.stringify(name)}: ${python(value)},`);
  return `import json
import time
from urllib.request import Request, urlopen

def call(path, body=None):
    headers = {"Authorization": "Bearer ${key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request("${location.origin}${TASKS[task].path}" + path, data, headers), timeout=60) as response:
        return response.read()

sound = json.loads(call("", {
${lines.join("\n")}
}))
while sound["status"] in ("queued", "in_progress"):
    time.sleep(1)
    sound = json.loads(call("/" + sound["id"]))
if sound["status"] == "completed":
    with open("${fileOf(task, body)}", "wb") as file:
        file.write(call(f"/{sound['id']}/content"))
print(sound["status"], sound["error"] or sound["output"]["url"])`;
}

function node({ task, body, sound, key, pretty }) {
  const url = location.origin + TASKS[task].path;
  const save = (from) => `await (await import("node:fs/promises")).writeFile("${fileOf(task, body)}", Buffer.from(await ${from}.arrayBuffer()));`;
  if (task === "transcription") {
    return `const form = new FormData();
${Object.entries(body).map(([name, value]) => `form.append("${name}", ${JSON.stringify(typeof value === "object" ? JSON.stringify(value) : String(value))});`).join("\n")}
form.append("file", new Blob([await (await import("node:fs/promises")).readFile(${JSON.stringify(sound)})]), ${JSON.stringify(sound)});
const response = await fetch("${url}", { method: "POST", headers: { Authorization: "Bearer ${key}" }, body: form });
console.log(await response.text());`;
  }
  const wait = task === "speech" ? "" : `, Prefer: "wait=60"`;
  const call = `const headers = { Authorization: "Bearer ${key}", "Content-Type": "application/json"${wait} };
const body = JSON.stringify(${pretty(body)});
const response = await fetch("${url}", { method: "POST", headers, body });`;
  if (task === "speech") return `${call}\nif (response.ok) ${save("response")}\nelse console.log(await response.text());`;
  return `${call}
let sound = await response.json();
while (["queued", "in_progress"].includes(sound.status)) {
  await new Promise((resolve) => setTimeout(resolve, 1000));
  sound = await (await fetch(\`${url}/\${sound.id}\`, { headers })).json();
}
if (sound.output) ${save("(await fetch(sound.output.url))")}
console.log(sound.output?.url ?? sound.error);`;
}

// `write` has the functions that quote values: { shell, pretty, python }.
export function soundSnippets(task, { input_audio: audio, ...body }, run, key, write) {
  const sound = run.sound?.name ?? "sound.mp3";
  const of = { task, body, sound, key, ...write };
  const own = task === "transcription" ? [sound] : [];
  return { curl: curl(of), Python: task === "speech" || own.length ? pythonCall(of) : pythonSound(of), Node: node(of), own };
}

export function soundNotes(task) {
  const saves = task === "transcription" ? [] : [`Saves a ${task} file`];
  const needs = task === "speech" || task === "transcription" ? ["Needs: pip install openai"] : [];
  const prints = task === "sound" || task === "music" ? ["Prints the URL of the file"] : saves;
  return { curl: prints.join(""), Python: [...saves, ...needs].join(". "), Node: [...saves, "Node 18 or newer; save it as run.mjs"].join(". ") };
}
