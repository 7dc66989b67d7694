// The AI SDK through both of its providers, pointed at the gateway; says what it saw as one line of JSON.
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateImage, generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";

const gateway = createOpenAICompatible({
  name: "penstock", baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY, supportsStructuredOutputs: true,
});

const { images } = await generateImage({ model: gateway.imageModel("image-1"), prompt: "a pear", n: 2, size: "256x256" });
const { text, usage } = await generateText({ model: gateway("lab/chat"), prompt: "one two three" });
const asked = [{ role: "user", content: "one two three" }];
const first = await generateText({ model: gateway("lab/chat"), messages: asked });
const second = await generateText({
  model: gateway("lab/chat"), messages: [...asked, ...first.response.messages, { role: "user", content: "seven" }],
});
const stream = streamText({ model: gateway("lab/chat"), prompt: "four five six" });
let streamed = "";
for await (const piece of stream.textStream) streamed += piece;

const city = jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] });
const turns = await generateText({
  model: gateway("atelier/echo"), prompt: "weather?", stopWhen: stepCountIs(2),
  tools: { weather: tool({ inputSchema: city, execute: async ({ city }) => `sunny in ${city}` }) },
});
// Its default provider sends only the ids of earlier answers, in the Responses API.
const openai = createOpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY });
const conversation = [{ role: "user", content: "weather?" }];
const tools = { weather: tool({ inputSchema: city, execute: async ({ city }) => `sunny in ${city}` }) };
const answered = await generateText({
  model: openai("atelier/echo"), messages: conversation, stopWhen: stepCountIs(2), tools,
});
conversation.push(...answered.response.messages, { role: "user", content: "eight nine" });
const third = streamText({ model: openai("lab/chat"), messages: conversation, tools });
const references = [answered.text, await third.text];
conversation.push(...(await third.response).messages, { role: "user", content: "ten" });
references.push((await generateText({ model: openai("lab/chat"), messages: conversation, tools })).text);

const form = await generateText({
  model: gateway("atelier/echo"), prompt: "where?", output: Output.object({ schema: city }),
});

let refusal;
try {
  await generateImage({ model: gateway.imageModel("nonesuch"), prompt: "x", maxRetries: 0 });
} catch (problem) {
  refusal = { status: problem.statusCode, message: problem.message };
}

console.log(JSON.stringify({
  types: images.map((image) => image.mediaType),
  magic: Buffer.from(images[0].uint8Array.subarray(1, 4)).toString(),
  turns: [turns.steps[0].toolCalls[0].input, turns.text], form: form.output,
  second: second.text, references, text, streamed, refusal, tokens: usage.totalTokens,
}));
