// OpenAI's own client for Node, pointed at the gateway; says what it saw as one line of JSON.
import OpenAI, { toFile } from "openai";

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY });

const models = [];
for await (const model of client.models.list()) models.push(model.id);

const byUrl = await client.images.generate({ model: "image-1", prompt: "a pear", size: "256x256" });
const fetched = await fetch(byUrl.data[0].url);
const inside = await client.images.generate({ model: "image-1", prompt: "a pear", response_format: "b64_json", n: 2 });
const png = Buffer.from(inside.data[0].b64_json, "base64");
const edited = await client.images.edit({
  model: "edit-1", prompt: "a hat", image: await toFile(png, "pear.png", { type: "image/png" }),
});
const pear = await toFile(png, "pear.png", { type: "image/png" });
const several = await client.images.edit({ model: "edit-1", prompt: "a hat", image: [pear, pear], n: 2 });
const mask = await toFile(Buffer.from(process.env.MASK, "base64"), "mask.png", { type: "image/png" });
const masked = await client.images.edit({
  model: "edit-1", prompt: "a hat", image: pear, mask, size: "auto", output_format: "webp", response_format: "b64_json",
});

let video = await client.videos.create({ model: "video-1", prompt: "a train", seconds: "4", size: "1280x720" });
const promised = video.status;
while (video.status !== "completed" && video.status !== "failed") {
  await new Promise((resolve) => setTimeout(resolve, 100));
  video = await client.videos.retrieve(video.id);
}
const content = Buffer.from(await (await client.videos.downloadContent(video.id)).arrayBuffer());
const listed = [];
for await (const one of client.videos.list()) listed.push(one.id);

let refusal;
try {
  await client.images.generate({ model: "nonesuch", prompt: "x" });
} catch (problem) {
  refusal = { status: problem.status, code: problem.code, id: problem.requestID };
}

const whole = await client.chat.completions.create({
  model: "lab/chat", messages: [{ role: "user", content: "one two three" }],
});
let streamed = "";
const stream = await client.chat.completions.create({
  model: "lab/chat", messages: [{ role: "user", content: "one two three" }], stream: true,
});
for await (const chunk of stream) streamed += chunk.choices[0]?.delta?.content ?? "";

const weather = {
  type: "function",
  function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } },
};
const calls = await client.chat.completions.create({
  model: "atelier/echo", messages: [{ role: "user", content: "weather?" }], tools: [weather],
});
const called = await client.chat.completions.stream({
  model: "atelier/echo", messages: [{ role: "user", content: "weather?" }], tools: [weather],
}).finalChatCompletion();
const form = await client.chat.completions.create({
  model: "atelier/echo", messages: [{ role: "user", content: "pear" }], response_format: { type: "json_object" },
});
const raw = await client.chat.completions.create({
  model: "atelier/echo", messages: [{ role: "user", content: "pear" }],
}).withResponse();

console.log(JSON.stringify({
  form: JSON.parse(form.choices[0].message.content),
  tools: [calls, called].map((one) => one.choices[0].message.tool_calls[0].function),
  requestId: raw.response.headers.get("x-request-id"),
  models, refusal, promised, streamed, listed,
  fetched: [fetched.status, fetched.headers.get("content-type")],
  images: inside.data.length,
  magic: png.subarray(1, 4).toString(),
  edited: edited.data[0].url.includes("/m/med_"),
  several: several.data.length,
  masked: [masked.size, Buffer.from(masked.data[0].b64_json, "base64").subarray(8, 12).toString()],
  video: [video.id, video.status, video.seconds, video.size],
  content: content.subarray(4, 8).toString(),
  text: whole.choices[0].message.content,
}));
