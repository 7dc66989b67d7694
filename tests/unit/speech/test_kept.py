"""Speech that is kept: responses in JSON, jobs, webhooks, idempotency keys, long texts and crashes."""

from base64 import b64decode
from typing import Any

import pytest

from penstock.errors import InvalidRequest, NotFound, UnprocessableRequest
from penstock.generations import sounds as kept_sounds
from penstock.generations.cancel import cancel_sound
from penstock.schema import Response
from penstock.sound.formats import SOUND_FORMATS, SoundFormat, content_type
from penstock.values import nanos
from tests import sounds
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.speech.speech_calls import TEXT, sound_of, speak

SECONDS = len(TEXT) / 15
COST = len(TEXT) * 10_000  # nanos
JSON = {"accept": "application/json"}
ASYNC = {"prefer": "respond-async"}


async def file_of(running: RunningGateway, url: str) -> bytes:
    path, _, query = url.removeprefix("http://gateway.test/m/").partition("?")
    pairs = dict(pair.split("=", 1) for pair in query.split("&"))
    return await sound_of(await running.gateway.media.open(path, pairs, None))


async def sound_object(running: RunningGateway, sound_id: str) -> Any:
    return (await kept_sounds.sound(running.gateway, running.call(id=sound_id))).json


async def test_a_caller_of_json_gets_the_url_of_a_file_that_is_charged_once(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        available, _ = await running.money()
        body = (await speak(running, headers=JSON)).json
        assert (body["object"], body["model"], body["voice"]) == ("audio.speech", "lab/voice", "alloy")
        assert body["output_format"] == "mp3"
        assert body["seconds"] == pytest.approx(SECONDS, abs=0.1)
        assert float(body["metadata"]["cost"]) == pytest.approx(COST / 10**9)
        assert await file_of(running, body["data"][0]["url"]) == sounds.encoded("mp3", SECONDS)
        record = await running.record(body["id"])
        assert (record["status"], record["modality"], record["kind"]) == ("completed", "speech", "speech")
        assert await running.money() == (available - COST, 0)
        assert running.lab.bill_usd * 10**9 == COST
        assert len(running.lab.speeches) == 1


@sqlite_only
@pytest.mark.parametrize("output_format", SOUND_FORMATS)
async def test_a_kept_file_is_whole_and_says_its_length(open_gateway: OpenGateway, output_format: SoundFormat) -> None:
    async with open_gateway() as running:
        body = (
            await speak(running, headers=JSON, query={"data": "b64_json"}, response_format=output_format, speed=2)
        ).json
        sound = b64decode(str(body["data"][0]["b64_json"]))
        assert sounds.container_of(sound) == output_format
        assert body["seconds"] == pytest.approx(SECONDS / 2, rel=0.05, abs=0.1)
        if output_format == "wav":
            assert int.from_bytes(sound[4:8], "little") == len(sound) - 8, "the true size, not that of a stream"
            assert int.from_bytes(sound[40:44], "little") == len(sound) - 44
        found = await sound_object(running, body["id"])
        assert found["output"]["content_type"] == content_type(output_format)
        assert found["output"]["size_bytes"] == len(sound)


@sqlite_only
@pytest.mark.parametrize("accept", ["*/*", "application/octet-stream", "application/json, text/plain, */*", ""])
async def test_callers_that_accept_anything_get_the_sound_and_nothing_is_kept(
    open_gateway: OpenGateway, accept: str
) -> None:
    async with open_gateway(payloads="all") as running:
        response = await speak(running, headers={"accept": accept})
        assert response.media_type == "audio/mpeg"
        await sound_of(response)
        assert await running.rows("SELECT id FROM media") == []
        assert await running.rows("SELECT id FROM generations") == []


@sqlite_only
async def test_a_retention_keeps_the_sound_that_the_caller_gets_as_bytes(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await speak(running, media_retention="2h")
        assert response.headers["content-type"] == "audio/mpeg"
        sound = await sound_of(response)
        assert sound == sounds.encoded("mp3", SECONDS)
        (row,) = await running.rows("SELECT id, retention_seconds FROM generations")
        assert row["retention_seconds"] == 7200
        assert (await sound_object(running, row["id"]))["output"]["size_bytes"] == len(sound)


async def test_a_job_is_a_sound_that_is_polled_and_announced(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await speak(
            running, headers=ASYNC, webhook_url="https://hooks.example.com/a", metadata={"order": "7"}
        )
        assert response.status == 202
        assert (response.json["object"], response.json["status"]) == ("audio", "queued")
        assert "openai-poll-after-ms" in response.headers
        assert "size" not in response.json
        await running.wait_for_request(response.json["id"])
        found = await sound_object(running, response.json["id"])
        assert (found["status"], found["prompt"], found["progress"]) == ("completed", TEXT, 100)
        assert found["metadata"]["order"] == "7"
        assert found["output"]["seconds"] == pytest.approx(SECONDS, abs=0.1)
        (message,) = await running.rows("SELECT event FROM messages")
        assert message["event"] == "audio.completed"
        listed = await kept_sounds.list_sounds(running.gateway, running.call(), 10, None, ascending=False)
        assert [bool(each) for each in listed.json["data"]] == [True]
        content = await kept_sounds.sound_content(running.gateway, running.call(id=found["id"]))
        assert await sound_of(content) == sounds.encoded("mp3", SECONDS)


@sqlite_only
async def test_a_job_that_fails_is_free_and_says_why(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        running.lab.speeches.next(faults.error(400, "no such word"))
        response = await speak(running, headers=ASYNC, webhook_url="https://hooks.example.com/a")
        await running.wait_for_request(response.json["id"])
        found = await sound_object(running, response.json["id"])
        assert found["status"] == "failed"
        assert found["error"]["message"]
        assert await running.money() == before
        (message,) = await running.rows("SELECT event FROM messages")
        assert message["event"] == "audio.failed"


async def test_a_cancelled_job_is_free_and_its_provider_is_left_at_once(open_gateway: OpenGateway) -> None:
    gate = faults.Gate()
    async with open_gateway() as running:
        before = await running.money()
        running.lab.speeches.next(gate)
        response = await speak(running, headers=ASYNC, webhook_url="https://hooks.example.com/a")
        await running.lab.speeches.reached(1)
        await cancel_sound(running.gateway, running.call(id=response.json["id"]))
        record = await running.wait_for_request(response.json["id"])
        gate.open()
        assert record["status"] == "cancelled"
        assert await running.money() == before
        (message,) = await running.rows("SELECT event FROM messages")
        assert message["event"] == "audio.cancelled"


@sqlite_only
async def test_texts_that_take_long_are_refused_unless_they_are_jobs(open_gateway: OpenGateway) -> None:
    text = "This sentence has some words. " * 680
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest, match="respond-async") as caught:
            await speak(running, input=text)
        assert caught.value.param == "input"
        response = await speak(running, headers=ASYNC, input=text, response_format="wav")
        record = await running.wait_for_request(response.json["id"])
        assert nanos(record["cost"]) == len(text) * 10_000
        found = await sound_object(running, response.json["id"])
        assert found["output"]["seconds"] == pytest.approx(len(text) / 15, rel=0.03)
        spoken = [request.fields["input"] for request in running.lab.speeches.received]
        assert "".join(spoken) == text
        with pytest.raises(InvalidRequest, match="100000"):
            await speak(running, headers=ASYNC, input="x" * 100_001)


async def test_a_job_goes_on_after_a_crash_and_is_charged_once(open_gateway: OpenGateway) -> None:
    gate = faults.Gate()
    async with open_gateway() as running:
        available, _ = await running.money()
        labs = (running.lab, running.annex)
        running.lab.speeches.next(gate)
        job = (await speak(running, headers=ASYNC)).json["id"]
        await running.lab.speeches.reached(1)
        await running.change("UPDATE generations SET lease_until_ms = 1")  # its worker is lost
        async with open_gateway(labs=labs) as other:
            gate.open()
            record = await other.wait_for_request(job)
            assert (record["status"], nanos(record["cost"])) == ("completed", COST)
            assert await other.money() == (available - COST, 0)


async def test_a_key_is_answered_with_the_first_sound(open_gateway: OpenGateway) -> None:
    key = {"idempotency-key": "order-1"}
    async with open_gateway() as running:
        available, _ = await running.money()
        first = await speak(running, headers={**JSON, **key})
        again = await speak(running, headers={**JSON, **key})
        assert first.json["id"] == again.json["id"]
        assert again.headers["idempotent-replayed"] == "true"
        as_bytes = await speak(running, headers=key)
        assert await sound_of(as_bytes) == sounds.encoded("mp3", SECONDS)
        assert len(running.lab.speeches) == 1
        assert await running.money() == (available - COST, 0)
        with pytest.raises(UnprocessableRequest):
            await speak(running, headers={**JSON, **key}, input="Something else.")


@sqlite_only
@pytest.mark.parametrize(
    ("headers", "fields", "param"),
    [
        (ASYNC, {"stream_format": "sse"}, "stream_format"),
        (JSON, {"media_retention": "soon"}, "media_retention"),
        (ASYNC, {"webhook_url": "no url"}, "webhook_url"),
        (JSON, {"metadata": {"a": 5}}, "metadata"),
        ({**JSON, "x-service-provenance": "keep; required"}, {}, "provenance"),
    ],
)
async def test_what_cannot_be_kept_is_refused(
    open_gateway: OpenGateway, headers: Any, fields: dict[str, Any], param: str
) -> None:
    async with open_gateway() as running:
        before = await running.money()
        with pytest.raises(InvalidRequest) as caught:
            await speak(running, headers=headers, **fields)
        assert caught.value.param == param
        assert await running.money() == before
        assert len(running.lab.speeches) == 0


@sqlite_only
async def test_the_credentials_of_sound_say_that_it_has_none(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        body = (await speak(running, headers={**JSON, "x-service-provenance": "keep"})).json
        assert body["data"][0]["content_credentials"]["status"] == "unsupported_format"
        assert body["metadata"]["content_credentials"] == "unsupported_format"


@sqlite_only
async def test_a_purge_deletes_the_sound_and_the_text(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        body = (await speak(running, headers=JSON, input="A secret walrus.")).json
        purged = await running.purge(body["id"])
        assert purged["media_deleted"] == 1
        assert await running.tables_with("walrus") == []
        with pytest.raises(NotFound):
            await file_of(running, body["data"][0]["url"])
        assert (await sound_object(running, body["id"]))["output"] is None


@sqlite_only
async def test_sounds_of_others_are_not_found(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        body = (await speak(running, headers=JSON)).json
        stranger = await running.create_caller_in_new_org()
        for ask in (kept_sounds.sound, kept_sounds.sound_content, cancel_sound):
            with pytest.raises(NotFound):
                await ask(running.gateway, running.call(id=body["id"], caller=stranger))
        video = (await running.video()).json["id"]
        with pytest.raises(NotFound):
            await kept_sounds.sound(running.gateway, running.call(id=video))


@sqlite_only
async def test_a_mock_is_kept_and_costs_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        response: Response = await speak(running, headers={**JSON, "x-service-replay": "mock"}, voice="echo")
        assert response.headers["x-service-replay-status"] == "mocked"
        assert response.json["metadata"]["provider"] == "atelier"
        assert await running.money() == before
        assert len(running.lab.speeches) == 0
