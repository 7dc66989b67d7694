"""Chat calls: forwarded, charged, failed, cancelled; and the money of each."""

import asyncio
import json
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from penstock.chat.endpoint import complete_chat
from penstock.errors import (
    ContentPolicyViolation,
    InsufficientBalance,
    InvalidRequest,
    Problem,
    RateLimited,
    UpstreamError,
    UpstreamTimeout,
)
from penstock.schema import Response
from tests.fake_providers import faults
from tests.fake_providers.scripted import KEY
from tests.gateway import OpenGateway, sqlite_only
from tests.loop_time import pass_time
from tests.unit.chat.chat_calls import ASK, chat, ended_records, last_record, read_stream

# Three input tokens at a micro-dollar and three output tokens at two.
COST = Decimal("0.000009")
COMPLETION = (
    b'{"id":"c1","object":"chat.completion","created":1,"model":"chat","choices":[{"index":0,"finish_reason":"stop",'
    b'"message":{"role":"assistant","content":"%b"}}],'
    b'"usage":{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6}}'
)


async def test_a_response_is_passed_on_and_charged(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await chat(running, user="u1", session_id="s1")
        assert response.body is not None
        shown = json.loads(bytes(response.body))
        assert shown["choices"][0]["message"]["content"] == "one two three"
        record = await last_record(running)
        assert (record["status"], record["cost"], record["modality"]) == ("completed", 9000, None)
        assert (record["end_user"], record["session_id"]) == ("u1", "s1")
        assert record["response_bytes"] == len(response.body)
        assert await running.money() == (10_000_000_000 - 9000, 0)
        sent = running.lab.chats.received[0].fields
        assert sent["model"] == "chat-1"
        assert "session_id" not in sent
        assert running.lab.bill_usd == COST


@sqlite_only
@pytest.mark.parametrize("stream", [False, True])
async def test_a_text_that_repeats_the_gateways_credential_is_shown_without_it(
    open_gateway: OpenGateway, stream: bool
) -> None:
    async with open_gateway() as running:
        response = await chat(running, stream=stream, messages=[{"role": "user", "content": f"one {KEY} three"}])
        body = bytes(response.body or b"") or await read_stream(response)
        assert KEY.encode() not in body
        assert "…".encode() in body or rb"\u2026" in body
        assert b"three" in body


@sqlite_only
async def test_the_body_is_released_when_money_is_held(open_gateway: OpenGateway) -> None:
    """Until then it counts as one that waits."""
    async with open_gateway() as running:
        released: list[str] = []
        for caller in (running.caller, await running.create_caller_in_new_org("0")):
            call = running.call(ASK, endpoint="/compat/v1/chat/completions", caller=caller)
            with suppress(InsufficientBalance):
                await complete_chat(
                    running.gateway, msgspec.structs.replace(call, release_body=partial(released.append, caller.org_id))
                )
        assert released == [running.caller.org_id]


async def test_a_call_with_images_has_the_modality_vision(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        await chat(running, messages=[{"role": "user", "content": [{"type": "text", "text": "what"}, part]}])
        assert (await last_record(running))["modality"] == "vision"


@pytest.mark.parametrize(
    ("act", "kind", "retry"),
    [
        (faults.error(400, "Bad.", "invalid_value"), InvalidRequest, False),
        (faults.error(400, "No.", "content_policy_violation"), ContentPolicyViolation, False),
        (faults.busy(3), RateLimited, True),
        (faults.error(500, "Oops."), UpstreamError, False),
        (faults.unauthorized, UpstreamError, False),
        (faults.dropped, UpstreamError, False),
        (faults.raw(b"<html>", "text/html"), UpstreamError, False),
        (faults.raw(b'{"choices":[]}'), UpstreamError, False),
        (faults.raw(b"[" * 100_000), UpstreamError, False),
        (faults.altered(choices=None), UpstreamError, False),
        (faults.raw(COMPLETION % b"\xff"), UpstreamError, False),
        (faults.raw(COMPLETION % (b"x" * 200_000 + b"\xff")), UpstreamError, False),
    ],
)
@sqlite_only
async def test_failures_cost_nothing(open_gateway: OpenGateway, act: Any, kind: type[Problem], retry: bool) -> None:
    async with open_gateway() as running:
        before = await running.money()
        running.lab.chats.next(act)
        with pytest.raises(kind) as caught:
            await chat(running)
        assert (caught.value.should_retry, caught.value.recorded) == (retry, True)
        record = await last_record(running)
        assert (record["status"], record["cost"], record["error_code"]) == ("upstream_failure", 0, caught.value.code)
        assert await running.money() == before
        assert len(running.lab.chats) == 1


@sqlite_only
async def test_a_late_response_is_a_timeout(open_gateway: OpenGateway) -> None:
    async with open_gateway(upstream_seconds=60) as running:
        running.lab.chats.next(faults.stalled)
        calling = asyncio.create_task(chat(running))
        await running.lab.chats.reached(1)
        pass_time(61)
        with pytest.raises(UpstreamTimeout):
            await calling


@sqlite_only
async def test_unreported_usage_is_estimated(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.chats.next(faults.altered(usage=None))
        await chat(running)
        assert (await last_record(running))["cost"] > 0


async def test_an_estimate_counts_the_text_and_not_the_json_around_it(open_gateway: OpenGateway) -> None:
    """A short answer is a hundred times shorter than its body."""
    async with open_gateway() as running:
        running.lab.chats.next(faults.altered(usage=None))
        response = await chat(running)
        usage = json.loads(bytes(response.body or b""))["usage"]
        assert usage["completion_tokens"] == len("one two three") // 4
        assert (await last_record(running))["output_tokens"] == len("one two three") // 4


WRONG_USAGES: tuple[Any, ...] = (
    "x", [], 7, True, {"prompt_tokens": "x"}, {"completion_tokens": []}, {"total_tokens": 1.5}, {"prompt_tokens": {}},
    {"prompt_tokens": 3, "completion_tokens": 3, "prompt_tokens_details": "x"},
    {"prompt_tokens": 3, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": "x"}},
)  # fmt: skip


@sqlite_only
async def test_malformed_usage_is_estimated_and_does_not_hide_the_answer(open_gateway: OpenGateway) -> None:
    """The provider bills it all the same, so no other one is asked."""
    async with open_gateway() as running:
        for number, usage in enumerate(WRONG_USAGES, 1):
            running.lab.chats.next(faults.altered(usage=usage))
            shown = json.loads(bytes((await chat(running)).body or b""))
            assert shown["choices"][0]["message"]["content"] == "one two three", usage
            assert {type(shown["usage"][name]) for name in ("prompt_tokens", "completion_tokens", "total_tokens")} == {
                int
            }
            assert (await ended_records(running, number))[-1]["cost"] > 0
        assert len(running.lab.chats) == len(WRONG_USAGES)


@sqlite_only
async def test_reported_zero_usage_is_free(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.chats.next(faults.altered(usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}))
        await chat(running)
        assert (await last_record(running))["cost"] == 0


async def test_a_reported_cost_is_charged_up_to_the_reserved_amount(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        running.lab.chats.next(
            faults.altered(usage={**usage, "cost": 0.00001}), faults.altered(usage={**usage, "cost": 5})
        )
        await chat(running)
        assert (await last_record(running))["cost"] == 10_000
        running.clock.advance(1)
        with capture_logs() as lines:
            await chat(running)
        record = (await ended_records(running, 2))[-1]
        assert [line["request_id"] for line in lines if line["event"] == "cost above hold"] == [record["id"]]
        assert 10_000 < record["cost"] < 1_000_000
        transfers = await running.transfers(record["id"])
        assert transfers["capture"] == record["cost"]
        assert transfers["loss"] == 5_000_000_000 - record["cost"], "what the caller does not pay is a loss"


async def test_usage_beyond_all_measure_is_charged_up_to_the_reserved_amount(open_gateway: OpenGateway) -> None:
    """A provider that reports nonsense gives no call away, and no hold stays."""
    async with open_gateway() as running:
        for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
            running.clock.advance(1)
            running.lab.chats.next(faults.altered(usage={"prompt_tokens": 1, "completion_tokens": 1, name: 2**63}))
            await chat(running)
        records = await ended_records(running, 3)
        assert [record["status"] for record in records] == ["completed"] * 3
        assert len({record["cost"] for record in records}) == 1
        assert (await running.money())[1] == 0


@sqlite_only
async def test_the_limit_of_tokens_is_sent_with_every_call(open_gateway: OpenGateway) -> None:
    async with open_gateway(chat_output_tokens=77) as running:
        await chat(running, max_tokens=None)
        await read_stream(await chat(running, max_tokens=None, stream=True))
        await chat(running, max_tokens=5)
        assert [request.fields["max_tokens"] for request in running.lab.chats.received] == [77, 77, 5]


@sqlite_only
async def test_a_call_above_the_balance_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="0.00001") as running:
        with pytest.raises(InsufficientBalance):
            await chat(running)
        assert len(running.lab.chats) == 0


async def test_parallel_calls_cannot_overdraw_the_balance(open_gateway: OpenGateway) -> None:
    """Of sixty parallel calls with money for a few, the others are refused."""
    async with open_gateway(starting_credit_usd="0.0004") as running:
        outcomes = await asyncio.gather(*(chat(running) for _ in range(60)), return_exceptions=True)
        served = sum(isinstance(outcome, Response) for outcome in outcomes)
        assert all(isinstance(outcome, Response | InsufficientBalance) for outcome in outcomes)
        assert 0 < served == len(running.lab.chats) < 60
        await ended_records(running, served)
        assert await running.money() == (400_000 - served * 9000, 0)


@sqlite_only
async def test_a_dry_run_sends_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        call = running.call(ASK, endpoint="/chat", query={"dryRun": "true"})
        shown = (await complete_chat(running.gateway, call)).json
        assert shown["total_cost_micros"] == sum(line["total_cost"] for line in shown["components"]) > 0
        assert (len(running.lab.chats), await running.records()) == (0, [])


@sqlite_only
@pytest.mark.parametrize("extra", ["api_base", "base_url", "extra_headers", "webhook"])
async def test_extra_fields_cannot_redirect_the_call(open_gateway: OpenGateway, extra: str) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest) as caught:
            await chat(running, **{extra: "https://evil.example"})
        assert caught.value.param == extra
        await chat(running, top_k=40)
        assert running.lab.chats.received[-1].fields["top_k"] == 40


@sqlite_only
async def test_extra_fields_cannot_order_what_is_billed_beside_the_tokens(open_gateway: OpenGateway) -> None:
    names = """search_parameters web_search_options web_search plugins service_tier serviceTier priority
        audio_tier prediction mcp_servers code_interpreter grounding speed"""
    async with open_gateway() as running:
        for name in names.split():
            with pytest.raises(InvalidRequest, match="would change the price") as caught:
                await chat(running, **{name: "priority"})
            assert caught.value.param == name
        tool = {"type": "web_search", "function": {"name": "look"}}
        with pytest.raises(InvalidRequest, match="must have `type` `function`"):
            await chat(running, tools=[tool])
        await chat(running, reasoning_effort="low", top_k=40, parallel_tool_calls=False, verbosity="low")
        assert len(running.lab.chats) == 1


async def test_a_response_without_choices_is_a_loss_if_the_provider_bills_tokens(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        running.lab.chats.next(faults.altered(choices=[], usage={"prompt_tokens": 5, "completion_tokens": 2}))
        with pytest.raises(UpstreamError):
            await chat(running)
        record = await last_record(running)
        assert (await running.transfers(record["id"]))["loss"] == 9000
        assert await running.money() == before
