"""Transcripts over HTTP, with OpenAI's own client."""

import io

import openai
import pytest
from openai import AsyncOpenAI

from tests import sounds
from tests.api.http_calls import ServedApi, served_api
from tests.fake_providers import faults
from tests.fake_providers.scripted import WORDS
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only
TEXT = " ".join(WORDS)


def openai_client(api: ServedApi) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=api.running.key, base_url=api.base_url, max_retries=0)


def sound() -> tuple[str, io.BytesIO]:
    return "never.mp3", io.BytesIO(sounds.encoded("mp3", 2.0))


async def test_each_form_is_what_openais_client_expects(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api, openai_client(api) as ours:
        create = ours.audio.transcriptions.create
        plain = await create(model="lab/listen", file=sound())
        assert plain.text == TEXT
        assert plain.usage is not None
        assert plain.usage.type == "duration"
        assert (await create(model="lab/listen", file=sound(), response_format="text")).strip() == TEXT
        assert "-->" in await create(model="lab/listen", file=sound(), response_format="srt")
        assert (await create(model="lab/listen", file=sound(), response_format="vtt")).startswith("WEBVTT")
        verbose = await create(
            model="lab/listen",
            file=sound(),
            response_format="verbose_json",
            timestamp_granularities=["word", "segment"],
        )
        assert verbose.words is not None
        assert verbose.segments is not None
        assert [word.word for word in verbose.words] == list(WORDS)
        assert verbose.duration == pytest.approx(2, abs=0.1)


async def test_a_stream_is_what_openais_client_expects(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api, openai_client(api) as ours:
        stream = await ours.audio.transcriptions.create(model="lab/listen", file=sound(), stream=True)
        events = [event async for event in stream]
        assert [event.type for event in events] == ["transcript.text.delta", "transcript.text.done"]


async def test_a_translation_is_what_openais_client_expects(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api, openai_client(api) as ours:
        with pytest.deprecated_call():  # OpenAI ends its own translations
            made = await ours.audio.translations.create(
                model="lab/listen", file=sound(), response_format="verbose_json"
            )
        assert made.text == TEXT


async def test_errors_are_those_of_other_calls(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, input_audio_bytes=100_000) as api, openai_client(api) as ours:
        create = ours.audio.transcriptions.create
        with pytest.raises(openai.BadRequestError) as told:
            await create(model="lab/listen", file=("a.txt", b"no sound at all"))
        assert told.value.param == "file"
        with pytest.raises(openai.APIStatusError) as told_size:
            await create(model="lab/listen", file=("long.wav", sounds.wav(4.0)))
        assert told_size.value.status_code == 413
        with pytest.raises(openai.NotFoundError):
            await create(model="no-such", file=sound())
        api.running.lab.transcripts.next(faults.busy(3))
        with pytest.raises(openai.RateLimitError):
            await create(model="lab/listen", file=sound())
        records = (await api.call("GET", "/v1/requests?kind=transcription")).json["data"]
        assert {record["cost"] for record in records} == {0}
