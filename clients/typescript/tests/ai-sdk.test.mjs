// The provider in the AI SDK itself: images, videos, speech and chats through a gateway.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  APICallError,
  experimental_generateVideo as generateVideo,
  experimental_getVideoStatus as getVideoStatus,
  experimental_startVideo as startVideo,
  generateImage,
  generateSpeech,
  generateText,
  streamText,
} from "ai";

import { createPenstock, penstock } from "@penstock/client/ai-sdk";

const { PENSTOCK_URL, PENSTOCK_KEY } = process.env;

async function records(sessionId) {
  const headers = { authorization: `Bearer ${PENSTOCK_KEY}` };
  return (await (await fetch(`${PENSTOCK_URL}/v1/requests?session_id=${sessionId}`, { headers })).json()).data;
}

test("an image is made, edited and enlarged, and its cost is told", async () => {
  const { image, providerMetadata } = await generateImage({
    model: penstock.image("atelier/sketch"),
    prompt: "a fox",
    size: "256x256",
    providerOptions: { penstock: { session_id: "ai-image" } },
  });
  assert.equal(image.mediaType, "image/png");
  const [told] = providerMetadata.penstock.images;
  assert.deepEqual([told.callCost, told.executedModel], [0.001, "atelier/sketch"]);
  assert.deepEqual((await records("ai-image")).map((each) => each.id), [told.id]);
  const edited = await generateImage({
    model: penstock.imageModel("atelier/retouch"),
    prompt: { text: "at night", images: [image.uint8Array] },
    size: "256x256",
  });
  assert.ok(edited.image.uint8Array.length > 1000);
  const large = await generateImage({
    model: penstock.image("atelier/enlarge"),
    prompt: { images: [edited.image.uint8Array] },
    providerOptions: { penstock: { scale_factor: 2 } },
  });
  assert.equal(Buffer.from(large.image.uint8Array).readUInt32BE(16), 512); // the width in a PNG
});

test("a video is made in one call", async () => {
  const { image } = await generateImage({ model: penstock.image("atelier/sketch"), prompt: "a lake", size: "256x256" });
  const { video, providerMetadata } = await generateVideo({
    model: penstock.video("atelier/clip"),
    prompt: { text: "waves", image: image.uint8Array },
    duration: 1,
    providerOptions: { penstock: { session_id: "ai-video" } },
  });
  assert.equal(video.mediaType, "video/mp4");
  assert.equal(Buffer.from(video.uint8Array.subarray(4, 8)).toString(), "ftyp");
  assert.equal((await records("ai-video")).length, 1);
  assert.ok(providerMetadata.penstock);
});

test("a video is started and asked for later", async () => {
  const model = penstock.video("atelier/clip");
  const { operation } = await startVideo({ model, prompt: "a fox", duration: 1, resolution: "320x180" });
  let state;
  do {
    state = await getVideoStatus(model, { operation });
  } while (state.status === "pending");
  assert.equal(state.status, "completed");
  assert.equal(state.videos.length, 1);
  const failing = await startVideo({ model, prompt: "[fail]", duration: 1 });
  do {
    state = await getVideoStatus(model, failing);
  } while (state.status === "pending");
  assert.equal(state.status, "error");
});

test("a text is spoken", async () => {
  const { audio } = await generateSpeech({ model: penstock.speech("atelier/voice"), text: "Hello.", voice: "nova", outputFormat: "wav" });
  assert.equal(Buffer.from(audio.uint8Array).subarray(0, 4).toString(), "RIFF");
});

test("a chat is answered, whole and streamed", async () => {
  const model = penstock("atelier/echo");
  const { text, usage } = await generateText({ model, prompt: "Hello there" });
  assert.deepEqual([text, usage.totalTokens > 0], ["Hello there", true]);
  let streamed = "";
  for await (const part of streamText({ model, prompt: "one two three" }).textStream) streamed += part;
  assert.equal(streamed, "one two three");
});

test("a refusal is an error of the SDK, and is not retried by it", async () => {
  let calls = 0;
  const counting = createPenstock({
    fetch: (...all) => {
      calls++;
      return fetch(...all);
    },
  });
  await assert.rejects(generateImage({ model: counting.image("atelier/nothing"), prompt: "a fox" }), (failure) => {
    assert.ok(APICallError.isInstance(failure));
    assert.deepEqual([failure.statusCode, failure.isRetryable], [404, false]);
    return true;
  });
  assert.equal(calls, 1);
  assert.throws(() => penstock.embeddingModel("x"), /embeddingModel/);
});
