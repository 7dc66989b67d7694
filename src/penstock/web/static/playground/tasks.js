// What can be made, which models make it, and how the parameters of a model are arranged in the form.

// `says` is the field that has the prompt, if it is not `prompt`; null: there is no such field in the form.
export const TASKS = {
  image: { label: "Image", icon: "image", verb: "Generate", modes: ["text-to-image"], path: "/compat/v1/images/generations" },
  edit: { label: "Edit", icon: "edit", verb: "Edit", modes: ["image-edit"], path: "/compat/v1/images/edits" },
  upscale: { label: "Upscale", icon: "enlarge", verb: "Upscale", modes: ["upscale"], path: "/compat/v1/images/edits", says: null },
  video: { label: "Video", icon: "video", verb: "Generate", modes: ["text-to-video", "image-to-video"], path: "/compat/v1/videos" },
  chat: { label: "Chat", icon: "chat", verb: "Send", modes: ["chat"], path: "/compat/v1/chat/completions", says: null },
  speech: { label: "Speech", icon: "speech", verb: "Speak", modes: ["text-to-speech"], path: "/compat/v1/audio/speech", says: "input" },
  sound: { label: "Sound", icon: "sound", verb: "Generate", modes: ["text-to-sound"], path: "/compat/v1/audio/generations" },
  music: { label: "Music", icon: "note", verb: "Compose", modes: ["text-to-music"], path: "/compat/v1/audio/generations" },
  transcription: { label: "Transcript", icon: "microphone", verb: "Transcribe", modes: ["transcription"], path: "/compat/v1/audio/transcriptions", says: null },
};
export const SAMPLES = {
  image: ["a lighthouse at dusk, calm sea", "a fox in a snowy forest at night", "three red balloons over green hills, sunrise"],
  edit: ["make it a starry night", "add snow", "in warm evening light"],
  upscale: [],
  video: ["a lighthouse at dusk, calm sea", "a sailing boat on a lake at sunset", "a snowy village at night, stars"],
  chat: ["Write a haiku about a turbine."],
  speech: ["The quick brown fox jumps over the lazy dog.", "Welcome aboard. We leave at half past nine."],
  sound: ["rain on a roof, and thunder", "footsteps on gravel, birds", "a clock ticks, then a bell"],
  music: ["a calm piano piece in D minor", "a cheerful folk dance, guitar and flute, 120 bpm", "slow ambient pads"],
  transcription: [],
};

// Set by other parts of the form, or not settings of what is made.
const ELSEWHERE = new Set(["model", "prompt", "image", "mask", "input_reference", "messages", "stream", "stream_options", "input", "voice",
  "stream_format", "file", "input_audio", "file_url"]);
// Of a field that means something else for a model that hears.
const SHOWN_ALL_THE_SAME = { transcription: new Set(["prompt"]) };
const FIRST = {
  image: ["size", "n", "quality", "style", "seed", "output_format"],
  edit: ["size", "n", "quality", "seed"],
  upscale: ["scale_factor", "n"],
  video: ["seconds", "size", "n", "negative_prompt", "seed"],
  chat: ["temperature", "max_tokens"],
  speech: ["response_format", "speed", "instructions", "language"],
  sound: ["seconds", "n", "output_format", "loop", "seed"],
  music: ["seconds", "n", "output_format", "lyrics", "instrumental", "seed"],
  transcription: ["language", "prompt", "diarize"],
};

export const saysOf = (task) => (TASKS[task].says === undefined ? "prompt" : TASKS[task].says);
// Sounds that are made as jobs, and read at one address, whatever accepted them.
export const isSound = (task) => task === "speech" || task === "sound" || task === "music";

export const modelsFor = (task, models) => models.filter((model) => model.modes.some((mode) => TASKS[task].modes.includes(mode)));

// The parameters of a model: shown first, folded away, and those that this model ignores.
export function arrange(task, model) {
  const properties = Object.entries(model.schema?.properties ?? {})
    .filter(([name, { description = "" }]) => (!ELSEWHERE.has(name) || SHOWN_ALL_THE_SAME[task]?.has(name)) && !description.startsWith("Another name of"))
    .map(([name, property]) => ({ name, property, required: model.schema.required?.includes(name) ?? false }));
  const used = properties.filter(({ property }) => property["x-handling"] !== "ignored");
  const isFirst = ({ name, required }) => required || FIRST[task].includes(name);
  const place = ({ name }) => (FIRST[task].includes(name) ? FIRST[task].indexOf(name) : 99);
  return {
    first: used.filter(isFirst).sort((one, other) => place(one) - place(other)),
    more: used.filter((parameter) => !isFirst(parameter)),
    ignored: properties.filter(({ property }) => property["x-handling"] === "ignored"),
  };
}

// What is sent: the parameters that were filled in and that this model has.
export function body(task, model, { prompt, values, images, mask, messages, sound }) {
  const known = model.schema?.properties ?? {};
  const parameters = Object.fromEntries(Object.entries(values).filter(([name, value]) => value !== "" && known[name]
    && known[name]["x-handling"] !== "ignored"));
  const says = saysOf(task);
  const all = { model: model.id, ...(says && { [says]: prompt }), ...parameters };
  if (task === "chat") return { ...all, messages };
  if (task === "transcription") return { response_format: transcriptForm(known), ...all, ...(sound && { input_audio: { data: sound.data, format: sound.format } }) };
  if ((task === "edit" || task === "upscale") && images.length) all.image = images.length === 1 ? images[0].source : images.map(({ source }) => source);
  if (task === "edit" && mask) all.mask = mask;
  if (task === "video" && images.length) all.input_reference = { image_url: images[0].source };
  return all;
}

// With times where the model gives them.
const transcriptForm = ({ response_format: form }) => (form?.enum?.includes("verbose_json") ? "verbose_json" : "json");

export const mostImages = { edit: 8, upscale: 1, video: 1, chat: 4 };
