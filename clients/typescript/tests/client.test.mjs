// The client against a gateway: what it makes, and that nothing is paid for twice.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { CallFailed, GenerationFailed, NotConnected, NotFinished, Penstock, Refused, WebhookRefused, checkWebhook } from "@penstock/client";

const { PENSTOCK_URL, PENSTOCK_KEY } = process.env;
const client = new Penstock();
const small = { size: "256x256" };
const sketch = { model: "atelier/sketch", ...small };

test("images are made, edited, enlarged and read", async () => {
  const made = await client.image("a fox", { ...sketch, n: 2, outputFormat: "webp", labels: {} });
  assert.deepEqual([made.kind, made.status, made.size, made.cost, made.files.length], ["image", "completed", "256x256", 0.002, 2]);
  const bytes = await client.read(made.files[0]);
  assert.equal(Buffer.from(bytes.subarray(8, 12)).toString(), "WEBP");
  const edited = await client.edit("at night", [bytes, new Blob([bytes], { type: "image/webp" })], { model: "atelier/retouch", ...small });
  const large = await client.upscale(await client.read(edited.files[0]), { model: "atelier/enlarge", scaleFactor: 2 });
  assert.equal(large.size, "512x512");
});

test("a video is waited for with its progress, and begins with an image", async () => {
  const image = await client.image("a lake", sketch);
  const states = [];
  const video = await client.video("waves", {
    model: "atelier/clip",
    seconds: 1,
    image: await client.read(image.files[0]),
    metadata: { scene: "4" },
    onProgress: (state) => states.push(state.status),
  });
  assert.equal(states.at(-1), "completed");
  assert.equal(video.body.metadata.scene, "4");
  const parts = [];
  for await (const part of await client.download(video.files[0])) parts.push(part);
  assert.equal(Buffer.concat(parts).length, video.files[0].sizeBytes);
  assert.equal((await client.get(video.id)).cost, video.cost);
});

test("a video that fails says why, and one that takes long goes on", async () => {
  await assert.rejects(client.video("[fail]", { model: "atelier/clip", seconds: 1 }), GenerationFailed);
  const begun = await client.startVideo("a long walk", { model: "atelier/clip", seconds: 4 });
  await assert.rejects(client.wait(begun, { waitSeconds: 0 }), NotFinished);
  await assert.rejects(client.wait(begun, { signal: AbortSignal.abort(new Error("gone")) }), /gone/);
  await client.cancel(begun);
});

test("a text is spoken into a file, while it is made, or as a job", async () => {
  const spoken = await client.speech("Hello.", { model: "atelier/voice", voice: "nova", responseFormat: "flac" });
  assert.deepEqual([spoken.kind, spoken.cost], ["sound", 0.000006]);
  assert.equal(Buffer.from(await client.read(spoken.files[0])).subarray(0, 4).toString(), "fLaC");
  let size = 0;
  for await (const part of await client.streamSpeech("Hello.", { model: "atelier/voice" })) size += part.length;
  assert.ok(size > 1000);
  const later = await client.wait(await client.startSpeech("Hello.", { model: "atelier/voice" }));
  assert.equal(later.kind, "sound");
  assert.equal((await client.wait(await client.startImage("a fox", sketch))).kind, "image");
});

test("prices come before the call, and the account is read", async () => {
  const image = await client.read((await client.image("a lake", sketch)).files[0]);
  assert.equal((await client.price("image", "a fox", { ...sketch, n: 3 })).total, 0.003);
  assert.equal((await client.price("edit", "at night", { model: "atelier/retouch", images: image })).total, 0.001);
  assert.ok((await client.price("upscale", "", { model: "atelier/enlarge", image, scaleFactor: 2 })).total > 0);
  assert.equal((await client.price("video", "a fox", { model: "atelier/clip", seconds: 2, image })).model, "atelier/clip");
  assert.equal((await client.price("speech", "Hello.", { model: "atelier/voice" })).total, 0.000006);
  assert.ok(["prepaid", "postpaid"].includes((await client.balance()).billingType));
  assert.ok((await client.models("text-to-video")).some((model) => model.id === "atelier/clip"));
  assert.match(await client.webhookSecret(), /^whsec_/);
});

test("what the gateway refuses is thrown at once", async () => {
  await assert.rejects(client.image("a fox", { model: "atelier/nothing" }), (failure) => {
    assert.ok(failure instanceof Refused && failure instanceof CallFailed);
    assert.deepEqual([failure.status, failure.code], [404, "MODEL_NOT_FOUND"]);
    return failure.requestId.startsWith("req_");
  });
  await assert.rejects(client.edit("x", "/etc/passwd", { model: "atelier/retouch" }), /give a file as bytes/);
  await assert.rejects(client.get("../keys"), /the id of a generation is needed/);
  assert.throws(() => new Penstock({ url: "gateway.test", key: "pk_1" }), /must begin with http/);
});

// A network that passes calls on to the gateway and loses the first responses to those that start something.
async function lossyNetwork(losses, run) {
  const keys = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { host, connection, "content-length": _, ...headers } = request.headers;
    const body = chunks.length ? Buffer.concat(chunks) : undefined;
    const answer = await fetch(PENSTOCK_URL + request.url, { method: request.method, headers, body });
    const content = Buffer.from(await answer.arrayBuffer());
    if (request.method === "POST") keys.push(request.headers["idempotency-key"]);
    if (losses-- > 0) request.socket.destroy();
    else response.writeHead(answer.status, { "content-type": "application/json" }).end(content);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await run(`http://127.0.0.1:${server.address().port}`, keys);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("a lost response is asked for again, and paid once", async () => {
  await lossyNetwork(2, async (url, keys) => {
    const made = await new Penstock({ url }).image("a fox in a lossy place", { ...sketch, sessionId: "lossy" });
    const answer = await fetch(`${PENSTOCK_URL}/v1/requests?session_id=lossy`, { headers: { authorization: `Bearer ${PENSTOCK_KEY}` } });
    assert.deepEqual((await answer.json()).data.map((each) => each.id), [made.id]);
    assert.deepEqual([keys.length, new Set(keys).size], [3, 1]);
  });
});

test("what could be paid twice is not repeated, and no gateway is said", async () => {
  await lossyNetwork(1, async (url, keys) => {
    await assert.rejects(new Penstock({ url }).streamSpeech("Hello.", { model: "atelier/voice" }), NotConnected);
    assert.deepEqual(keys, [undefined]);
  });
  await assert.rejects(new Penstock({ url: "http://127.0.0.1:1", retries: 0 }).balance(), NotConnected);
});

test("webhooks are checked", async () => {
  const secret = `whsec_${Buffer.from("a secret of twenty-four b").toString("base64")}`;
  const body = JSON.stringify({ type: "video.completed", data: { id: "req_1", prompt: "größer" } });
  const at = Math.floor(Date.now() / 1000);
  const { createHmac } = await import("node:crypto");
  const sign = (text) => `v1,${createHmac("sha256", "a secret of twenty-four b").update(text).digest("base64")}`;
  const headers = { "Webhook-Id": "msg_1", "webhook-timestamp": String(at), "webhook-signature": `v1,AAAA ${sign(`msg_1.${at}.${body}`)}` };
  const event = await checkWebhook(Buffer.from(body), headers, secret);
  assert.deepEqual([event.type, event.messageId, event.data.id], ["video.completed", "msg_1", "req_1"]);
  for (const [wrongBody, wrongHeaders, now] of [
    [`${body} `, headers, Date.now()],
    [body, { ...headers, "Webhook-Id": "msg_2" }, Date.now()],
    [body, {}, Date.now()],
    [body, headers, Date.now() + 301_000],
  ]) {
    await assert.rejects(checkWebhook(wrongBody, wrongHeaders, secret, now), WebhookRefused);
  }
});
