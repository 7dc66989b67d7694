"""The lists of voices and of speech models."""

import pytest

from penstock.api.endpoints.voices import list_speech_models, list_voices
from penstock.errors import InvalidRequest
from penstock.providers.speech import OPENAI_VOICES
from tests.gateway import Installation, OpenGateway, sqlite_only
from tests.providers.voice_gateway import vendor_gateway, voices


@sqlite_only
async def test_each_voice_names_its_models_and_the_voices_of_openai_that_it_is(open_gateway: OpenGateway) -> None:
    async with open_gateway(disabled_providers=()) as running:
        found = (await list_voices(running.gateway, running.call(query={"model": "atelier/voice"}))).json
        assert [voice["id"] for voice in found["data"]] == [voice["id"] for voice in found["voices"]]
        named = [name for voice in found["data"] for name in voice["openai_names"]]
        assert sorted(named) == sorted(OPENAI_VOICES)
        assert {tuple(voice["models"]) for voice in found["data"]} == {("atelier/voice",)}
        searched = (await list_voices(running.gateway, running.call(query={"search": "SHIMMER"}))).json
        assert all("shimmer" in voice["openai_names"] for voice in searched["data"])
        assert searched["data"]


@sqlite_only
async def test_a_key_sees_only_the_voices_of_its_models(open_gateway: OpenGateway) -> None:
    async with open_gateway(disabled_providers=()) as running:
        caller = await running.create_caller(models=["atelier/voice"])
        models = (await list_speech_models(running.gateway, running.call(caller=caller))).json
        assert models == {"models": [{"id": "atelier/voice"}]}
        voices = (await list_voices(running.gateway, running.call(caller=caller))).json
        assert {voice["provider"] for voice in voices["data"]} == {"atelier"}
        with pytest.raises(InvalidRequest, match="must be one of"):
            await list_voices(running.gateway, running.call(caller=caller, query={"model": "lab/voice"}))


@sqlite_only
async def test_a_model_that_does_not_speak_has_no_voices(open_gateway: OpenGateway) -> None:
    async with open_gateway(disabled_providers=()) as running:
        with pytest.raises(InvalidRequest) as caught:
            await list_voices(running.gateway, running.call(query={"model": "image-1"}))
        assert caught.value.param == "model"


@sqlite_only
async def test_a_language_leaves_out_the_voices_of_others(installation: Installation) -> None:
    async with vendor_gateway(installation, "cartesia") as (running, _):
        for language, shown in (("en", True), ("en-US", True), ("en-us", True), ("de", False), ("e", False)):
            assert ("secret" in await voices(running, language=language)) is shown, language
        assert "f786b574-daa5-4673-aa0c-cbe3e8534c02" in await voices(running, language="de")  # not tied to one
