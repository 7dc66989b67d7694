"""What is stored of chat calls, by the setting `payloads`."""

import json
from typing import Any

import msgspec
import pytest

from penstock.accounts.chat_settlement import ChatSettlement
from penstock.accounts.payloads import Leftovers
from penstock.api.responses import encode_body
from penstock.chat.endpoint import complete_chat
from penstock.errors import Problem
from penstock.generations.payloads import delete_expired, retrieve_payloads
from penstock.long_bodies.long_body import pieces_of
from penstock.providers.spec import Reply
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, files_with, sqlite_only

CANARY = "zxcanary-0147258369"


async def chat(running: RunningGateway, body_type: type[bytes | bytearray] = bytes, **more: Any) -> str:
    """Complete a chat, read all of its response, and return the id of its request."""
    body = {"model": "lab/chat", "messages": [{"role": "user", "content": CANARY}], "max_tokens": 20, **more}
    call = running.call(body, endpoint="/compat/v1/chat/completions")
    call = msgspec.structs.replace(call, body=body_type(call.body))
    response = await complete_chat(running.gateway, call)
    if response.chunks is not None:
        async for _ in response.chunks:
            pass
    return call.id


async def traces(running: RunningGateway) -> list[str]:
    await running.gateway.chat_settlement.catch_up(running.caller.org_id)
    found = await running.tables_with(CANARY)
    if running.gateway.store.dialect == "sqlite":
        found += files_with(running.gateway.settings.data, CANARY)
    return found


async def stored(running: RunningGateway, request_id: str) -> Any:
    await running.gateway.chat_settlement.catch_up(running.caller.org_id)
    response = await retrieve_payloads(running.gateway, running.call(request_id=request_id))
    return json.loads(bytes(encode_body(response)))


async def test_chats_are_stored_only_when_all_payloads_are(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="media") as running:
        for stream in (False, True):
            shown = await stored(running, await chat(running, stream=stream))
            assert (shown["request"], shown["response"]) == (None, None)
        assert await traces(running) == []


@pytest.mark.parametrize("body_type", [bytes, bytearray], ids=["short", "long"])
async def test_a_stored_chat_has_its_request_and_its_response(
    open_gateway: OpenGateway, body_type: type[bytes | bytearray]
) -> None:
    """The body of a long call is a bytearray, in which it was collected."""
    async with open_gateway(payloads="all") as running:
        whole = await stored(running, await chat(running, body_type))
        assert whole["request"]["messages"] == [{"role": "user", "content": CANARY}]
        assert whole["response"]["choices"][0]["message"]["content"] == CANARY
        streamed = await stored(running, await chat(running, stream=True))
        events = [line for line in streamed["response"].split("\n\n") if line]
        assert events[-1] == "data: [DONE]"
        assert json.loads(events[0].removeprefix("data: "))["object"] == "chat.completion.chunk"


@sqlite_only
async def test_long_bodies_are_neither_copied_nor_sent_in_one_piece(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All other calls would wait meanwhile. What is stored are the buffers in which they were collected."""
    text = "word " * 400_000
    replies: list[Reply] = []
    settled: list[Leftovers] = []
    async with open_gateway(payloads="all") as running:
        gateway = running.gateway
        gateway.upstream.on_exchange = lambda candidate, sent, reply: replies.append(reply)
        settle_later = ChatSettlement.settle_later

        def settle(settlement: ChatSettlement, reservation: Any, end: Any, leftovers: Leftovers, **more: Any) -> None:
            settled.append(leftovers)
            settle_later(settlement, reservation, end, leftovers, **more)

        monkeypatch.setattr(ChatSettlement, "settle_later", settle)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        running.lab.chats.next(faults.altered(choices=[choice]))
        call = running.call({"model": "lab/chat", "messages": [{"role": "user", "content": text}], "max_tokens": 20})
        call = msgspec.structs.replace(call, body=bytearray(call.body))
        response = await complete_chat(gateway, call)
        (leftovers,) = settled
        payload = leftovers.payload
        assert payload is not None
        assert payload.request is call.body
        assert payload.response is replies[0].body
        pieces = list(pieces_of(encode_body(response)))
        assert max(map(len, pieces)) <= 1024**2
        assert json.loads(b"".join(pieces))["choices"][0]["message"]["content"] == text


async def test_a_stored_chat_expires(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="all", payload_retention="1h") as running:
        request_id = await chat(running)
        assert await traces(running)
        running.clock.advance(3_601)
        await delete_expired(running.gateway)
        assert await traces(running) == []
        assert (await stored(running, request_id))["response"] is None


async def test_a_purged_chat_is_gone(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="all") as running:
        request_id = await chat(running)
        assert await traces(running)
        await running.purge(request_id)
        assert await traces(running) == []


@pytest.mark.parametrize("payloads", ["none", "media"])
async def test_a_failure_that_quotes_the_prompt(open_gateway: OpenGateway, payloads: str) -> None:
    async with open_gateway(payloads=payloads) as running:
        running.lab.chats.next(faults.error(400, f"I will not repeat {CANARY}.", "moderation_blocked"))
        with pytest.raises(Problem, match=CANARY):
            await chat(running)
        assert bool(await traces(running)) == (payloads == "media")
