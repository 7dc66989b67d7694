"""The gateway that is attacked, and the table of attacks.

An attack is a function that prepares, awaits `begin`, and then calls the gateway as a hostile organization does.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.raw_client import call

MIB = 2**20
JSON_BYTES = 32 * MIB - 64 * 1024  # the default limit, with some room for the other fields
FORM_BYTES = 64 * MIB - 64 * 1024
IMAGES = "/compat/v1/images/generations"
EDITS = "/compat/v1/images/edits"
VIDEOS = "/compat/v1/videos"
CHAT = "/compat/v1/chat/completions"
TRANSCRIPTS = "/compat/v1/audio/transcriptions"
_AT_ONCE = 4

Begin = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Target:
    """The gateway to attack, and the answers that it gave, by status."""

    port: int
    key: str
    provider_port: int
    seconds: float
    document: Mapping[str, Any]
    answers: Counter[str] = field(default_factory=Counter)

    async def call(
        self, method: str, path: str, body: bytes | Iterable[bytes] = b"", headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Make a call and count its status; return the body of the response."""
        try:
            async with asyncio.timeout(60):
                status, response = await call(self.port, method, path, self.key, body, headers=headers)
        except (TimeoutError, OSError, EOFError):
            self.answers["none"] += 1
            return b""
        self.answers[str(status)] += 1
        return response

    async def repeat(self, make: Callable[[], Awaitable[Any]], at_once: int = _AT_ONCE) -> None:
        """Do something again and again, so many times at once, until the time is over; each at least once."""
        until = time.monotonic() + self.seconds

        async def loop() -> None:
            while True:
                await make()
                if time.monotonic() >= until:
                    return

        await asyncio.gather(*(loop() for _ in range(at_once)))


Attack = Callable[[Target, Begin], Coroutine[Any, Any, None]]
ATTACKS: dict[str, Attack] = {}


def attack(name: str) -> Callable[[Attack], Attack]:
    def register(run: Attack) -> Attack:
        ATTACKS[name] = run
        return run

    return register


def add_posts(name: str, path: str, make_body: Callable[[Target], bytes], kind: str = "application/json") -> None:
    """Add an attack that posts the same body again and again."""

    async def run(target: Target, begin: Begin) -> None:
        body = make_body(target)
        await begin()
        await target.repeat(lambda: target.call("POST", path, body, {"content-type": kind}))

    ATTACKS[name] = run


def add_gets(name: str, path: str, key: str | None = None) -> None:
    async def run(target: Target, begin: Begin) -> None:
        await begin()
        await target.repeat(lambda: call(target.port, "GET", path, target.key if key is None else key))

    ATTACKS[name] = run


# What each route accepts.
VALID: Mapping[str, Mapping[str, Any]] = {
    IMAGES: {"model": "lab/image-small", "prompt": "a pear", "size": "64x64"},
    EDITS: {"model": "lab/edit-small", "prompt": "a hat", "size": "64x64"},
    VIDEOS: {"model": "lab/video", "prompt": "a train", "seconds": 4},
    CHAT: {"model": "lab/chat-small", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 9},
    "/v1/keys": {"name": "a key"},
}


def json_body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()
