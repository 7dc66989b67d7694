// The AI SDK through its OpenAI-compatible provider, pointed at the gateway; says what it saw as one line of JSON.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateImage, generateText, streamText } from "ai";

const gateway = createOpenAICompatible({
  name: "penstock", baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY,
});

const { images } = await generateImage({ model: gateway.imageModel("picture"), prompt: "a pear", n: 2, size: "256x256" });
const { text, usage } = await generateText({ model: gateway("lab/talk"), prompt: "one two three" });
const stream = streamText({ model: gateway("lab/talk"), prompt: "four five six" });
let streamed = "";
for await (const piece of stream.textStream) streamed += piece;

let refusal;
try {
  await generateImage({ model: gateway.imageModel("nonesuch"), prompt: "x", maxRetries: 0 });
} catch (problem) {
  refusal = { status: problem.statusCode, message: problem.message };
}

console.log(JSON.stringify({
  types: images.map((image) => image.mediaType),
  magic: Buffer.from(images[0].uint8Array.subarray(1, 4)).toString(),
  text, streamed, refusal, tokens: usage.totalTokens,
}));
