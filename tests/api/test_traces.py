"""Traces as a collector receives them: one per call, from the caller's span to the webhook, over several processes."""

import asyncio
import os
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from penstock.net.client import HttpClient
from tests.api.http_calls import ServedApi, served_api
from tests.fake_providers import faults
from tests.fake_providers.scripted import ScriptedProvider
from tests.gateway import Installation, OpenGateway, sqlite_only, two_providers
from tests.otlp_receiver import OtlpReceiver, otlp_receiver

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
HOOK = "https://receiver.example/hook/token-of-the-receiver"
PROMPT = "a-prompt-that-must-not-be-traced"
CHAT = "/compat/v1/chat/completions"
VIDEOS = "/compat/v1/videos"
STEP_SECONDS = 0.05  # so that leases are renewed in time, also on a busy machine
IMAGES = "/compat/v1/images/generations"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch, installation: Installation) -> Iterator[OtlpReceiver]:
    """A collector that the gateways of the test send their traces to."""
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)
    with otlp_receiver() as receiver:
        set_variables(monkeypatch, installation, **receiver.environ)
        yield receiver


def set_variables(monkeypatch: pytest.MonkeyPatch, installation: Installation, **variables: str) -> None:
    """Set variables for the gateway, and for the SDK, which reads those of the process."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
        installation.environ[name] = value


@pytest.fixture
def webhooks(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The headers of the webhook deliveries, which are all accepted."""
    sent: list[dict[str, str]] = []

    async def post_guarded(client: HttpClient, url: str, body: bytes, headers: dict[str, str], **options: Any) -> int:
        sent.append(headers)
        return 200

    monkeypatch.setattr(HttpClient, "post_guarded", post_guarded)
    return sent


async def post(api: ServedApi, path: str, **body: Any) -> Any:
    messages = [{"role": "user", "content": PROMPT}]
    models = {IMAGES: "image-1", VIDEOS: "video-1", CHAT: "lab/chat"}
    given = {"messages": messages} if path == CHAT else {"prompt": PROMPT}
    return await api.call("POST", path, {"model": models[path], **given, **body}, headers=PARENT)


# --------------------------------------------------------------------------------------------------------------- images


@sqlite_only
async def test_an_image_continues_the_trace_of_its_caller(open_gateway: OpenGateway, collector: OtlpReceiver) -> None:
    async with served_api(open_gateway) as api:
        api.running.lab.returns_urls = True
        response = await post(api, IMAGES, size="64x64", output_format="webp")
        assert response.status == 200
        record = await api.running.record(response.json["id"])
        assert record["trace_id"] == TRACE
        assert [request.headers.get("traceparent") for request in api.running.lab.images.received] == [None]
    (call,) = collector.named(f"POST {IMAGES}")
    assert (call.trace_id, call.parent_id, call.service) == (TRACE, "b7ad6b7169203331", "penstock")
    assert {span.trace_id for span in collector.spans} == {TRACE}
    assert collector.children(call) == ["accept", "commit", "generate_content easel-1", "validate"]
    (attempt,) = collector.named("generate_content easel-1")
    assert collector.children(attempt) == ["convert", "fetch", "store", "submit"]
    assert attempt.attributes == {
        "gen_ai.operation.name": "generate_content",
        "gen_ai.provider.name": "lab",
        "gen_ai.request.model": "easel-1",
        "gen_ai.output.type": "image",
        "penstock.provider": "lab",
        "penstock.request.id": response.json["id"],
        "server.address": "127.0.0.1",
        "server.port": attempt.attributes["server.port"],
    }
    assert call.attributes == {
        "http.request.method": "POST",
        "http.route": IMAGES,
        "url.path": IMAGES,
        "url.scheme": "http",
        "http.response.status_code": 200,
        "penstock.request.id": response.json["id"],
        "penstock.org.id": api.running.caller.org_id,
        "penstock.key.id": api.running.caller.key_id,
        "gen_ai.request.model": "image-1",
        "penstock.provider": "lab",
        "penstock.cost_usd": 0.04,
        "penstock.overhead_ms": call.attributes["penstock.overhead_ms"],
    }
    for secret in (PROMPT, api.running.key, "sk-lab", "http://", "sig="):
        assert secret.encode() not in collector.raw


@sqlite_only
async def test_failures_are_named_by_their_kind_and_not_by_words(
    open_gateway: OpenGateway, collector: OtlpReceiver
) -> None:
    async with served_api(open_gateway, annex=True) as api:
        api.running.lab.images.always(faults.error(500, f"cannot draw {PROMPT}"))
        assert (await post(api, IMAGES, size="64x64")).status == 200
        api.running.annex.images.always(faults.blocked)
        assert (await post(api, IMAGES, size="64x64")).status == 400
        assert (await post(api, IMAGES, size="64x64", model="no/such")).status == 404
    attempts = collector.named("generate_content easel-1")
    outcomes = [(span.attributes["penstock.provider"], span.attributes.get("error.type")) for span in attempts]
    assert outcomes == [("lab", "broken"), ("annex", None), ("lab", "broken"), ("annex", "refused")]
    calls = collector.named(f"POST {IMAGES}")
    assert [span.attributes.get("penstock.error.code") for span in calls] == [
        None,
        "CONTENT_POLICY_VIOLATION",
        "MODEL_NOT_FOUND",
    ]
    assert PROMPT.encode() not in collector.raw


# --------------------------------------------------------------------------------------------------------------- videos


async def test_a_video_is_one_trace_from_the_call_through_two_workers_to_the_webhook(
    open_gateway: OpenGateway, collector: OtlpReceiver, webhooks: list[dict[str, str]]
) -> None:
    async with two_providers() as labs:
        lab = labs[0]
        async with served_api(open_gateway, labs=labs, worker=False) as api:
            response = await post(api, VIDEOS, seconds=4, webhook_url=HOOK)
            assert response.status == 202
            video_id = response.json["id"]
        first = len(collector.spans)
        assert [span.name for span in collector.spans] == ["validate", "accept", f"POST {VIDEOS}"]

        lab.states = ("in_progress 40",)
        async with open_gateway(labs=labs) as running:
            await running.wait_until(lambda: has_any(lab.polls.received), STEP_SECONDS)
        async with open_gateway(labs=labs) as running:
            finish_jobs(lab)
            await running.wait_for_video(video_id, STEP_SECONDS)
            await running.wait_until(lambda: has_any(webhooks), STEP_SECONDS)
    assert len(collector.spans) > first
    assert {span.trace_id for span in collector.spans} == {TRACE}
    (call,) = collector.named(f"POST {VIDEOS}")
    children = collector.children(call)
    assert children.count("generate_content reel-1") == 2
    assert [name for name in children if name != "generate_content reel-1"] == [
        "accept",
        "commit",
        "deliver webhook",
        "validate",
    ]
    assert len(collector.named("submit")) == 1
    assert {"poll", "fetch", "store"} <= {span.name for span in collector.spans}
    (delivery,) = collector.named("deliver webhook")
    assert webhooks[0]["traceparent"] == f"00-{TRACE}-{delivery.span_id}-{webhooks[0]['traceparent'][-2:]}"
    assert delivery.attributes["server.address"] == "receiver.example"
    assert delivery.attributes["server.port"] == 443
    assert b"token-of-the-receiver" not in collector.raw


async def has_any(things: Sequence[object]) -> bool:
    return bool(things)


def finish_jobs(lab: ScriptedProvider) -> None:
    for job in lab.video_jobs.values():
        job.states = deque(["completed"])


# ----------------------------------------------------------------------------------------------------------------- chat


@sqlite_only
async def test_a_chat_has_its_tokens_and_a_stream_the_time_to_its_first_chunk(
    open_gateway: OpenGateway, collector: OtlpReceiver
) -> None:
    async with served_api(open_gateway, traced_providers=("lab",)) as api:
        asked = {"temperature": 0.5, "max_completion_tokens": 9, "seed": 7}
        assert (await post(api, CHAT, **asked)).status == 200
        assert (await post(api, CHAT, stream=True, **asked)).status == 200
        sent = [request.headers["traceparent"] for request in api.running.lab.chats.received]
    whole, stream = collector.named("chat chat-1")
    calls = collector.named(f"POST {CHAT}")
    ids = [call.attributes["penstock.request.id"] for call in calls]
    assert [span.attributes["penstock.request.id"] for span in (whole, stream)] == ids
    assert [header.split("-")[1:3] for header in sent] == [[TRACE, whole.span_id], [TRACE, stream.span_id]]
    for span in (whole, stream):
        assert span.attributes["gen_ai.operation.name"] == "chat"
        assert span.attributes["gen_ai.usage.input_tokens"] == 1
        assert span.attributes["gen_ai.usage.output_tokens"] == 1
        assert span.attributes["gen_ai.request.temperature"] == 0.5
        assert span.attributes["gen_ai.request.max_tokens"] == 9
        assert span.attributes["gen_ai.request.seed"] == 7
        assert span.attributes["gen_ai.response.model"] == "chat-1"
        assert span.attributes["gen_ai.response.id"]
        assert span.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert "gen_ai.response.time_to_first_chunk" not in whole.attributes
    assert stream.attributes["gen_ai.response.time_to_first_chunk"] == 0.0  # the clock of the test stands still
    for call in calls:
        assert collector.children(call) == ["accept", "chat chat-1", "validate"]
    assert PROMPT.encode() not in collector.raw


# ------------------------------------------------------------------------------------------ sampling and no export


@sqlite_only
async def test_a_trace_that_is_not_sampled_is_not_sent_but_its_id_goes_on(
    open_gateway: OpenGateway,
    collector: OtlpReceiver,
    webhooks: list[dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    installation: Installation,
) -> None:
    set_variables(monkeypatch, installation, OTEL_TRACES_SAMPLER="always_off")
    async with served_api(open_gateway) as api:
        response = await post(api, VIDEOS, seconds=4, webhook_url=HOOK)
        await api.running.wait_for_video(response.json["id"])
        await api.running.wait_until(lambda: has_any(webhooks))
        assert (await post(api, CHAT, stream=True)).status == 200
        assert (await api.running.record(response.json["id"]))["trace_id"] == TRACE
    assert collector.requests == 0
    _, trace_id, _, flags = webhooks[0]["traceparent"].split("-")
    assert (trace_id, int(flags, 16) & 1) == (TRACE, 0)


@sqlite_only
async def test_a_call_without_a_trace_begins_one_and_its_record_has_the_id(
    open_gateway: OpenGateway, collector: OtlpReceiver
) -> None:
    async with served_api(open_gateway) as api:
        response = await api.image()
        record = await api.running.record(response.json["id"])
        await api.served.call("GET", "/healthz")
    (call,) = collector.named(f"POST {IMAGES}")
    assert (record["trace_id"], call.parent_id) == (call.trace_id, "")
    assert not collector.named("GET /healthz")


@sqlite_only
async def test_a_collector_that_does_not_answer_delays_no_call_and_not_the_end(
    open_gateway: OpenGateway,
    collector: OtlpReceiver,
    monkeypatch: pytest.MonkeyPatch,
    installation: Installation,
) -> None:
    monkeypatch.setattr("penstock.telemetry.otel._CLOSE_SECONDS", 0.1)
    set_variables(monkeypatch, installation, OTEL_BSP_MAX_QUEUE_SIZE="8", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="4")
    collector.responding.clear()  # it accepts connections and says nothing
    async with asyncio.timeout(30), served_api(open_gateway) as api:
        for _ in range(20):  # more spans than the queue takes
            assert (await post(api, CHAT)).status == 200
    assert collector.spans == []
    collector.responding.set()
