"""The two forms in which speech is streamed: its bytes, or server-sent events with them in base64."""

from base64 import b64encode
from typing import Any, Protocol

import msgspec

from penstock.errors import Problem


class SpeechForm(Protocol):
    """Makes the caller's bytes from those of the sound."""

    def part(self, sound: bytes) -> bytes: ...
    def end(self, usage: dict[str, int], metadata: dict[str, Any]) -> bytes: ...
    def fail(self, problem: Problem) -> bytes: ...


class PlainSound:
    """The sound as it is. A sound that breaks off has no end, so that nobody takes it for a whole one."""

    def part(self, sound: bytes) -> bytes:
        return sound

    def end(self, usage: dict[str, int], metadata: dict[str, Any]) -> bytes:
        return b""

    def fail(self, problem: Problem) -> bytes:
        return b""


class SoundEvents:
    """OpenAI's events."""

    def part(self, sound: bytes) -> bytes:
        return b'data: {"type":"speech.audio.delta","audio":"%b"}\n\n' % b64encode(sound)

    def end(self, usage: dict[str, int], metadata: dict[str, Any]) -> bytes:
        return _event({"type": "speech.audio.done", "usage": usage, "metadata": metadata})

    def fail(self, problem: Problem) -> bytes:
        return _event({"type": "error", **problem.body()})


def _event(fields: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(fields) + b"\n\n"
