// The AI SDK through its OpenAI-compatible provider, pointed at the gateway; says what it saw as one line of JSON.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateImage, generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";

const gateway = createOpenAICompatible({
  name: "penstock", baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY, supportsStructuredOutputs: true,
});

const { images } = await generateImage({ model: gateway.imageModel("image-1"), prompt: "a pear", n: 2, size: "256x256" });
const { text, usage } = await generateText({ model: gateway("lab/chat"), prompt: "one two three" });
const stream = streamText({ model: gateway("lab/chat"), prompt: "four five six" });
let streamed = "";
for await (const piece of stream.textStream) streamed += piece;

const city = jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] });
const turns = await generateText({
  model: gateway("atelier/echo"), prompt: "weather?", stopWhen: stepCountIs(2),
  tools: { weather: tool({ inputSchema: city, execute: async ({ city }) => `sunny in ${city}` }) },
});
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
  text, streamed, refusal, tokens: usage.totalTokens,
}));
