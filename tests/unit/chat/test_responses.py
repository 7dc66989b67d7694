"""OpenAI's Responses API with OpenAI's own client: text, images, tools, structured outputs, streams, the image tool."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from penstock.long_bodies.long_body import LongBody
from tests.api.http_calls import ServedApi, checked_json, served_api
from tests.fake_providers import faults
from tests.fake_providers.scripted import mask, noise
from tests.fake_providers.server import Act, FakeCall, event_bytes
from tests.gateway import OpenGateway, sqlite_only
from tests.unit.chat.chat_calls import ended_records
from tests.unit.chat.responses_calls import DATA_URI, PATH, WEATHER

pytestmark = sqlite_only
ECHO = "atelier/echo"
MASK_URI = f"data:image/png;base64,{base64.b64encode(mask(16, 16)).decode()}"


class Pear(BaseModel):
    colour: str
    weight: int


@asynccontextmanager
async def client(open_gateway: OpenGateway, **options: Any) -> AsyncIterator[tuple[AsyncOpenAI, ServedApi]]:
    async with (
        served_api(open_gateway, disabled_providers=(), **options) as api,
        AsyncOpenAI(api_key=api.running.key, base_url=api.base_url, max_retries=0) as opened,
    ):
        yield opened, api


async def test_a_text_with_instructions_usage_and_cost(open_gateway: OpenGateway) -> None:
    async with client(open_gateway) as (ours, api):
        response = await ours.responses.create(
            model="lab/chat",
            instructions="Be brief.",
            input="one two three",
            max_output_tokens=20,
            reasoning={"effort": "low"},
            text={"verbosity": "low"},
            metadata={"who": "me"},
            store=False,
            user="u1",
        )
        assert (response.output_text, response.status, response.object) == ("one two three", "completed", "response")
        assert response.metadata == {"who": "me"}
        assert response.usage is not None
        assert (response.usage.input_tokens, response.usage.output_tokens, response.usage.total_tokens) == (5, 3, 8)
        assert getattr(response.usage, "cost", None) == pytest.approx(5e-6 + 3 * 2e-6)
        sent = api.running.lab.chats.received[0].fields
        assert [message["role"] for message in sent["messages"]] == ["system", "user"]
        assert (sent["max_tokens"], sent["reasoning_effort"], sent["verbosity"]) == (20, "low", "low")
        assert not {"input", "instructions", "metadata", "store", "text", "reasoning"} & set(sent)
        record = (await api.call("GET", f"/v1/requests/{response._request_id}")).json
        assert (record["endpoint"], record["status"], record["user"]) == (PATH, "completed", "u1")
        assert record["response_size_bytes"] > 500
        whole = await api.call("POST", PATH, {"model": ECHO, "input": "hi"})
        checked_json("ModelResponse", whole)


async def test_a_conversation_with_images_and_earlier_items(open_gateway: OpenGateway) -> None:
    async with client(open_gateway) as (ours, api):
        earlier: Any = [
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": [{"type": "input_text", "text": "what?"},
                                         {"type": "input_image", "image_url": DATA_URI, "detail": "low"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
             "content": [{"type": "output_text", "text": "A pear.", "annotations": []}]},
            {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"},
            {"type": "function_call", "call_id": "c2", "name": "get_weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "rain"},
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "sun"}]},
            {"role": "user", "content": "and now?"},
        ]  # fmt: skip
        response = await ours.responses.create(model="lab/chat", input=earlier, tools=[WEATHER])
        assert response.output_text == "and now?"
        messages = api.running.lab.chats.received[0].fields["messages"]
        assert [message["role"] for message in messages] == [
            "developer", "user", "assistant", "tool", "tool", "user",
        ]  # fmt: skip
        assert messages[1]["content"][1] == {"type": "image_url", "image_url": {"url": DATA_URI, "detail": "low"}}
        assert messages[2]["content"] == "A pear."
        assert [call["id"] for call in messages[2]["tool_calls"]] == ["c1", "c2"]
        assert [message["content"] for message in messages[3:5]] == ["rain", "sun"]


async def test_functions_are_called_and_their_results_answered(open_gateway: OpenGateway) -> None:
    async with client(open_gateway) as (ours, _):
        ask: Any = [{"role": "user", "content": "please get_weather of Rome"}]
        first = await ours.responses.create(model=ECHO, input=ask, tools=[WEATHER], parallel_tool_calls=False)
        call = first.output[0]
        assert call.type == "function_call"
        assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "echo"})
        output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "It rains."}
        conversation: Any = [*ask, call, output]
        second = await ours.responses.create(model=ECHO, input=conversation, tools=[WEATHER])
        assert second.output_text == "It rains."
        forced = await ours.responses.create(
            model=ECHO, input="hi", tools=[WEATHER], tool_choice={"type": "function", "name": "get_weather"}
        )
        assert forced.output[0].type == "function_call"


async def test_structured_outputs(open_gateway: OpenGateway) -> None:
    async with client(open_gateway) as (ours, _):
        parsed = await ours.responses.parse(model=ECHO, input="a pear", text_format=Pear)
        assert parsed.output_parsed == Pear(colour="echo", weight=1)
        plain = await ours.responses.create(model=ECHO, input="a pear", text={"format": {"type": "json_object"}})
        assert json.loads(plain.output_text) == {"echo": "a pear"}


TEXT_EVENTS = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]
CALL_EVENTS = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
    "response.completed",
]


async def test_streams_have_the_documented_events(open_gateway: OpenGateway) -> None:
    async with client(open_gateway) as (ours, api):
        stream = await ours.responses.create(model="lab/chat", input="hello you", stream=True)
        events = [event async for event in stream]
        assert [event.type for event in events] == TEXT_EVENTS
        assert [event.sequence_number for event in events] == list(range(len(events)))
        last = events[-1]
        assert last.type == "response.completed"
        assert (last.response.output_text, last.response.status) == ("hello you", "completed")
        assert last.response.usage is not None
        assert (last.response.usage.total_tokens, getattr(last.response.usage, "cost", 0) > 0) == (4, True)
        async with ours.responses.stream(model=ECHO, input="get_weather", tools=[WEATHER]) as helper:
            types = [event.type async for event in helper]
            final = await helper.get_final_response()
        assert list(dict.fromkeys(types)) == CALL_EVENTS
        call = final.output[0]
        assert call.type == "function_call"
        assert json.loads(call.arguments) == {"city": "echo"}
        async with ours.responses.stream(model=ECHO, input="a pear", text_format=Pear) as helper:
            async for _ in helper:
                pass
            assert (await helper.get_final_response()).output_parsed == Pear(colour="echo", weight=1)
        api.running.lab.chats.next(faults.cut_stream(3))
        broken = await ours.responses.create(model="lab/chat", input="hello you", stream=True)
        failed = [event async for event in broken][-1]
        assert failed.type == "response.failed"
        assert failed.response.error is not None


async def test_reasoning_and_a_cut_answer_are_shown_as_such(open_gateway: OpenGateway) -> None:
    message = {"role": "assistant", "content": "Four.", "reasoning_content": "2 + 2"}
    async with client(open_gateway) as (ours, api):
        choice = {"index": 0, "message": message, "finish_reason": "length"}
        api.running.lab.chats.next(faults.altered(choices=[choice]))
        response = await ours.responses.create(model="lab/chat", input="2 + 2?")
        assert [item.type for item in response.output] == ["reasoning", "message"]
        assert response.status == "incomplete"
        assert response.incomplete_details is not None
        assert response.incomplete_details.reason == "max_output_tokens"


async def test_the_image_tool_makes_images_with_the_gateways_models(open_gateway: OpenGateway) -> None:
    tool: Any = {"type": "image_generation", "model": "image-1", "size": "64x64", "quality": "auto"}
    async with client(open_gateway) as (ours, api):
        response = await ours.responses.create(
            model=ECHO, input="a pear", tools=[tool], tool_choice={"type": "image_generation"}
        )
        image, message = response.output
        assert image.type == "image_generation_call"
        assert image.status == "completed"
        assert base64.b64decode(image.result or "").startswith(b"\x89PNG")
        assert message.type == "message"
        assert api.running.lab.images.received[0].fields["prompt"] == "echo"
        assert response.usage is not None
        assert getattr(response.usage, "cost", 0) > 0.04
        records = (await api.call("GET", "/v1/requests")).json["data"]
        assert sorted(record["endpoint"] for record in records) == [
            "/compat/v1/images/generations", PATH, PATH,
        ]  # fmt: skip
        assert sum(record["cost"] for record in records) == pytest.approx(getattr(response.usage, "cost", 0))
        api.running.lab.images.next(faults.blocked)
        stream = await ours.responses.create(model=ECHO, input="image_generation", tools=[tool], stream=True)
        events = [event async for event in stream]
        types = [event.type for event in events]
        assert types[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
        assert "response.image_generation_call.generating" in types
        assert types[-1] == "response.completed"
        last = events[-1]
        assert last.type == "response.completed"
        failed = last.response.output[0]
        assert failed.type == "image_generation_call"
        assert failed.status == "failed"


def asking_for_images(count: int) -> Act:
    """A message of a model that asks for so many images at once."""
    call = {"type": "function", "function": {"name": "image_generation", "arguments": '{"prompt": "a pear"}'}}
    calls = [{"id": f"call_{number}", **call} for number in range(count)]
    choice = {
        "index": 0,
        "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": None, "tool_calls": calls},
    }
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    chat = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return faults.raw(json.dumps(chat).encode())


@pytest.mark.parametrize(("limit", "made"), [(None, 10), (3, 3), (1, 1), (0, 0), (50, 10)])
async def test_a_call_makes_a_limited_number_of_images(open_gateway: OpenGateway, limit: int | None, made: int) -> None:
    """Whatever the model asks for, which may follow the words of a stranger in the conversation."""
    tool: Any = {"type": "image_generation", "model": "image-1", "size": "64x64"}
    async with client(open_gateway) as (_, api):
        api.running.lab.chats.always(asking_for_images(7))
        limited = {} if limit is None else {"max_tool_calls": limit}
        body = {"model": "lab/chat", "input": "a pear", "tools": [tool], **limited}
        response = (await api.call("POST", PATH, body)).json
        assert len(api.running.lab.images.received) == made
        assert [item["type"] for item in response["output"]] == ["image_generation_call"] * made
        assert len(api.running.lab.chats.received) <= 4
        assert api.running.lab.chats.received[-1].fields["tool_choice"] == "none"


@pytest.mark.parametrize("stream", [False, True])
async def test_what_was_made_is_returned_when_a_later_step_is_refused(open_gateway: OpenGateway, stream: bool) -> None:
    tool: Any = {"type": "image_generation", "model": "image-1", "size": "64x64"}
    async with client(open_gateway) as (_, api):
        api.running.lab.chats.next(asking_for_images(1), faults.busy())
        body = {"model": "lab/chat", "input": "a pear", "tools": [tool], "stream": stream}
        response = await api.call("POST", PATH, body)
        assert response.status == 200
        if not stream:
            last = response.json
        else:
            events = [line for line in response.body.split(b"\n") if line.startswith(b"data: {")]
            last = json.loads(events[-1].removeprefix(b"data: "))["response"]
        assert (last["status"], last["error"]["code"]) == ("failed", "rate_limit_exceeded")
        (image,) = last["output"]
        assert base64.b64decode(image["result"]).startswith(b"\x89PNG")


async def test_the_image_tool_returns_an_image_that_the_gateway_has_converted(open_gateway: OpenGateway) -> None:
    """Its base64 is then not the provider's text."""
    tool: Any = {"type": "image_generation", "model": "image-1", "size": "64x64", "output_format": "jpeg"}
    async with client(open_gateway) as (ours, _):
        response = await ours.responses.create(
            model=ECHO, input="a pear", tools=[tool], tool_choice={"type": "image_generation"}
        )
        image = response.output[0]
        assert image.type == "image_generation_call"
        assert base64.b64decode(image.result or "").startswith(b"\xff\xd8\xff")


@pytest.mark.parametrize("stream", [False, True])
async def test_the_image_tool_waits_for_its_images_whatever_the_caller_prefers(
    open_gateway: OpenGateway, stream: bool
) -> None:
    """An asynchronous image would be paid for, and the response would not have it."""
    tool: Any = {"type": "image_generation", "model": "image-1", "size": "64x64"}
    body = {"model": ECHO, "input": "a pear", "tools": [tool], "tool_choice": {"type": "image_generation"}}
    async with client(open_gateway) as (_, api):
        headers = {"prefer": "respond-async"}
        response = await api.call("POST", PATH, {**body, "stream": stream}, headers=headers)
        assert response.status == 200
        assert b"iVBORw0KGgo" in response.body, "a PNG in base64"


async def test_the_image_tool_edits_the_images_of_the_conversation(open_gateway: OpenGateway) -> None:
    tool: Any = {"type": "image_generation", "model": "edit-1", "size": "64x64"}
    sent: Any = {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "image_generation"},
            {"type": "input_image", "image_url": DATA_URI},
        ],
    }
    asked: Any = {"role": "user", "content": "image_generation"}
    async with client(open_gateway) as (ours, api):
        lab = api.running.lab
        image, _ = (await ours.responses.create(model=ECHO, input=[sent], tools=[tool])).output
        assert image.type == "image_generation_call"
        assert (image.status, getattr(image, "action", None)) == ("completed", "edit")
        assert len(lab.edits.received[0].fields["image"]) == 1

        earlier: Any = image.model_dump()
        await ours.responses.create(model=ECHO, input=[asked, earlier, asked], tools=[tool])
        assert len(lab.edits.received) == 2, "the image of the turn before is edited"

        others: list[Any] = [{**tool, "model": "image-1"}, {**tool, "model": "image-1", "action": "generate"}]
        for other in others:
            await ours.responses.create(model=ECHO, input=[sent], tools=[other])
        assert (len(lab.edits.received), len(lab.images.received)) == (2, 2), "this model cannot edit, or may not"

        masked: Any = {**tool, "action": "edit", "input_image_mask": {"image_url": MASK_URI}}
        await ours.responses.create(model=ECHO, input=[sent], tools=[masked])
        assert lab.edits.received[2].fields.get("mask") is not None
        demanded: Any = {**tool, "action": "edit"}
        with pytest.raises(openai.BadRequestError, match="nothing to edit"):
            await ours.responses.create(model=ECHO, input=[asked], tools=[demanded])


@pytest.mark.parametrize("is_earlier", [False, True], ids=["sent by the user", "made before"])
async def test_a_large_image_is_edited_without_joining_a_call_in_one_step(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, is_earlier: bool
) -> None:
    """The call of each step has the image again; no other thread runs while its parts are joined."""
    data = base64.b64encode(noise(900)).decode()
    uri = f"data:image/png;base64,{data}"
    image: Any = {"role": "user", "content": [{"type": "input_image", "image_url": uri}]}
    if is_earlier:
        image = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": data}
    tool: Any = {"type": "image_generation", "model": "edit-1", "size": "64x64", "action": "edit"}
    body = {"model": ECHO, "input": [image, {"role": "user", "content": "image_generation"}], "tools": [tool]}
    join = LongBody.__bytes__

    def checked(body: LongBody) -> bytes:
        assert len(body) < 1024**2, "it is joined in one step"
        return join(body)

    async with client(open_gateway) as (_, api):
        monkeypatch.setattr(LongBody, "__bytes__", checked)
        response = await api.call("POST", PATH, body)
        assert [item["type"] for item in response.json["output"]] == ["image_generation_call", "message"]
        (sent,) = api.running.lab.edits.received
        assert base64.b64encode(sent.fields["image"][0]).decode() == data


async def test_what_needs_a_store_or_another_tool_is_refused_by_name(open_gateway: OpenGateway) -> None:
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"background": True}, "background"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"truncation": "auto"}, "truncation"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "input[0].content[0]"),
        ({"input": []}, "input"),
        ({"input": None}, "input"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"temperature": 3}, "temperature"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "name": "other"}}, "tool_choice"),
    )
    async with client(open_gateway) as (ours, api):
        for more, param in refused:
            body = {"model": ECHO, "input": "hi", **more}
            called = await api.call("POST", PATH, body)
            assert (called.status, called.code, called.json["error"]["param"]) == (400, "INVALID_REQUEST", param)
        with pytest.raises(openai.NotFoundError):
            await ours.responses.create(model="no/such", input="hi")
        estimate = await api.call("POST", f"{PATH}?dryRun=true", {"model": ECHO, "input": "hi"})
        checked_json("Estimate", estimate)


@pytest.mark.parametrize(
    "piece",
    [
        {"content": 2},
        {"tool_calls": [7]},
        {"tool_calls": [{"index": 0, "id": "c", "function": {"arguments": "{}"}}]},
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": {}}}, {"index": 0, "function": 5}]},
        b'{"choices":[{"index":0,"delta":{"content":"t',
    ],
)
async def test_a_stream_that_cannot_be_translated_ends_with_a_failed_event_and_costs_nothing(
    open_gateway: OpenGateway, piece: dict[str, Any] | bytes
) -> None:
    """The provider is to blame, so its caller neither pays nor is said to have left."""

    async def act(call: FakeCall) -> None:
        sent = list(call.accept().events)
        chunk = {**json.loads(sent[0]), "choices": [{"index": 0, "delta": piece, "finish_reason": None}]}
        await call.exchange.begin(200, "text/event-stream", {})
        for event in (sent[0], sent[1], piece if isinstance(piece, bytes) else json.dumps(chunk).encode(), *sent[2:]):
            await call.exchange.more(event_bytes(event))
        await call.exchange.end()

    async with client(open_gateway) as (ours, api):
        before = await api.running.money()
        api.running.lab.chats.next(act)
        stream = await ours.responses.create(model="lab/chat", input="one two three", stream=True)
        last = [event async for event in stream][-1]
        assert last.type == "response.failed"
        (found,) = await ended_records(api.running, 1)
        assert (found["status"], found["cost"]) == ("upstream_failure", 0)
        assert (await api.running.transfers(found["id"]))["loss"] > 0
        assert await api.running.money() == before


@pytest.mark.parametrize("tools", [[], [{"type": "image_generation", "model": "image-1"}]])
async def test_a_response_that_cannot_be_translated_goes_to_the_next_provider(
    open_gateway: OpenGateway, tools: list[Any]
) -> None:
    """What the first one bills for it is a loss, and nothing of its response is shown."""
    message = {"role": "assistant", "content": "Half.", "tool_calls": [{"id": "c1", "type": "function"}]}
    async with client(open_gateway, annex=True) as (ours, api):
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        api.running.lab.chats.next(faults.altered(choices=[choice]))
        response = await ours.responses.create(model="lab/chat", input="one two three", tools=tools)
        assert response.output_text == "one two three"
        (found,) = await ended_records(api.running, 1)
        assert (found["status"], found["provider"]) == ("completed", "annex")
        assert (await api.running.transfers(found["id"]))["loss"] > 0
