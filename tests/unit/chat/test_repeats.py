"""Chat calls that are sent again with their idempotency key: made once, charged once."""

import asyncio
import json
from typing import Any

import pytest

from penstock.chat import repeats
from penstock.errors import (
    IdempotencyCompleted,
    IdempotencyInProgress,
    InsufficientBalance,
    InvalidRequest,
    Problem,
    UnprocessableRequest,
    UpstreamOutcomeUnknown,
)
from penstock.long_bodies.long_body import whole
from penstock.schema import Caller, Response
from penstock.values import Nanos, dollars
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway
from tests.unit.chat.chat_calls import ASK, ended_records, last_record, read_stream

KEY = {"idempotency-key": "turn-1"}
PATH = "/compat/v1/chat/completions"


async def chat(
    running: RunningGateway, headers: Any = KEY, caller: Caller | None = None, dry_run: bool = False, **body: Any
) -> Response:
    query = {"dryRun": "true"} if dry_run else {}
    call = running.call({**ASK, **body}, endpoint=PATH, headers=headers, query=query, caller=caller)
    return await repeats.complete_chat(running.gateway, call)


def text(response: Response) -> bytes:
    assert response.body is not None
    return bytes(whole(response.body))


async def test_a_repeated_chat_is_answered_with_the_stored_response(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="all") as running:
        before, _ = await running.money()
        first = await chat(running)
        cost = (await last_record(running))["cost"]
        again = await chat(running)
        assert text(again) == text(first)
        assert again.headers["idempotent-replayed"] == "true"
        assert again.headers["x-request-id"] == (await running.records())[0]["id"]
        assert len(running.lab.chats) == 1
        assert cost > 0
        assert await running.money() == (before - cost, 0)


async def test_a_repeated_stream_is_sent_as_one_piece(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="all") as running:
        sent = await read_stream(await chat(running, stream=True))
        await last_record(running)
        again = await chat(running, stream=True)
        assert again.media_type == "text/event-stream"
        assert text(again) == sent
        assert len(running.lab.chats) == 1


async def test_without_a_stored_response_the_caller_is_told_its_cost(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await chat(running)
        record = await last_record(running)
        with pytest.raises(IdempotencyCompleted, match=f"cost {dollars(Nanos(record['cost']))} USD") as told:
            await chat(running)
        assert told.value.status == 409
        assert told.value.should_retry is False
        assert len(running.lab.chats) == 1


async def test_a_key_in_the_body_is_the_same_and_never_sent_to_a_provider(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await chat(running, {}, idempotency_key="turn-1")
        assert "idempotency_key" not in running.lab.chats.received[0].fields
        with pytest.raises(IdempotencyCompleted):
            await chat(running)


@pytest.mark.parametrize(
    ("headers", "body", "param"),
    [
        ({"idempotency-key": "a"}, {"idempotency_key": "b"}, "idempotency_key"),
        ({"idempotency-key": "k" * 257}, {}, "Idempotency-Key"),
        ({}, {"idempotency_key": " "}, "idempotency_key"),
        ({}, {"idempotency_key": 7}, "idempotency_key"),
    ],
)
async def test_a_bad_key_is_refused_by_name(open_gateway: OpenGateway, headers: Any, body: Any, param: str) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest) as refused:
            await chat(running, headers, **body)
        assert refused.value.param == param
        assert len(running.lab.chats) == 0


async def test_another_body_with_the_same_key_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await chat(running)
        with pytest.raises(UnprocessableRequest, match="req_") as refused:
            await chat(running, max_tokens=19)
        assert refused.value.param == "idempotency_key"


async def test_fifty_equal_chats_over_two_processes_are_one_call_and_one_charge(open_gateway: OpenGateway) -> None:
    gate = faults.Gate()
    async with (
        open_gateway(payloads="all") as running,
        open_gateway(payloads="all", labs=(running.lab, running.annex)) as other,
    ):
        before, _ = await running.money()
        running.lab.chats.next(gate)
        calls = [asyncio.ensure_future(chat(running if number % 2 else other)) for number in range(50)]
        await running.lab.chats.reached(1)

        async def others_told() -> bool:
            return sum(call.done() for call in calls) == 49

        await running.wait_until(others_told, step_seconds=0)
        told = [call.exception() for call in calls if call.done()]
        assert all(isinstance(problem, IdempotencyInProgress) for problem in told)
        assert {problem.headers["retry-after"] for problem in told if isinstance(problem, Problem)} == {"2"}
        gate.open()
        (first,) = [call for call in calls if not call.done()]
        body = text(await first)
        cost = (await last_record(running))["cost"]
        for gateway in (running, other):
            assert text(await chat(gateway)) == body
        assert len(running.lab.chats) == 1
        assert await running.money() == (before - cost, 0)


async def test_a_refusal_does_not_use_up_a_key(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        poor = await running.create_caller_in_new_org("0.000000001")
        with pytest.raises(InsufficientBalance):
            await chat(running, caller=poor)
        await running.add_credit("1", poor.org_id)
        assert json.loads(text(await chat(running, caller=poor)))["object"] == "chat.completion"


async def test_a_chat_that_failed_and_cost_nothing_is_made_again(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.chats.next(faults.error(500, "broken"))
        with pytest.raises(Problem):
            await chat(running, model="lab/chat")
        assert (await chat(running)).status == 200
        statuses = {record["status"] for record in await ended_records(running, 2)}
        assert statuses == {"upstream_failure", "completed"}


async def test_dry_runs_ignore_keys(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        for _ in range(2):
            assert (await chat(running, dry_run=True)).json["estimated"] is True
        await chat(running)


async def test_mocked_chats_ignore_keys(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        for _ in range(2):
            assert (await chat(running, {**KEY, "x-service-replay": "mock"})).status == 200
        assert len(running.lab.chats) == 0


async def test_a_call_that_never_ended_is_not_made_again(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        gate = faults.Gate()
        running.lab.chats.next(gate)
        first = asyncio.ensure_future(chat(running))
        await running.lab.chats.reached(1)
        longest = max(running.gateway.settings.upstream_seconds, running.gateway.settings.stream_seconds)
        running.clock.advance(longest + 61)
        with pytest.raises(UpstreamOutcomeUnknown, match="is not made again"):
            await chat(running)
        gate.open()
        await asyncio.wait([first])


async def test_a_key_expires(open_gateway: OpenGateway) -> None:
    async with open_gateway(idempotency_retention="1h") as running:
        await chat(running)
        running.clock.advance(3601)
        await chat(running)
        assert len(running.lab.chats) == 2


async def test_keys_of_two_organizations_and_of_two_operations_do_not_meet(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await chat(running)
        call = running.call(
            {"model": "lab/chat", "input": "one", "max_output_tokens": 20}, endpoint="/compat/v1/responses", headers=KEY
        )
        await repeats.create_response(running.gateway, call)
        assert len(running.lab.chats) == 2
