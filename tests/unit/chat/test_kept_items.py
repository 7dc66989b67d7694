"""References to the items of earlier responses, as the AI SDK sends them unless it is told `store: false`."""

import json
from typing import Any

import msgspec
import pytest

from penstock.accounts import response_items
from penstock.chat.kept_items import items_of
from penstock.chat.responses import create_response
from penstock.errors import InvalidRequest, PayloadTooLarge
from penstock.generations.payloads import delete_expired
from penstock.schema import Caller, Response
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, caller_with, postgres_only, sqlite_only, two_providers
from tests.unit.chat.responses_calls import PATH

ECHO = "atelier/echo"
USER: dict[str, Any] = {"role": "user", "content": "one two three"}
MODELS: dict[str, Any] = {"payloads": "media", "disabled_providers": ()}


async def respond(running: RunningGateway, given: Any, *, caller: Caller | None = None, **more: Any) -> Any:
    """The response to a call, also of one that is streamed."""
    body = {"model": "lab/chat", "input": given, **more}
    response = await create_response(running.gateway, running.call(body, endpoint=PATH, caller=caller))
    if response.chunks is None:
        return as_json(response)
    events = b"".join([chunk async for chunk in response.chunks])
    return json.loads(events.split(b"data: ")[-1])["response"]


def as_json(response: Response) -> Any:
    return json.loads(bytes(response.body)) if response.body else msgspec.to_builtins(response.json)


def reference(item: Any) -> dict[str, Any]:
    return {"type": "item_reference", "id": item["id"]}


def sent(running: RunningGateway) -> Any:
    """The messages of the newest call that the provider got."""
    return running.lab.chats.received[-1].fields["messages"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("form", [{"type": "item_reference"}, {}], ids=["typed", "bare"])
async def test_a_second_turn_refers_to_the_answer_of_the_first(
    open_gateway: OpenGateway, stream: bool, form: dict[str, Any]
) -> None:
    async with open_gateway(**MODELS) as running:
        (message,) = (await respond(running, [USER], stream=stream))["output"]
        again = {"role": "user", "content": "again"}
        await respond(running, [USER, {**form, "id": message["id"]}, again], stream=stream)
        assert sent(running) == [USER, {"role": "assistant", "content": "one two three"}, again]


async def test_a_function_call_is_referred_to_beside_its_result(open_gateway: OpenGateway) -> None:
    tool = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'}}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [call]}}
    async with open_gateway(**MODELS) as running:
        running.lab.chats.next(faults.altered(choices=[choice]))
        (made,) = (await respond(running, [USER], tools=[tool]))["output"]
        result = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
        await respond(running, [USER, reference(made), result], tools=[tool])
        assert sent(running)[1]["tool_calls"] == [call]
        assert sent(running)[2] == {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}


async def test_an_answer_that_the_caller_hung_up_on_is_kept_as_far_as_it_came(open_gateway: OpenGateway) -> None:
    async with open_gateway(**MODELS) as running:
        body = {"model": "lab/chat", "input": [USER], "stream": True}
        response = await create_response(running.gateway, running.call(body, endpoint=PATH))
        assert response.chunks is not None
        item_id = ""
        async for chunk in response.chunks:
            for data in chunk.split(b"data: ")[1:]:
                event = json.loads(data.partition(b"\n\n")[0])
                item_id = event.get("item_id", item_id)
            if item_id:
                break
        await response.chunks.aclose()  # type: ignore[attr-defined]
        await respond(running, [USER, {"type": "item_reference", "id": item_id}, USER])
        said = sent(running)[1]
        assert said["role"] == "assistant"
        assert "one two three".startswith(said["content"])


async def test_other_organizations_cannot_refer_to_an_item(open_gateway: OpenGateway) -> None:
    async with open_gateway(**MODELS) as running:
        (message,) = (await respond(running, [USER]))["output"]
        other = await running.create_caller_in_new_org()
        with pytest.raises(InvalidRequest, match=r"`input\[1\]` refers to an item") as caught:
            await respond(running, [USER, reference(message)], caller=other)
        assert caught.value.param == "input[1]"


@pytest.mark.parametrize(
    ("settings", "fields"),
    [({"payloads": "none"}, {}), ({}, {"store": False})],
    ids=["the operator stores no texts", "the caller wants nothing stored"],
)
async def test_items_are_not_kept_where_nothing_is_to_be_stored(
    open_gateway: OpenGateway, settings: dict[str, Any], fields: dict[str, Any]
) -> None:
    async with open_gateway(**{**MODELS, **settings}) as running:
        for stream in (False, True):
            (message,) = (await respond(running, [USER], stream=stream, **fields))["output"]
            with pytest.raises(InvalidRequest, match="send the item itself"):
                await respond(running, [USER, reference(message)])
        assert await running.tables_with("msg_") == []


async def test_items_expire(open_gateway: OpenGateway) -> None:
    async with open_gateway(**MODELS, response_item_retention="2h") as running:
        (message,) = (await respond(running, [USER]))["output"]
        running.clock.advance(7_100)
        await respond(running, [USER, reference(message)])
        running.clock.advance(101)
        with pytest.raises(InvalidRequest, match="no longer"):
            await respond(running, [USER, reference(message)])
        await delete_expired(running.gateway)
        assert message["id"] not in str(await running.tables_with(message["id"]))


async def test_a_purge_removes_the_items_of_a_request(open_gateway: OpenGateway) -> None:
    async with open_gateway(**MODELS) as running:
        call = running.call({"model": "lab/chat", "input": [USER]}, endpoint=PATH)
        (message,) = as_json(await create_response(running.gateway, call))["output"]
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        assert await running.tables_with(message["id"])
        await running.purge(call.id)
        assert await running.tables_with(message["id"]) == []


async def test_an_organization_keeps_so_many_items(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_gateway(**MODELS) as running:
        made = []
        for _ in range(4):
            made += (await respond(running, [USER]))["output"]
            running.clock.advance(1)
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        monkeypatch.setattr(response_items, "MOST_ITEMS", 2)
        await delete_expired(running.gateway)
        for item in made[:2]:
            with pytest.raises(InvalidRequest):
                await respond(running, [USER, reference(item)])
        await respond(running, [USER, *map(reference, made[2:])])
        assert [message["role"] for message in sent(running)] == ["user", "assistant", "assistant"]


async def test_references_cannot_make_a_call_larger_than_a_body_may_be(open_gateway: OpenGateway) -> None:
    async with open_gateway(**MODELS, json_bytes=4_000) as running:
        long = {"role": "user", "content": "word " * 300}
        (message,) = (await respond(running, [long]))["output"]
        await respond(running, [USER, reference(message)])
        with pytest.raises(PayloadTooLarge) as caught:
            await respond(running, [USER, *[reference(message)] * 4])
        assert caught.value.param == "input"


async def test_a_long_item_is_not_kept(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_gateway(**MODELS) as running:
        monkeypatch.setattr(response_items, "_MOST_BYTES", 300)
        (short,) = (await respond(running, [USER]))["output"]
        (long,) = (await respond(running, [{"role": "user", "content": "word " * 100}]))["output"]
        await respond(running, [USER, reference(short)])
        with pytest.raises(InvalidRequest, match="does not keep"):
            await respond(running, [USER, reference(long)])


@postgres_only
async def test_another_process_finds_an_answer_at_once(open_gateway: OpenGateway) -> None:
    """Its settlement is not due yet, but the caller has the whole answer."""
    async with (
        two_providers() as labs,
        open_gateway(labs=labs, **MODELS) as first,
        open_gateway(labs=labs, **MODELS) as second,
    ):
        for stream in (False, True):
            (message,) = (await respond(first, [USER], stream=stream))["output"]
            await respond(second, [USER, reference(message), USER])
            assert sent(second)[1]["role"] == "assistant"


@sqlite_only
@pytest.mark.parametrize("stream", [False, True])
async def test_an_image_is_edited_in_a_later_turn_that_refers_to_it(open_gateway: OpenGateway, stream: bool) -> None:
    tool: Any = {"type": "image_generation", "model": "edit-1", "size": "64x64"}
    making = {**tool, "model": "image-1"}
    ask = {"role": "user", "content": "image_generation"}
    async with open_gateway(**MODELS) as running:
        made = await respond(running, [ask], model=ECHO, tools=[making], stream=stream)
        image = next(item for item in made["output"] if item["type"] == "image_generation_call")
        text = next(item for item in made["output"] if item["type"] == "message")
        await respond(running, [ask, reference(image), reference(text), ask], model=ECHO, tools=[tool], stream=stream)
        assert len(running.lab.edits.received) == 1, "the file of the image was edited"
        assert await running.tables_with(image["result"][:200]) == [], "the item has no copy of the file"


async def test_reasoning_is_kept_only_if_its_provider_can_read_it_again() -> None:
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "reasoning", "id": "rs_2", "encrypted_content": "x"},
        {"type": "message", "id": "msg_1"},
        {"type": "message", "id": None},
    ]
    assert [item.id for item in items_of(json.dumps({"output": output}).encode())] == ["rs_2", "msg_1"]
    assert items_of(b"") == []


async def test_only_what_was_referred_to_before_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway(**MODELS) as running:
        unknown = {"type": "item_reference", "id": "rs_unknown"}
        await respond(running, [USER, unknown])
        assert sent(running) == [USER]
        for wrong in ({"type": "item_reference"}, {"type": "item_reference", "id": 3}, {"id": "msg_9"}):
            with pytest.raises(InvalidRequest, match=r"input\[1\]"):
                await respond(running, [USER, wrong])


async def test_a_key_of_the_same_organization_can_refer_to_an_item(open_gateway: OpenGateway) -> None:
    async with open_gateway(**MODELS) as running:
        (message,) = (await respond(running, [USER]))["output"]
        await respond(running, [USER, reference(message)], caller=caller_with(running.caller, key_id="key_other"))
