"""Chats and responses that are recorded and replayed: modes, matches, pauses, money, and the files of recordings."""

import asyncio
import json
from typing import Any

import pytest

from penstock.chat.endpoint import complete_chat
from penstock.chat.responses import create_response
from penstock.errors import InvalidRequest, NotFound, Problem, RecordingNotFound
from penstock.long_bodies.long_body import whole
from penstock.recordings import files, folders
from penstock.schema import Caller, Response
from tests.api.http_calls import checked_json, served_api
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, caller_with, sqlite_only
from tests.unit.chat.responses_calls import PATH

CHAT = "/compat/v1/chat/completions"
ASK = "one two three"
OPTIONS: dict[str, Any] = {"disabled_providers": ()}


async def ask(
    running: RunningGateway,
    text: str = ASK,
    mode: str | None = "replay-or-record",
    *,
    api: str = CHAT,
    caller: Caller | None = None,
    **more: Any,
) -> tuple[Response, bytes]:
    """Make a call and read all of its response."""
    headers = {"x-service-replay": mode} if mode else {}
    headers |= {f"x-service-replay-{name}": str(more.pop(name)) for name in ("match", "latency", "fields", "recording")
                if name in more}  # fmt: skip
    said = {"input": text} if api == PATH else {"messages": [{"role": "user", "content": text}]}
    call = running.call({"model": "lab/chat", **said, **more}, endpoint=api, headers=headers, caller=caller)
    response = await (create_response if api == PATH else complete_chat)(running.gateway, call)
    if response.chunks is None:
        return response, bytes(whole(response.body or b""))
    return response, b"".join([chunk async for chunk in response.chunks])


def status(response: Response) -> str:
    return response.headers["x-service-replay-status"]


@pytest.mark.parametrize("api", [CHAT, PATH])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_recorded_call_is_replayed_for_nothing(open_gateway: OpenGateway, api: str, stream: bool) -> None:
    async with open_gateway(**OPTIONS) as running:
        made, first = await ask(running, api=api, stream=stream)
        assert status(made) == "recorded"
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        before = await running.money()
        found, second = await ask(running, api=api, stream=stream)
        assert status(found) == "replayed"
        assert found.headers["x-service-replay-recording"] == made.headers["x-service-replay-recording"]
        assert found.headers["x-service-executed-model"] == made.headers["x-service-executed-model"]
        assert len(running.lab.chats.received) == 1
        if api == CHAT:
            assert second == first
        else:
            assert b'"cost":0,' in second
            assert b'"cost":0,' not in first
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        assert await running.money() == before
        records = await running.records()
        assert [record["status"] for record in records] == ["completed"] * 2
        assert sorted(record["cost"] > 0 for record in records) == [False, True]
        (row,) = await running.gateway.recordings.all(running.caller.org_id)
        assert row.kind == ("chat" if api == CHAT else "response")


@sqlite_only
async def test_what_each_match_compares(open_gateway: OpenGateway) -> None:
    async with open_gateway(**OPTIONS) as running:
        await ask(running, "a pear", "record", temperature=0.5)
        running.clock.advance(1)
        recorded = (await ask(running, "a fox", "record", temperature=0.5))[1]
        for match, text, more, expected in (
            ("standard", "a bird", {}, recorded),  # the newest
            ("standard", "a fox", {}, recorded),
            ("exact", "a fox", {}, recorded),
            ("exact", "a fox", {"user": "u"}, recorded),
            ("exact", "a bird", {}, None),
            ("standard", "a fox", {"temperature": 0.6}, None),
            ("strict", "a fox", {}, recorded),
            ("strict", "a fox", {"user": "u"}, None),
            ("specific", "a bird", {"fields": "temperature", "max_tokens": 7}, recorded),
            ("specific", "a bird", {"fields": "messages"}, None),
        ):
            asked: dict[str, Any] = {"temperature": 0.5, **more}
            if expected is None:
                with pytest.raises(RecordingNotFound):
                    await ask(running, text, "replay-or-error", match=match, **asked)
            else:
                assert (await ask(running, text, "replay-or-error", match=match, **asked))[1] == expected, (match, text)
        first = (await ask(running, "a pear", "replay-or-error", temperature=0.5))[1]
        assert b"pear" in first, "of alike recordings the one with the same words"


@sqlite_only
async def test_a_conversation_of_another_shape_does_not_match(open_gateway: OpenGateway) -> None:
    """So each step of a loop with tools finds its own recording, whatever it says."""
    first = [{"role": "user", "content": "weather?"}]
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    second = [*first, {"role": "assistant", "content": None, "tool_calls": [call]},
              {"role": "tool", "tool_call_id": "c1", "content": "sunny"}]  # fmt: skip
    reworded = json.loads(json.dumps(second).replace("sunny", "rainy").replace("c1", "c2"))
    async with open_gateway(**OPTIONS) as running:
        for messages in (first, second):
            assert status((await ask(running, messages=messages))[0]) == "recorded"
        assert status((await ask(running, messages=reworded))[0]) == "replayed"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("record", "recorded"),
        ("replay-or-record", "recorded"),
        ("replay-or-live", "live"),
        ("replay-or-mock", "mocked"),
        ("mock", "mocked"),
        ("replay-or-error", None),
    ],
)
@sqlite_only
async def test_a_mode_of_the_key_fails_no_chat_unless_it_says_so(
    open_gateway: OpenGateway, mode: str, expected: str | None
) -> None:
    async with open_gateway(**OPTIONS) as running:
        caller = caller_with(running.caller, replay_mode=mode)
        for api in (CHAT, PATH):
            for stream in (False, True):
                if expected:
                    response, _ = await ask(running, mode=None, api=api, stream=stream, caller=caller)
                    assert status(response) == expected
                else:
                    with pytest.raises(RecordingNotFound, match="--penstock-record"):
                        await ask(running, mode=None, api=api, stream=stream, caller=caller)
        assert "x-service-replay-status" not in (await ask(running, mode="off", caller=caller))[0].headers


@sqlite_only
async def test_pauses_of_a_stream_are_recorded_and_replayed(open_gateway: OpenGateway) -> None:
    async with open_gateway(**OPTIONS) as running:
        await ask(running, stream=True)
        (row,) = await running.gateway.recordings.all(running.caller.org_id)
        chunks = (await running.gateway.recordings.get(running.caller.org_id, row.id)).decode_result().chunks
        assert chunks
        assert sum(size for _, size in chunks) > 100
        started = running.clock.monotonic()
        slept: list[float] = []
        caller = asyncio.current_task()
        wait = running.clock.sleep

        async def sleep(seconds: float) -> None:
            if asyncio.current_task() is not caller:  # work in the background
                return await wait(seconds)
            slept.append(seconds)
            running.clock.advance(seconds)
            return None

        running.clock.sleep = sleep  # type: ignore[method-assign]
        await ask(running, stream=True, latency="100,900")
        assert running.clock.monotonic() - started == pytest.approx(0.9, abs=0.01)
        assert slept[0] == pytest.approx(0.1, abs=0.01)
        await ask(running, stream=True, latency="real")
        await ask(running, mode="mock", stream=True, latency="100,300")
        await ask(running, mode="mock", latency="100,300")


@sqlite_only
async def test_a_stream_that_breaks_is_not_recorded(open_gateway: OpenGateway) -> None:
    async with open_gateway(**OPTIONS) as running:
        running.lab.chats.next(faults.cut_stream())
        await ask(running, stream=True)
        assert await running.gateway.recordings.all(running.caller.org_id) == []
        running.lab.chats.next(faults.error(500, "no"))
        with pytest.raises(Problem):
            await ask(running)
        assert await running.gateway.recordings.all(running.caller.org_id) == []


@sqlite_only
async def test_a_chat_that_cannot_be_recorded_is_answered_all_the_same(open_gateway: OpenGateway) -> None:
    async with open_gateway(**OPTIONS, storage_bytes_per_org=10) as running:
        response, body = await ask(running)
        assert (status(response), b"one two three" in body) == ("live", True)
    async with open_gateway(**OPTIONS, payloads="none") as running:
        with pytest.raises(InvalidRequest, match="cannot record"):
            await ask(running)


@sqlite_only
async def test_a_replayed_response_can_be_referred_to(open_gateway: OpenGateway) -> None:
    """A test replays both turns of a client that sends only the id of the first answer."""
    async with open_gateway(**OPTIONS) as running:
        for stream in (False, True):
            made = []
            for _ in range(2):
                _, body = await ask(running, api=PATH, stream=stream)
                last = json.loads(body.split(b"data: ")[-1])
                (item,) = (last["response"] if stream else last)["output"]
                turns = [{"role": "user", "content": ASK}, {"type": "item_reference", "id": item["id"]},
                         {"role": "user", "content": "four"}]  # fmt: skip
                response, _ = await ask(running, api=PATH, input=turns, stream=stream)
                made.append(status(response))
                running.clock.advance(90_000)
            assert made == ["recorded", "replayed"]


@sqlite_only
async def test_recordings_of_chats_are_exported_imported_and_deleted(open_gateway: OpenGateway, tmp_path: Any) -> None:
    folder = tmp_path / "recordings"
    async with open_gateway(**OPTIONS) as running:
        gateway, org = running.gateway, running.caller.org_id
        await ask(running, stream=True)
        await ask(running)
        await ask(running, "word " * 20_000, "record")
        for row in await gateway.recordings.all(org):
            document, media = await files.export_recording(
                gateway.recordings, await gateway.recordings.get(org, row.id)
            )
            folders.save_recording(folder, document, media)
            await gateway.recordings.delete(org, row.id)
        names = sorted(path.suffix for path in folder.iterdir())
        assert names == [".json", ".json", ".json", ".sse", ".txt", ".txt"]
        for path in sorted(folder.glob("*.json")):
            loaded = folders.load_recording(path)
            await files.import_recording(
                gateway.store, gateway.recordings, org, *loaded, running.clock.now_ms(), pool=gateway.worker_pool
            )
        for stream in (False, True):
            assert status((await ask(running, mode="replay-or-error", match="exact", stream=stream))[0]) == "replayed"
        (newest, *_) = await gateway.recordings.all(org)
        await gateway.recordings.delete(org, newest.id)
        with pytest.raises(NotFound):
            await gateway.recordings.get(org, newest.id)


@sqlite_only
async def test_images_of_a_response_and_its_chats_are_recorded_step_by_step(open_gateway: OpenGateway) -> None:
    tool: Any = {"type": "image_generation", "model": "image-1", "size": "64x64"}
    async with open_gateway(**OPTIONS) as running:
        for _ in range(2):
            call = running.call(
                {"model": "atelier/echo", "input": "image_generation", "tools": [tool]},
                endpoint=PATH,
                headers={"x-service-replay": "replay-or-record"},
            )
            response = (await create_response(running.gateway, call)).json
            assert [item.type for item in response["output"]] == ["image_generation_call", "message"]
        assert len(running.lab.images.received) == 1
        kinds = sorted(row.kind for row in await running.gateway.recordings.all(running.caller.org_id))
        assert kinds == ["chat", "chat", "image"]


@sqlite_only
async def test_a_recorded_chat_is_listed_exported_and_imported_over_http(open_gateway: OpenGateway) -> None:
    body = {"model": "lab/chat", "messages": [{"role": "user", "content": ASK}], "stream": True}
    async with served_api(open_gateway, **OPTIONS) as api:
        await api.call("POST", CHAT, body, headers={"x-service-replay": "record"})
        (listed,) = checked_json("RecordingList", await api.call("GET", "/v1/recordings"))["data"]
        assert listed["kind"] == "chat"
        exported = await api.call("GET", f"/v1/recordings/{listed['id']}/export")
        checked_json("Recording", await api.call("POST", "/v1/recordings", exported.json))
        replayed = await api.call("POST", CHAT, body, headers={"x-service-replay": "replay-or-error"})
        assert replayed.headers["x-service-replay-status"] == "replayed"
