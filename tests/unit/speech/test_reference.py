"""A voice is imitated only where the operator allows it, with consent, from a sound that the gateway has read."""

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock.errors import ContentPolicyViolation, InvalidRequest
from penstock.schema import Response
from penstock.speech.endpoint import create_speech
from tests import sounds
from tests.fake_providers.server import serving
from tests.fake_providers.speech import SpeechVendors
from tests.gateway import Installation, RunningGateway, sqlite_only
from tests.providers.sound_clients import not_in_client

pytestmark = sqlite_only


def uri(seconds: float, kind: Any = "mp3") -> str:
    return f"data:audio/{kind};base64,{b64encode(sounds.encoded(kind, seconds)).decode()}"


@asynccontextmanager
async def mistral(installation: Installation, **settings: Any) -> AsyncIterator[tuple[RunningGateway, SpeechVendors]]:
    async with serving(SpeechVendors()) as vendors:
        installation.environ |= {"MISTRAL_API_KEY": "secret"}
        allowed = {"allow_voice_cloning": True, **settings}
        async with installation.open(providers={"mistral": {"base_url": vendors.url}}, **allowed) as running:
            yield running, vendors


async def imitate(running: RunningGateway, reference: Any, **body: Any) -> Response:
    headers = body.pop("headers", {})
    asked = {"model": "mistralai/voxtral-mini-tts-3", "input": "Hello there.", "reference_audio": reference, **body}
    call = running.call(asked, endpoint="/compat/v1/audio/speech", headers=headers)
    response = await create_speech(running.gateway, call)
    if response.chunks is not None:
        assert sounds.container_of(b"".join([chunk async for chunk in response.chunks])) == "mp3"
    return response


async def events(running: RunningGateway) -> list[dict[str, Any]]:
    return await running.rows("SELECT body FROM audit_events WHERE action = 'voice.imitated'")


async def test_the_model_gets_the_sound_encoded_anew_and_the_consent_is_noted(installation: Installation) -> None:
    async with mistral(installation) as (running, vendors):
        written = {"audio": uri(3), "text": "Some words.", "consent": True}
        await imitate(running, written, voice="alloy")  # which OpenAI's clients always send
        [request] = vendors.received("openai")
        assert not_in_client("mistral", "speech", [request]) == []
        assert "voice_id" not in request.fields
        sent = b64decode(request.fields["ref_audio"])
        assert sounds.container_of(sent) == "wav"
        assert sounds.seconds_of(sent) == pytest.approx(3, abs=0.1)
        [event] = await events(running)
        assert '"consent":true' in str(event).replace(" ", "")
        assert "sha256" in str(event)


async def test_a_dry_run_and_a_mock_imitate_nobody(installation: Installation) -> None:
    async with mistral(installation, disabled_providers=()) as (running, vendors):
        written = {"audio": uri(3), "consent": True}
        await imitate(running, written, headers={"x-service-replay": "mock"})
        assert not await events(running)
        assert not vendors.received("openai")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"audio": uri(3)}, "consent: true"),
        ({"audio": uri(3), "consent": "true"}, "consent: true"),
        ({"consent": True}, "must be an object"),
        ({"audio": uri(3), "consent": True, "more": 1}, "must be an object"),
        ({"audio": uri(3), "consent": True, "text": "a" * 2001}, "2000 characters"),
        ({"audio": uri(1), "consent": True}, "2 to 30 seconds"),
        ({"audio": uri(31, "opus"), "consent": True}, "longer than 30 seconds"),
        ({"audio": "data:audio/wav;base64,bm90aGluZw==", "consent": True}, "no usable sound"),
        ({"audio": "http://127.0.0.1/x.wav", "consent": True}, "could not be fetched"),
    ],
)
async def test_what_is_wrong_with_a_reference_is_said(
    installation: Installation, reference: dict[str, Any], message: str
) -> None:
    async with mistral(installation) as (running, vendors):
        with pytest.raises(InvalidRequest, match=message) as caught:
            await imitate(running, reference)
        assert caught.value.param == "reference_audio"
        assert not vendors.received("openai")


async def test_it_is_refused_where_nobody_may_be_imitated(installation: Installation) -> None:
    written = {"audio": uri(3), "consent": True}
    async with mistral(installation, disabled_providers=()) as (running, _):
        with pytest.raises(InvalidRequest, match="not supported by atelier/voice"):
            await imitate(running, written, model="atelier/voice")
        with pytest.raises(InvalidRequest, match="would be stored"):
            await imitate(running, written, headers={"accept": "application/json"})
    async with mistral(installation, allow_voice_cloning=False) as (running, _):
        with pytest.raises(InvalidRequest, match="does not allow"):
            await imitate(running, written)


async def test_guards_read_what_is_said_in_the_sound(installation: Installation) -> None:
    words = {"guards": {"words": {"rules": {"words": ["gun"]}}}}
    async with mistral(installation, **words) as (running, vendors):
        with pytest.raises(ContentPolicyViolation, match="`words`"):
            await imitate(running, {"audio": uri(3), "text": "A gun.", "consent": True})
        assert not vendors.received("openai")
        assert not await events(running)


async def test_the_sound_is_neither_stored_nor_recorded(installation: Installation) -> None:
    async with mistral(installation, payloads="all") as (running, _):
        written = {"audio": uri(3), "text": "Some words.", "consent": True}
        await imitate(running, written)
        await imitate(running, written, headers={"x-service-replay": "record"})
        payloads, recordings = "SELECT request FROM payloads", "SELECT request FROM recordings"

        async def are_stored() -> bool:
            return len(await running.rows(payloads)) == 2

        await running.wait_until(are_stored)
        stored = [*await running.rows(payloads), *await running.rows(recordings)]
        assert len(stored) == 3
        for row in stored:
            text = bytes(row["request"]).decode()
            assert "data:" not in text
            assert "sha256" in text
            assert "Some words." in text


async def test_a_recording_is_of_one_voice(installation: Installation) -> None:
    async with mistral(installation) as (running, vendors):
        await imitate(running, {"audio": uri(3), "consent": True}, headers={"x-service-replay": "record"})
        for seconds in (3, 4):
            voice = {"audio": uri(seconds), "consent": True}
            await imitate(running, voice, headers={"x-service-replay": "replay-or-live"})
        assert len(vendors.received("openai")) == 2
