"""Answers of chat models and transcripts that a guard refuses: nobody gets a byte of them, and who pays."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock.values import nanos
from tests import sounds
from tests.api.http_calls import ServedApi, form, served_api
from tests.api.raw_http import RawResponse
from tests.fake_providers import faults
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import WORDS
from tests.fake_providers.server import FakeProvider, route, serve_in_thread
from tests.gateway import Installation, OpenGateway, sqlite_only
from tests.unit.chat.chat_calls import last_record

CHATS = "/compat/v1/chat/completions"
RESPONSES = "/compat/v1/responses"
HEARD = "/compat/v1/audio/transcriptions"
ANSWER = "a machine gun"  # the fake provider answers with what it is asked, a word an event
REFUSES = {"words": {"rules": {"words": ["machine gun"]}, "when": "output"}}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (CHATS, {"messages": [{"role": "user", "content": ANSWER}]}),
    "streamed chat": (CHATS, {"messages": [{"role": "user", "content": ANSWER}], "stream": True}),
    "response": (RESPONSES, {"input": ANSWER}),
    "streamed response": (RESPONSES, {"input": ANSWER, "stream": True}),
}


def guards(**changes: Any) -> dict[str, Any]:
    return {"guards": {"words": {**REFUSES["words"], **changes}}}


async def call(api: ServedApi, name: str, **headers: str) -> RawResponse:
    path, body = CALLS[name]
    return await api.call("POST", path, {"model": "lab/chat", **body}, headers=headers)


async def checked_refusal(api: ServedApi, answered: RawResponse, *, charged: bool = True) -> dict[str, Any]:
    """The record of a refused answer."""
    assert (answered.status, answered.code) == (400, "CONTENT_POLICY_VIOLATION"), answered
    assert b"machine" not in answered.body
    record = await api.running.wait_for_request(answered.headers["x-request-id"])
    assert (record["status"], record["error_code"]) == ("upstream_failure", "CONTENT_POLICY_VIOLATION")
    assert (record["cost"] > 0) is charged
    return record


@pytest.mark.parametrize("speaks_responses", [False, True])
@sqlite_only
async def test_a_refused_answer_is_sent_to_nobody(installation: Installation, speaks_responses: bool) -> None:
    installation.lab_settings["responses"] = speaks_responses
    async with served_api(installation.open, payloads="all", **guards()) as api:
        for name in CALLS:
            answered = await call(api, name)
            assert "what it cost is charged" in answered.json["error"]["message"]
            record = await checked_refusal(api, answered)
            payloads = await api.call("GET", f"/v1/requests/{record['id']}/payloads")
            assert b"machine" not in json.dumps(payloads.json["response"]).encode(), "no call gets it later"
        asked = len(api.running.lab.chats) + len(api.running.lab.responses)
        assert asked == len(CALLS), "the provider was asked once for each, and no other was"


@pytest.mark.parametrize("charged", [True, False])
async def test_a_refused_answer_costs_what_was_said(open_gateway: OpenGateway, charged: bool) -> None:
    async with served_api(open_gateway, **guards(charge_refused=charged)) as api:
        for name in CALLS:
            path, body = CALLS[name]
            estimate = await api.call("POST", f"{path}?dryRun=true", {"model": "lab/chat", **body})
            assert estimate.json["output_guards"] == [{"name": "words", "charge_refused": charged}]
            before = await api.running.money()
            record = await checked_refusal(api, await call(api, name), charged=charged)
            available, held = await api.running.money()
            assert (before[0] - available, held) == (nanos(record["cost"]), 0)
        losses = await api.running.rows("SELECT SUM(abs(amount)) AS amount FROM transfers WHERE kind = 'loss'")
        assert int(losses[0]["amount"] or 0) == (0 if charged else nanos(api.running.lab.bill_usd))


@sqlite_only
async def test_other_answers_and_flagged_ones_go_on_with_a_header(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, **guards(on_hit="flag")) as api:
        for name in CALLS:
            flagged = await call(api, name)
            assert (flagged.status, flagged.headers["x-service-guards"]) == (200, "flag")
            assert b"machine" in flagged.body
        passed = await api.chat(stream=True)
        assert (passed.status, passed.headers["x-service-guards"]) == (200, "pass")
        assert passed.body.endswith(b"data: [DONE]\n\n")


@sqlite_only
async def test_streams_are_not_held_back_where_the_operator_wants_their_first_words_at_once(
    open_gateway: OpenGateway,
) -> None:
    async with served_api(open_gateway, **guards(buffer_stream=False)) as api:
        assert (await call(api, "streamed chat")).status == 200
        assert (await call(api, "chat")).status == 400


@sqlite_only
async def test_recordings_and_mocks_are_read_too(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        for name in CALLS:
            assert (await call(api, name, **{"x-service-replay": "record"})).status == 200
    async with served_api(open_gateway, **guards()) as api:
        for name in CALLS:
            answered = await call(api, name, **{"x-service-replay": "replay-or-error"})
            assert (await checked_refusal(api, answered, charged=False))["provider"] is None
            path, body = CALLS[name]
            mocked = {"model": "lab/chat", **body}
            answered = await api.call("POST", path, mocked, headers={"x-service-replay": "mock"})
            assert answered.status in (200, 400)
            assert b"machine" not in answered.body or answered.status == 200


@sqlite_only
async def test_a_refused_answer_that_was_charged_is_not_made_again(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, **guards()) as api:
        for name, headers in (("chat", {"idempotency-key": "a"}), ("streamed response", {"idempotency-key": "b"})):
            await checked_refusal(api, await call(api, name, **headers))
            again = await call(api, name, **headers)
            assert (again.status, again.code) == (409, "IDEMPOTENCY_COMPLETED")
        assert len(api.running.lab.chats) == 2


@sqlite_only
async def test_nothing_of_a_stream_that_breaks_off_is_sent_before_it_was_read(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, **guards()) as api:
        api.running.lab.chats.next(faults.cut_stream(3))
        answered = await call(api, "streamed chat")
        assert (answered.status, answered.code) == (502, "UPSTREAM_ERROR")
        assert b"machine" not in answered.body
        record = await last_record(api.running)
        assert (record["status"], record["cost"]) == ("upstream_failure", 0)


@sqlite_only
async def test_a_caller_who_leaves_while_a_stream_is_held_back_is_charged_once(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, payloads="all", **guards()) as api:
        api.running.lab.chats.next(faults.stalled_stream(3))
        path, body = CALLS["streamed chat"]
        connection = await api.served.connect()
        async with connection:
            data = json.dumps({"model": "lab/chat", **body}).encode()
            head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {api.running.key}\r\n"
            head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
            await connection.send(head.encode() + data)
            await api.running.wait_until(lambda: _asked(api), 0)
        record = await last_record(api.running)
        assert record["status"] == "cancelled"
        kinds = await api.running.rows(f"SELECT kind FROM transfers WHERE ref = '{record['id']}'")  # noqa: S608
        assert sum(row["kind"] in ("capture", "release") for row in kinds) <= 2


async def _asked(api: ServedApi) -> bool:
    return len(api.running.lab.chats) > 0


# ------------------------------------------------------------------------------------------------------------ services


class Service(FakeProvider):
    """A service that gives these answers, the last one for ever, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[FakeResponse] = [FakeResponse({"verdict": "pass"})]
        self.asked: list[dict[str, Any]] = []

    @route("POST /guard")
    def ask(self, call: Exchange) -> FakeResponse:
        self.asked.append(json.loads(call.request.body))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def service() -> Iterator[Service]:
    with serve_in_thread(Service()) as service:
        yield service


@asynccontextmanager
async def watched(open_gateway: OpenGateway, service: Service, **more: Any) -> AsyncIterator[ServedApi]:
    house = {"http": {"url": f"{service.url}/guard"}, "when": "output", **more}
    async with served_api(open_gateway, guards={"house": house}) as api:
        yield api


@sqlite_only
async def test_a_service_reads_the_answer_and_what_was_asked(open_gateway: OpenGateway, service: Service) -> None:
    async with watched(open_gateway, service) as api:
        assert (await call(api, "streamed chat")).status == 200
    [asked] = service.asked
    shown = {name: asked[name] for name in ("when", "kind", "model", "prompt", "text", "is_text_whole")}
    assert shown == {
        "when": "output",
        "kind": "chat",
        "model": "lab/chat",
        "prompt": ANSWER,
        "text": ANSWER,
        "is_text_whole": True,
    }


@sqlite_only
async def test_a_service_that_is_away_is_asked_again_and_then_nothing_is_charged(
    open_gateway: OpenGateway, service: Service
) -> None:
    down = FakeResponse({}, status=500)
    async with watched(open_gateway, service) as api:
        service.answers = [down, down, FakeResponse({"verdict": "pass"})]
        for name in ("chat", "streamed chat"):
            service.answers = [down, FakeResponse({"verdict": "pass"})]
            assert (await _in_time(api, name)).status == 200
        service.answers = [down]
        for name in ("chat", "streamed chat"):
            answered = await _in_time(api, name)
            assert (answered.status, answered.headers["x-should-retry"]) == (503, "false")
            assert b"machine" not in answered.body
            record = await api.running.wait_for_request(answered.headers["x-request-id"])
            assert (record["status"], record["cost"]) == ("upstream_failure", 0)
            assert (await api.running.transfers(record["id"]))["loss"]


async def _in_time(api: ServedApi, name: str) -> RawResponse:
    """The response to a call while time passes."""
    task = asyncio.ensure_future(call(api, name))

    async def met() -> bool:
        return task.done()

    await api.running.wait_until(met)
    return task.result()


# --------------------------------------------------------------------------------------------------------- transcripts


async def heard(api: ServedApi, **headers: str) -> RawResponse:
    parts = ("model", b"lab/listen", None), ("file", sounds.wav(1.0), "a.wav"), ("response_format", b"srt", None)
    data, content_type = form(*parts)
    return await api.call("POST", HEARD, data, headers={**content_type, **headers})


@sqlite_only
async def test_transcripts_are_read_too(open_gateway: OpenGateway) -> None:
    rules = {"rules": {"words": [WORDS[0]]}, "when": "output"}
    async with served_api(open_gateway) as api:
        assert (await heard(api, **{"x-service-replay": "record"})).status == 200
    async with served_api(open_gateway, guards={"words": rules}) as api:
        for headers in ({}, {"x-service-replay": "replay-or-error"}):
            answered = await heard(api, **headers)
            assert (answered.status, answered.code) == (400, "CONTENT_POLICY_VIOLATION"), answered
            record = await api.running.wait_for_request(answered.headers["x-request-id"])
            assert (record["status"], record["cost"] > 0) == ("upstream_failure", not headers)
