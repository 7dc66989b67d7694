"""Calls of the Responses API to a provider that speaks it: bodies, bytes, usage, money, failures and streams."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import msgspec
import openai
import pytest
from openai import AsyncOpenAI

from penstock import providers
from penstock.chat import stream as stream_module
from penstock.chat.pass_through import ResponsesApi, _decode_response, _ResponsesRelay
from penstock.chat.pricing import Usage
from penstock.chat.request import read_chat_request
from penstock.chat.responses_request import read_responses_request
from penstock.chat.stream import StreamBroken
from penstock.providers import openrouter
from penstock.settings import Settings
from penstock.upstream.candidate import Candidate
from penstock.values import ZERO
from tests.api.http_calls import ServedApi, served_api
from tests.fake_providers import faults, responses
from tests.fake_providers.server import FakeCall, event_bytes
from tests.gateway import Installation, sqlite_only
from tests.unit.chat.chat_calls import ended_records
from tests.unit.chat.responses_calls import DATA_URI, PATH, WEATHER
from tests.unit.chat.small_request import call_with

ENCRYPTED: Any = ["reasoning.encrypted_content"]
PATCH: Any = {"type": "custom", "name": "apply_patch", "description": "Change files.", "format": {"type": "text"}}
# "one two three" is three input tokens; the fake writes three tokens more than it thinks.
COST = 3 * 1e-6 + (3 + responses.THINKING_TOKENS) * 2e-6


@asynccontextmanager
async def client(installation: Installation, **options: Any) -> AsyncIterator[tuple[AsyncOpenAI, ServedApi]]:
    installation.lab_settings["responses"] = True
    async with (
        served_api(installation.open, disabled_providers=(), **options) as api,
        AsyncOpenAI(api_key=api.running.key, base_url=api.base_url, max_retries=0) as opened,
    ):
        yield opened, api


async def record(api: ServedApi, request_id: str | None) -> dict[str, Any]:
    return await api.running.wait_for_request(str(request_id))


@sqlite_only
async def test_a_call_and_its_response_pass_through_and_are_charged(installation: Installation) -> None:
    async with client(installation) as (ours, api):
        response = await ours.responses.create(
            model="lab/chat",
            instructions="Be brief.",
            input="one two three",
            reasoning={"effort": "low", "summary": "auto"},
            text={"verbosity": "low"},
            metadata={"who": "me"},
            prompt_cache_key="k",
            store=True,
            user="u1",
            extra_body={"session_id": "s1"},
        )
        assert (response.output_text, response.status, response.model) == ("one two three", "completed", "lab/chat")
        assert [item.type for item in response.output] == ["reasoning", "message"]
        assert response.usage is not None
        assert response.usage.output_tokens_details.reasoning_tokens == responses.THINKING_TOKENS
        assert getattr(response.usage, "cost", None) == pytest.approx(COST)
        sent = api.running.lab.responses.received[0].fields
        assert (sent["model"], sent["store"], sent["input"]) == ("chat-1", False, "one two three")
        assert sent["max_output_tokens"] == api.running.gateway.settings.chat_output_tokens
        assert (sent["reasoning"], sent["prompt_cache_key"]) == ({"effort": "low", "summary": "auto"}, "k")
        assert "session_id" not in sent
        assert len(api.running.lab.chats) == 0
        found = await record(api, response._request_id)
        assert (found["endpoint"], found["status"], found["user"]) == (PATH, "completed", "u1")
        assert float(found["cost"]) == pytest.approx(COST) == float(api.running.lab.bill_usd)


@sqlite_only
async def test_encrypted_reasoning_goes_back_and_reasoning_that_nobody_stored_is_left_out(
    installation: Installation,
) -> None:
    async with client(installation) as (ours, api):
        first = await ours.responses.create(model="lab/chat", input="one", include=ENCRYPTED)
        reasoning: Any = first.output[0]
        assert reasoning.encrypted_content == responses.SECRET
        earlier: list[Any] = [item.model_dump(exclude_none=True) for item in first.output]
        more = [{"role": "user", "content": "one"}, *earlier, {"role": "user", "content": "two"}]
        second = await ours.responses.create(model="lab/chat", input=more, include=ENCRYPTED)
        assert second.output_text == "two"
        assert api.running.lab.responses.received[1].fields["input"] == more
        stored = await ours.responses.create(model="lab/chat", input="one")  # without `include`
        items: list[Any] = [item.model_dump(exclude_none=True) for item in stored.output]
        items.append({"type": "item_reference", "id": items[0]["id"]})  # as the AI SDK refers to it
        third = await ours.responses.create(model="lab/chat", input=[*items, {"role": "user", "content": "three"}])
        assert third.output_text == "three"
        sent = api.running.lab.responses.received[3].fields["input"]
        assert [item["type"] for item in sent if "type" in item] == ["message"]


@sqlite_only
async def test_tools_and_images_pass_through(installation: Installation) -> None:
    async with client(installation) as (ours, api):
        parts: Any = [{"type": "input_image", "image_url": DATA_URI, "detail": "low"},
                      {"type": "input_text", "text": "what?"}]  # fmt: skip
        asked: list[Any] = [{"role": "user", "content": parts}]
        called: Any = await ours.responses.create(
            model="lab/chat", input=asked, tools=[PATCH, WEATHER], tool_choice="required"
        )
        assert (called.output[1].type, called.output[1].name) == ("custom_tool_call", "apply_patch")
        output: Any = {"type": "custom_tool_call_output", "call_id": called.output[1].call_id, "output": "done"}
        call: Any = called.output[1].model_dump(exclude_none=True)
        after = await ours.responses.create(model="lab/chat", input=[*asked, call, output], tools=[PATCH])
        assert after.output_text == "done"
        sent = api.running.lab.responses.received[0].fields
        assert (sent["input"], sent["tools"]) == (asked, [PATCH, WEATHER])
        assert (await record(api, called._request_id))["modality"] == "vision"
        with pytest.raises(openai.BadRequestError, match="needs a model whose provider has the Responses API itself"):
            await ours.responses.create(model="atelier/echo", input="hi", tools=[PATCH])


@sqlite_only
async def test_urls_that_nobody_checked_reach_no_provider(installation: Installation) -> None:
    bad_inputs: dict[str, Any] = {
        "a private host": {"role": "user", "content": [{"type": "input_image", "image_url": "http://localhost/x.png"}]},
        "a field of a text": {
            "role": "user",
            "content": [{"type": "input_text", "text": "x", "image_url": "http://a"}],
        },
        "a file": {"role": "user", "content": [{"type": "input_file", "file_url": "http://localhost/x.pdf"}]},
        "a field of an item": {"role": "user", "content": "x", "video_url": "http://localhost/x"},
        "the assistant": {"role": "assistant", "content": [{"type": "input_image", "image_url": DATA_URI}]},
    }
    async with client(installation) as (_, api):
        for name, item in bad_inputs.items():
            response = await api.call("POST", PATH, {"model": "lab/chat", "input": [item]})
            assert response.status == 400, name
        assert len(api.running.lab.responses) == 0


@sqlite_only
async def test_the_image_tool_is_served_by_our_image_models(installation: Installation) -> None:
    async with client(installation) as (ours, api):
        response = await ours.responses.create(
            model="lab/chat", input="hello", tools=[{"type": "image_generation", "model": "image-1"}]
        )
        assert response.output_text == "hello"
        assert (len(api.running.lab.chats), len(api.running.lab.responses)) == (1, 0)


@sqlite_only
async def test_a_providers_refusal_and_failure_are_ours(installation: Installation) -> None:
    failed = {"id": "resp_1", "object": "response", "status": "failed", "output": [],
              "error": {"code": "server_error", "message": "It broke."}}  # fmt: skip
    async with client(installation) as (ours, api):
        with pytest.raises(openai.BadRequestError, match="integer below minimum value"):
            await ours.responses.create(model="lab/chat", input="hi", max_output_tokens=3)
        api.running.lab.responses.next(faults.error(400, "No.", "content_policy_violation"))
        with pytest.raises(openai.BadRequestError) as refused:
            await ours.responses.create(model="lab/chat", input="hi")
        assert refused.value.code == "CONTENT_POLICY_VIOLATION"
        for wrong in (failed, {**failed, "error": None}, {"object": "response", "output": []}, [1]):
            api.running.lab.responses.next(faults.raw(json.dumps(wrong).encode()))
            with pytest.raises(openai.InternalServerError):
                await ours.responses.create(model="lab/chat", input="hi")
        for found in await ended_records(api.running, 6):
            assert (found["status"], found["cost"]) == ("upstream_failure", 0)


@sqlite_only
async def test_a_response_without_usage_is_estimated(installation: Installation) -> None:
    async with client(installation) as (ours, api):
        api.running.lab.responses.next(faults.altered(usage=None))
        response = await ours.responses.create(model="lab/chat", input="one two three")
        assert response.usage is not None
        assert response.usage.input_tokens == 3
        assert getattr(response.usage, "cost", 0) > 0


def test_every_provider_that_speaks_it_gets_a_stateless_body_with_the_limits_that_money_is_reserved_for() -> None:
    items = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    speaking = {
        provider.slug: candidate
        for provider in providers.discover()
        for model in provider.models
        if (candidate := Candidate(provider, model)).model.op.responses
    }
    assert set(speaking) == {"azure", "openai", "xai", "openrouter"}
    for slug, candidate in speaking.items():
        call = call_with({"model": "m", "input": items, "max_tokens": 9, "provider": {"max_price": {"prompt": "99"}}})
        request = read_responses_request(call)
        chat = read_chat_request(msgspec.structs.replace(call, json=request.chat), Settings(), request)
        sent = ResponsesApi(chat, request, candidate).body(4096)
        assert (sent["store"], sent["max_output_tokens"], "max_tokens" in sent) == (False, 9, False), slug
        assert sent["model"] == candidate.model.upstream
        role = "system" if slug == "xai" else "developer"
        assert [item["role"] for item in sent["input"]] == [role, "user"], slug
        if slug == "openrouter":
            assert sent["provider"]["max_price"] == openrouter.MAX_PRICE


def test_a_stream_that_does_not_come_to_its_content_is_given_up() -> None:
    """What came before the content is kept until then, so it has a limit."""
    relay = _ResponsesRelay("m")
    event = {"type": "response.in_progress", "response": {"instructions": "x" * 2**20}}
    data = b"data: " + msgspec.json.encode(event) + b"\n\n"
    assert {relay.feed(data) for _ in range(15)} == {b""}
    with pytest.raises(StreamBroken, match="too many events without content"):
        relay.feed(data)


@pytest.mark.parametrize("usage", ["x", [], {"input_tokens": "x"}, {"input_tokens_details": []}])
def test_a_malformed_usage_is_estimated_and_does_not_hide_the_answer(usage: Any) -> None:
    response = {"status": "completed", "model": "p", "output": [{"type": "message"}], "usage": usage}
    call = call_with({"model": "m", "input": "hi"})
    request = read_responses_request(call)
    chat = read_chat_request(msgspec.structs.replace(call, json=request.chat), Settings(), request)
    provider = next(provider for provider in providers.discover() if provider.slug == "openai")
    model = next(model for model in provider.models if model.op.responses)
    api = ResponsesApi(chat, request, Candidate(provider, model))
    body = msgspec.json.encode(response)
    read = api.read(body)
    assert (read.usage, read.is_empty, read.error) == (None, False, b"")
    estimated = Usage(prompt_tokens=3, completion_tokens=4)
    assert json.loads(api.whole(body, estimated, ZERO))["usage"]["input_tokens"] == 3
    relay = _ResponsesRelay("m")
    relay.feed(b"data: " + msgspec.json.encode({"type": "response.completed", "response": response}) + b"\n\n")
    assert (relay.done, relay.usage) == (True, None)
    assert b'"input_tokens":3' in relay.last_event(estimated, ZERO)


def test_encrypted_reasoning_counts_as_input() -> None:
    """The provider reads the whole item again, and bills it."""
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" * 5000}
    readable = {**item, "content": [{"type": "reasoning_text", "text": "y" * 7000}]}
    found = []
    for items in ([], [item], [readable]):
        call = call_with({"model": "m", "input": [*items, {"role": "user", "content": "hi"}]})
        request = read_responses_request(call)
        chat = read_chat_request(msgspec.structs.replace(call, json=request.chat), Settings(), request)
        found.append(chat.max_text_tokens)
    assert found[1] - found[0] > 5000
    assert found[2] - found[1] > 7000


# -------------------------------------------------------------------------------------------------------------- streams


@sqlite_only
async def test_a_stream_passes_through_event_by_event(installation: Installation) -> None:
    async with client(installation) as (ours, api):
        async with ours.responses.stream(model="lab/chat", input="one two three", include=ENCRYPTED) as stream:
            events = [event async for event in stream]
            final = await stream.get_final_response()
        kinds = [event.type for event in events]
        assert kinds[:2] == ["response.created", "response.in_progress"]
        assert kinds[-1] == "response.completed"
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert {event.response.model for event in events if hasattr(event, "response")} == {"lab/chat"}
        assert final.output_text == "one two three"
        assert getattr(final.usage, "cost", None) == pytest.approx(COST)
        (found,) = await ended_records(api.running, 1)
        assert (found["status"], found["cost"]) == ("completed", round(COST * 1e9))


@sqlite_only
async def test_the_bytes_of_events_stay_as_they_are(installation: Installation) -> None:
    delta = (
        b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta" , "delta":"\xc3\xa9 1.50",'
        b'"item_id":"m", "output_index":0,"content_index":0,"sequence_number":1, "odd":1.50}\n\n'
    )

    async def act(call: FakeCall) -> None:
        sent = list(call.accept().events)
        await call.exchange.begin(200, "text/event-stream", {})
        await call.exchange.more(b": waiting\n\n" + event_bytes(sent[0]))
        await call.exchange.more(delta)
        await call.exchange.more(event_bytes(sent[-1]) + b"data: [DONE]\n\n")
        await call.exchange.end()

    async with client(installation) as (_, api):
        api.running.lab.responses.next(act)
        body = (await api.call("POST", PATH, {"model": "lab/chat", "input": "one", "stream": True})).body
        assert body.startswith(b"event: response.created\n")
        assert delta in body
        assert b"[DONE]" not in body


@sqlite_only
async def test_a_stream_that_fails_before_its_first_word_goes_to_the_next_provider(installation: Installation) -> None:
    async with client(installation, annex=True) as (ours, api):
        api.running.lab.responses.next(_fails_after(2))
        async with ours.responses.stream(model="lab/chat", input="one two") as stream:
            final = await stream.get_final_response()
        assert final.output_text == "one two"
        assert (len(api.running.lab.responses), len(api.running.annex.chats)) == (1, 1)  # annex has no Responses API
        (found,) = await ended_records(api.running, 1)
        assert (found["status"], found["provider"]) == ("completed", "annex")


@sqlite_only
@pytest.mark.parametrize("act", [faults.cut_stream(5), "fails"])
async def test_a_stream_that_breaks_off_ends_with_a_failed_event_and_costs_nothing(
    installation: Installation, act: Any
) -> None:
    async with client(installation) as (ours, api):
        api.running.lab.responses.next(_fails_after(5) if act == "fails" else act)
        made = await ours.responses.create(model="lab/chat", input="one two", stream=True)
        events: list[Any] = [event async for event in made]
        assert events[-1].type == "response.failed"
        assert (events[-1].sequence_number, events[-1].response.status) == (5, "failed")
        assert events[-1].response.id == events[0].response.id
        assert events[-1].response.error.code == "server_error"
        (found,) = await ended_records(api.running, 1)
        assert (found["status"], found["cost"]) == ("upstream_failure", 0)
        assert (await api.running.transfers(found["id"]))["loss"] > 0


@sqlite_only
async def test_a_caller_who_hangs_up_pays_for_what_was_sent(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "_REASONING_END_SECONDS", 0.0)  # the provider says nothing more
    async with client(installation) as (ours, api):
        api.running.lab.responses.next(faults.stalled_stream(6))
        stream = await ours.responses.create(model="lab/chat", input="one two three", stream=True)
        async for event in stream:
            if event.type == "response.output_text.delta":
                break
        await stream.close()
        (found,) = await ended_records(api.running, 1)
        assert (found["status"], found["cost"] > 0) == ("cancelled", True)


def _fails_after(count: int) -> Any:
    """An act that sends so many events of a response, then says that it failed."""

    async def act(call: FakeCall) -> None:
        events = call.accept().events
        error = {"code": "server_error", "message": "It broke."}
        response = {"status": "failed", "error": error}
        failed = {"type": "response.failed", "sequence_number": count, "response": response}
        await call.exchange.begin(200, "text/event-stream", {})
        for event in [*events[:count], json.dumps(failed).encode()]:
            await call.exchange.more(event_bytes(event))
        await call.exchange.end()

    return act


def test_what_a_provider_behind_a_router_bills_the_operator_is_part_of_the_cost() -> None:
    usage = {"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.25}}
    read = _decode_response(msgspec.json.encode({"usage": usage}))
    assert read.chat_usage is not None
    assert read.chat_usage.cost_usd == Decimal("0.26")


def test_a_cost_that_is_not_a_number_is_left_out() -> None:
    usage = {"input_tokens": 3, "cost": {"total_cost": 0.25}, "cost_in_usd_ticks": "7", "cost_details": []}
    read = _decode_response(msgspec.json.encode({"usage": usage}))
    assert read.chat_usage is not None
    assert (read.chat_usage.input, read.chat_usage.cost_usd) == (3, None)
