"""Transcripts that are kept: jobs, webhooks, idempotency keys, cancels, crashes and the file in every form."""

import asyncio
import json
from typing import Any

import pytest

from penstock.errors import ContentPolicyViolation, InvalidRequest, NotFound, UnprocessableRequest
from penstock.generations import sounds as kept_sounds
from penstock.generations.cancel import cancel_transcript
from penstock.generations.purge import purge
from penstock.schema import Response
from penstock.transcription import sound
from penstock.transcription.sound import PartLimits
from penstock.values import nanos
from tests.fake_providers import faults
from tests.fake_providers.scripted import WORDS
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.speech.speech_calls import sound_of
from tests.unit.transcription.listen_calls import decoded, into_english, listen, text_of

ASYNC = {"prefer": "respond-async"}
TEXT = " ".join(WORDS)
COST = 2 * 100_000  # nanos, for two seconds
HOOK = ("webhook_url", "https://hooks.example.com/a")


async def shown(running: RunningGateway, response: Response) -> Any:
    call = running.call(id=response.json["id"])
    return (await kept_sounds.transcript(running.gateway, call)).json


async def file_of(running: RunningGateway, transcript_id: str) -> tuple[str, bytes]:
    call = running.call(id=transcript_id)
    response = await kept_sounds.sound_content(running.gateway, call, kept_sounds.TRANSCRIPTS)
    return response.headers["content-type"], await sound_of(response)


async def test_a_job_is_polled_announced_and_charged_once(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        available, _ = await running.money()
        response = await listen(running, HOOK, ("metadata[order]", "7"), headers=ASYNC)
        assert (response.status, response.json["object"], response.json["status"]) == (202, "audio", "queued")
        assert (response.json["seconds"], response.json["prompt"]) == ("2", "")
        assert "openai-poll-after-ms" in response.headers
        record = await running.wait_for_request(response.json["id"])
        assert (record["status"], record["kind"], record["modality"]) == ("completed", "transcription", "speech")
        found = await shown(running, response)
        assert (found["status"], found["progress"], found["metadata"]["order"]) == ("completed", 100, "7")
        assert (found["output"]["content_type"], found["output"]["seconds"]) == ("application/json", 2.0)
        kind, data = await file_of(running, found["id"])
        assert (kind, len(data)) == ("application/json", found["output"]["size_bytes"])
        assert json.loads(data) == {"text": TEXT, "usage": {"type": "duration", "seconds": 2.0}}
        assert await running.money() == (available - COST, 0)
        assert running.lab.bill_usd * 10**9 == COST
        (message,) = await running.rows("SELECT event, body FROM messages")
        assert message["event"] == "audio.completed"
        assert json.loads(message["body"])["data"]["output"]["url"]


@sqlite_only
@pytest.mark.parametrize(
    ("form", "kind", "start"),
    [
        ("json", "application/json", b"{"),
        ("text", "text/plain; charset=utf-8", TEXT.encode()[:20]),
        ("srt", "application/x-subrip", b"1\n00:00:00,000 --> "),
        ("vtt", "text/vtt; charset=utf-8", b"WEBVTT\n"),
        ("verbose_json", "application/json", b'{"task":"transcribe"'),
    ],
)
async def test_the_file_is_what_a_caller_that_waits_would_get(
    open_gateway: OpenGateway, form: str, kind: str, start: bytes
) -> None:
    async with open_gateway() as running:
        at_once = text_of(await listen(running, ("response_format", form)))
        response = await listen(running, ("response_format", form), headers=ASYNC)
        await running.wait_for_request(response.json["id"])
        assert await file_of(running, response.json["id"]) == (kind, at_once.encode())
        assert at_once.encode().startswith(start)


async def test_a_long_sound_is_heard_in_parts_that_are_stored_until_the_end(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sound, "ANY_PART", PartLimits(24 * 1024**2, 1.0))
    monkeypatch.setattr("penstock.transcription.planned.ANY_PART", PartLimits(24 * 1024**2, 1.0))
    async with open_gateway() as running:
        whole = decoded(await listen(running, ("response_format", "verbose_json")))
        response = await listen(running, ("response_format", "verbose_json"), headers=ASYNC)
        await running.wait_for_request(response.json["id"])
        _, data = await file_of(running, response.json["id"])
        assert json.loads(data) == whole
        assert len(running.lab.transcripts.received) == 2 * 2
        files = await running.rows("SELECT role, expires_at_ms, created_at_ms FROM media ORDER BY role, position")
        assert [file["role"] for file in files] == ["output", "reference", "reference"]
        assert all(file["expires_at_ms"] <= running.clock.now_ms() for file in files if file["role"] != "output")


async def test_a_job_that_fails_is_free_and_says_why(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        running.lab.transcripts.next(faults.error(400, "no such language"))
        response = await listen(running, HOOK, headers=ASYNC)
        await running.wait_for_request(response.json["id"])
        found = await shown(running, response)
        assert (found["status"], found["output"]) == ("failed", None)
        assert found["error"]["message"]
        assert await running.money() == before
        (message,) = await running.rows("SELECT event FROM messages")
        assert message["event"] == "audio.failed"
        assert await running.rows("SELECT ref FROM transfers WHERE kind = 'loss'") == []


async def test_a_cancelled_job_is_free_and_its_provider_is_left_at_once(open_gateway: OpenGateway) -> None:
    gate = faults.Gate()
    async with open_gateway() as running:
        before = await running.money()
        running.lab.transcripts.next(gate)
        response = await listen(running, HOOK, headers=ASYNC)
        await running.lab.transcripts.reached(1)
        await cancel_transcript(running.gateway, running.call(id=response.json["id"]))
        record = await running.wait_for_request(response.json["id"])
        gate.open()
        assert record["status"] == "cancelled"
        assert await running.money() == before
        (message,) = await running.rows("SELECT event FROM messages")
        assert message["event"] == "audio.cancelled"


async def test_a_job_goes_on_after_a_crash_and_is_charged_once(open_gateway: OpenGateway) -> None:
    gate = faults.Gate()
    async with open_gateway() as running:
        available, _ = await running.money()
        labs = (running.lab, running.annex)
        running.lab.transcripts.next(gate)
        job = (await listen(running, headers=ASYNC)).json["id"]
        await running.lab.transcripts.reached(1)
        await running.change("UPDATE generations SET lease_until_ms = 1")  # its worker is lost
        async with open_gateway(labs=labs) as other:
            gate.open()
            record = await other.wait_for_request(job)
            assert (record["status"], nanos(record["cost"])) == ("completed", COST)
            assert await other.money() == (available - COST, 0)


@sqlite_only
async def test_a_busy_provider_is_waited_for(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.transcripts.next(faults.busy(7))
        response = await listen(running, headers=ASYNC)
        await running.lab.transcripts.reached(1)
        record = await running.wait_for_request(response.json["id"])
        assert record["status"] == "completed"
        assert len(running.lab.transcripts.received) == 2


async def test_a_translation_is_a_transcript_too(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await into_english(running, ("response_format", "text"), headers=ASYNC)
        record = await running.wait_for_request(response.json["id"])
        assert (record["status"], record["kind"]) == ("completed", "transcription")
        (row,) = await running.rows("SELECT task FROM generations")
        assert row["task"] == "translation"
        listed = await kept_sounds.list_sounds(
            running.gateway, running.call(), 10, None, kept_sounds.TRANSCRIPTS, ascending=False
        )
        assert [json.loads(bytes(each))["id"] for each in listed.json["data"]] == [response.json["id"]]
        assert (await kept_sounds.list_sounds(running.gateway, running.call(), 10, None, ascending=False)).json[
            "data"
        ] == []
        with pytest.raises(NotFound):
            await kept_sounds.sound(running.gateway, running.call(id=response.json["id"]))


async def test_a_caller_that_waits_gets_the_transcript_of_its_job(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await listen(running, HOOK, ("media_retention", "2h"), ("response_format", "vtt"))
        assert (response.status, response.media_type) == (200, "text/vtt; charset=utf-8")
        assert response.headers["x-service-cost"] == "0.0002"
        assert text_of(response).startswith("WEBVTT")
        (row,) = await running.rows("SELECT retention_seconds FROM generations")
        assert row["retention_seconds"] == 7200


async def test_a_repeated_key_returns_the_first_transcript_and_reads_no_sound(open_gateway: OpenGateway) -> None:
    key = ("idempotency_key", "a")
    async with open_gateway() as running:
        first, second = await asyncio.gather(*(listen(running, key, headers=ASYNC) for _ in range(2)))
        assert first.json["id"] == second.json["id"]
        await running.wait_for_request(first.json["id"])
        third = await listen(running, key, headers=ASYNC)
        assert (third.status, third.json["id"]) == (202, first.json["id"])
        assert third.headers["idempotent-replayed"] == "true"
        with pytest.raises(UnprocessableRequest, match="something else"):
            await listen(running, key, ("response_format", "srt"), headers=ASYNC)
        assert running.lab.bill_usd * 10**9 == COST
        assert len(running.lab.transcripts.received) == 1


@sqlite_only
async def test_what_cannot_be_kept_is_refused_by_name(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        for fields, headers, param in (
            ([("stream", "true")], ASYNC, "stream"),
            ([("webhook_url", "http://10.0.0.1/")], {}, "webhook_url"),
            ([("media_retention", "soon")], {}, "media_retention"),
            ([], {**ASYNC, "x-service-replay": "record"}, "X-Service-Replay"),
            ([("response_format", "srt"), ("language", "x" * 40)], ASYNC, "language"),
        ):
            with pytest.raises(InvalidRequest) as caught:
                await listen(running, *fields, headers=headers)
            assert caught.value.param == param
        assert running.lab.transcripts.received == []
        assert await running.rows("SELECT id FROM media") == []


@sqlite_only
async def test_a_dry_run_and_a_mock_call_no_provider(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        estimate = (await listen(running, headers=ASYNC, query={"dryRun": "true"})).json
        assert estimate["total_cost_micros"] == COST / 1000
        response = await listen(
            running, ("response_format", "diarized_json"), headers={**ASYNC, "x-service-replay": "mock"}
        )
        assert response.headers["x-service-replay-status"] == "mocked"
        await running.wait_for_request(response.json["id"])
        found = await shown(running, response)
        assert (found["status"], found["metadata"]["cost"]) == ("completed", 0)
        assert running.lab.transcripts.received == []


@sqlite_only
async def test_a_purge_deletes_the_transcript(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await listen(running, ("prompt", "Rick speaks."), headers=ASYNC)
        await running.wait_for_request(response.json["id"])
        await purge(running.gateway, running.call(request_id=response.json["id"]))
        with pytest.raises(NotFound):
            await file_of(running, response.json["id"])
        (row,) = await running.rows("SELECT request FROM generations")
        assert row["request"] is None


@sqlite_only
async def test_a_guard_reads_what_is_written_beside_the_sound(open_gateway: OpenGateway) -> None:
    rules = {"words": ["gun"], "models_without_images": ["*"]}
    async with open_gateway(guards={"words": {"rules": rules}}) as running:
        with pytest.raises(ContentPolicyViolation):
            await listen(running, ("keywords[]", "a gun"), headers=ASYNC)
        response = await into_english(running, ("prompt", "a flower"), headers=ASYNC)  # a sound is no image
        assert (await running.wait_for_request(response.json["id"]))["status"] == "completed"


@sqlite_only
@pytest.mark.parametrize("form", ["json", "text", "srt", "vtt", "verbose_json"])
async def test_a_guard_reads_what_was_understood(open_gateway: OpenGateway, form: str) -> None:
    rules = {"when": "output", "rules": {"words": ["up. never gonna"]}}
    async with open_gateway(guards={"words": rules}) as running:
        response = await listen(running, ("response_format", form), headers=ASYNC)
        await running.wait_for_request(response.json["id"])
        found = await shown(running, response)
        assert (found["status"], found["output"]) == ("failed", None)
        assert "guard `words`" in found["error"]["message"]
