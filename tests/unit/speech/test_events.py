"""The two forms in which speech is streamed."""

import base64
import json

from penstock.errors import UpstreamError
from penstock.speech.events import PlainSound, SoundEvents


def test_events_carry_the_sound_in_base64() -> None:
    event = SoundEvents().part(b"\x00\x01\xff")
    assert event.startswith(b"data: ")
    assert event.endswith(b"\n\n")
    assert json.loads(event[6:]) == {"type": "speech.audio.delta", "audio": base64.b64encode(b"\x00\x01\xff").decode()}


def test_the_last_event_has_usage_and_metadata() -> None:
    event = json.loads(SoundEvents().end({"total_tokens": 3}, {"cost": 0.1})[6:])
    assert event == {"type": "speech.audio.done", "usage": {"total_tokens": 3}, "metadata": {"cost": 0.1}}


def test_a_failure_is_an_event_of_its_own() -> None:
    event = json.loads(SoundEvents().fail(UpstreamError("It broke."))[6:])
    assert (event["type"], event["error"]["code"]) == ("error", "UPSTREAM_ERROR")


def test_plain_sound_has_nothing_but_sound() -> None:
    form = PlainSound()
    assert form.part(b"abc") + form.end({}, {}) + form.fail(UpstreamError("x")) == b"abc"
