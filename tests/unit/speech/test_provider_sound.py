"""Sound in each form of reply: events, lines and JSON; usage and failures in them."""

import base64
import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.chat.stream import StreamBroken
from penstock.clock import Clock
from penstock.providers.minimax.speech import read_sound
from penstock.providers.spec import Provider
from penstock.providers.speech import SpeechPart, read_openai_event
from penstock.settings import Settings
from penstock.speech.plan import make_plan
from penstock.speech.provider_sound import ProviderSound
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed
from penstock.values import OrgId
from tests.unit.speech.tables import model, request

PROVIDER = Provider(slug="lab", name="Lab", docs="", base_url="https://lab.test", models=())


class Stream:
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = iter(pieces)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            return next(self._pieces)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None: ...


def provider_sound(replies: list[list[bytes]], **speech: Any) -> ProviderSound:
    """The sound of these replies, one for each part of the text."""
    spoken = model(**speech)
    plan = make_plan(spoken, request(text="one two. three four." if len(replies) > 1 else "one"))
    left = iter(replies)

    async def stream_chat(*_: Any, **__: Any) -> Stream:
        return Stream(next(left))

    gateway: Any = SimpleNamespace(
        clock=Clock(), settings=Settings(), upstream=SimpleNamespace(stream_chat=stream_chat)
    )
    return ProviderSound(gateway, Candidate(PROVIDER, spoken), plan, OrgId("org"))


def event(fields: Any) -> bytes:
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def delta(sound: bytes) -> bytes:
    return event({"type": "speech.audio.delta", "audio": base64.b64encode(sound).decode()})


DONE = event({"type": "speech.audio.done", "usage": {"input_tokens": 3, "output_tokens": 40, "total_tokens": 43}})


async def collected(source: ProviderSound) -> list[bytes]:
    return [piece async for piece in source.pieces()]


async def test_events_are_read_however_they_are_cut() -> None:
    whole = delta(b"abc") + b": comment\n\n" + delta(b"def") + DONE
    source = provider_sound([[bytes([byte]) for byte in whole]], reply="events", read=read_openai_event)
    assert b"".join(await collected(source)) == b"abcdef"
    assert source.usage == {"input": 3, "output": 40}


async def test_usage_of_parts_is_added_and_each_part_ends_with_nothing() -> None:
    reply = [delta(b"ab"), DONE]
    source = provider_sound([reply, reply], reply="events", read=read_openai_event, max_characters=12)
    assert await collected(source) == [b"ab", b"", b"ab", b""]
    assert (source.usage, source.begun, source.size_bytes) == ({"input": 6, "output": 80}, 2, 4)


async def test_later_counts_of_one_reply_replace_earlier_ones() -> None:
    counts = [event({"usage": {"input_tokens": 3, "output_tokens": count}}) for count in (10, 20, 30)]
    source = provider_sound([[delta(b"ab"), *counts]], reply="events", read=read_openai_event)
    await collected(source)
    assert source.usage == {"input": 3, "output": 30}


async def test_lines_are_read() -> None:
    lines = [json.dumps({"n": n}).encode() + b"\n" for n in (1, 2)]
    source = provider_sound(
        [[lines[0] + lines[1][:3], lines[1][3:]]], reply="lines", read=lambda each: SpeechPart(bytes([each["n"]]))
    )
    assert b"".join(await collected(source)) == b"\x01\x02"


async def test_a_json_reply_is_read_as_a_whole() -> None:
    reply = {"base_resp": {"status_code": 0}, "data": {"audio": "616263"}, "extra_info": {"usage_characters": 7}}
    body = json.dumps(reply).encode()
    source = provider_sound([[body[:20], body[20:]]], reply="json", read=read_sound)
    assert await collected(source) == [b"abc", b""]
    assert source.usage == {"billed": 7}


@pytest.mark.parametrize(
    ("reply", "act"),
    [
        ("events", [event({"type": "error", "error": {"message": "no"}})]),
        ("events", [b"data: {broken\n\n"]),
        ("events", [DONE]),
        ("json", [b'{"base_resp": {"status_code": 1004}}']),
        ("json", [b"<html>"]),
        ("body", []),
    ],
)
async def test_what_is_no_sound_is_a_failure(reply: Any, act: list[bytes]) -> None:
    read = read_sound if reply == "json" else read_openai_event
    with pytest.raises(StreamBroken):
        await collected(provider_sound([act], reply=reply, read=read))


async def test_a_refusal_is_one() -> None:
    source = provider_sound([[event({})]], reply="events", read=lambda _: SpeechPart(error="refused"))
    with pytest.raises(AttemptFailed) as failure:
        await collected(source)
    assert failure.value.failure.kind == "refused"
