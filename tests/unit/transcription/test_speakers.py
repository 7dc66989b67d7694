"""Speakers whom the caller names, each with a sound."""

import base64
import json
from typing import Any

import pytest

from penstock.errors import InvalidRequest, PayloadTooLarge
from penstock.schema import Call
from penstock.transcription.endpoint import transcribe
from tests import sounds
from tests.gateway import Installation, RunningGateway, sqlite_only
from tests.unit.chat.chat_calls import last_record
from tests.unit.transcription.listen_calls import PATH, decoded, form_call, listen, stored
from tests.unit.transcription.stream_calls import vendor

pytestmark = sqlite_only
MODEL = "gpt-4o-transcribe-diarize"
REFERENCES = "known_speaker_references[]"
FORM = ("response_format", "diarized_json")


def uri(seconds: float = 3.0, found: Any = "mp3") -> str:
    return f"data:audio/{found};base64,{base64.b64encode(sounds.encoded(found, seconds)).decode()}"


def known(*names: str, seconds: float = 3.0) -> list[tuple[str, str]]:
    pairs = [[("known_speaker_names[]", name), (REFERENCES, uri(seconds))] for name in names]
    return [field for pair in pairs for field in pair]


def in_json(running: RunningGateway, **fields: Any) -> Call:
    data = base64.b64encode(sounds.wav(2.0)).decode()
    body = {"model": MODEL, "input_audio": {"data": data}, "response_format": "diarized_json", **fields}
    return running.call(body, endpoint=PATH)


async def test_speakers_have_the_names_that_the_caller_knows(installation: Installation) -> None:
    async with vendor(installation) as (running, vendors):
        said = decoded(await listen(running, FORM, *known("Ada", "Grace"), model=MODEL))
        assert [segment["speaker"] for segment in said["segments"]] == ["Ada", "Grace"]
        (request,) = vendors.received("transcribe")
        assert request.fields["known_speaker_names"] == ["Ada", "Grace"]
        assert all(each.startswith("data:audio/wav;base64,") for each in request.fields["known_speaker_references"])
        call = in_json(running, known_speaker_names=["Ada"], known_speaker_references=[uri()])
        assert decoded(await transcribe(running.gateway, call))["segments"][0]["speaker"] == "Ada"


async def test_the_sounds_of_speakers_are_not_stored(installation: Installation) -> None:
    async with vendor(installation, payloads="all") as (running, _):
        call = form_call(running, ("model", MODEL), FORM, *known("Ada"))
        await transcribe(running.gateway, call)
        await last_record(running)
        request = (await stored(running, call.id))["request"]
        assert request["known_speaker_names"] == ["Ada"]
        (digest,) = request["known_speaker_references"]
        assert len(digest) == 64


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (known("Ada", "Grace")[:-1], "known_speaker_names"),
        (known(*"ABCDE"), "known_speaker_names"),
        (known("Ada", seconds=1.0), "known_speaker_references"),
        (known("Ada", seconds=11.0), "known_speaker_references"),
        ([("known_speaker_names[]", "x" * 300), (REFERENCES, uri())], "known_speaker_names"),
        (
            [("known_speaker_names[]", "A"), ("known_speaker_references[]", "data:;base64,AAAA")],
            "known_speaker_references",
        ),
        (
            [("known_speaker_names[]", "A"), ("known_speaker_references[]", "http://a.test/a")],
            "known_speaker_references",
        ),
    ],
)
async def test_bad_speakers_are_refused_by_name(
    installation: Installation, fields: list[tuple[str, str]], param: str
) -> None:
    async with vendor(installation) as (running, vendors):
        with pytest.raises(InvalidRequest) as refusal:
            await listen(running, FORM, *fields, model=MODEL)
        assert refusal.value.param == param
        assert vendors.received("transcribe") == []
        assert await running.records() == []


@pytest.mark.parametrize("references", ["data:", [7], {"a": "data:"}])
async def test_sounds_of_speakers_are_a_list_of_texts(installation: Installation, references: Any) -> None:
    async with vendor(installation) as (running, _):
        call = in_json(running, known_speaker_names=["Ada"], known_speaker_references=references)
        with pytest.raises(InvalidRequest) as refusal:
            await transcribe(running.gateway, call)
        assert refusal.value.param == "known_speaker_references"


async def test_a_large_sound_of_a_speaker_is_refused(installation: Installation) -> None:
    async with vendor(installation) as (running, _):
        large = f"data:audio/wav;base64,{base64.b64encode(bytes(11 * 2**20)).decode()}"
        call = in_json(running, known_speaker_names=["Ada"], known_speaker_references=[large])
        with pytest.raises((PayloadTooLarge, InvalidRequest)) as refusal:
            await transcribe(running.gateway, call)
        assert refusal.value.param == "known_speaker_references"


async def test_models_that_do_not_know_speakers_refuse_their_names(installation: Installation) -> None:
    async with vendor(installation) as (running, vendors):
        with pytest.raises(InvalidRequest) as refusal:
            await listen(running, *known("Ada"), model="gpt-transcribe")
        assert refusal.value.param == "known_speaker_names"
        assert vendors.received("transcribe") == []


async def test_sounds_of_speakers_cannot_be_kept(installation: Installation) -> None:
    async with vendor(installation) as (running, _):
        with pytest.raises(InvalidRequest) as refusal:
            await listen(running, FORM, *known("Ada"), model=MODEL, headers={"prefer": "respond-async"})
        assert refusal.value.param == "known_speaker_references"


async def test_a_mock_knows_nobody(installation: Installation) -> None:
    async with vendor(installation) as (running, vendors):
        headers = {"x-service-replay": "mock"}
        said = decoded(await listen(running, FORM, *known("Ada"), model=MODEL, headers=headers))
        assert said["segments"]
        assert vendors.received("transcribe") == []


async def test_a_recording_is_of_the_same_speakers(installation: Installation) -> None:
    async with vendor(installation) as (running, vendors):
        await listen(running, FORM, *known("Ada"), model=MODEL, headers={"x-service-replay": "record"})
        again = {"x-service-replay": "replay-or-live"}
        same = await listen(running, FORM, *known("Ada"), model=MODEL, headers=again)
        other = await listen(running, FORM, *known("Ada", seconds=4.0), model=MODEL, headers=again)
        assert [each.headers["x-service-replay-status"] for each in (same, other)] == ["replayed", "live"]
        assert json.loads(bytes(same.body or b""))["segments"][0]["speaker"] == "Ada"
        assert len(vendors.received("transcribe")) == 2
