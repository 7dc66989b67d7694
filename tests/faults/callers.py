"""Callers of every kind who remember what they were answered, and compare it with what is recorded."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests import sounds
from tests.api.raw_http import RawResponse
from tests.faults.rig import CHAT_WORDS, SPEECH, SPOKEN_CHARACTERS, Rig, Running, spoken_text

_SECONDS = 30  # a call that takes longer has failed
_LOST = (OSError, EOFError, TimeoutError)


@dataclass(slots=True)
class Callers:
    """One caller for each kind of call and server. Each makes one call after the other."""

    rig: Rig
    prompts: dict[str, str] = field(default_factory=dict)  # of everything that was answered, by request id
    videos: list[str] = field(default_factory=list)  # accepted
    images: list[str] = field(default_factory=list)  # answered
    sounds: list[str] = field(default_factory=list)  # accepted: effects, speech and transcripts as jobs
    chats: list[str] = field(default_factory=list)  # answered to the end
    speeches: list[str] = field(default_factory=list)  # heard to the end
    recorded: set[str] = field(default_factory=set)  # of chats and speeches, those whose record was seen afterwards
    refused: Counter[str] = field(default_factory=Counter)
    have_enough: bool = False  # set by a test to end all calls
    share_port: bool = False  # several processes serve one port, so the next call may reach another one
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def call(self, served: Running) -> None:
        """Call a server until it is killed or the callers have enough."""
        kinds = (
            self.request_video,
            self.request_image,
            self.request_sound,
            self.chat,
            self.stream_chat,
            self.stream_speech,
        )
        await asyncio.gather(*(self._repeat(served, kind) for kind in kinds))

    async def _repeat(self, served: Running, kind: Callable[[Running], Awaitable[None]]) -> None:
        while served.process.returncode is None and not self.have_enough:
            with suppress(*_LOST):  # the server was killed: whoever has no answer remembers nothing
                async with asyncio.timeout(_SECONDS):
                    await kind(served)
            await asyncio.sleep(0.02)

    # ----------------------------------------------------------------------------------------------------------- calls

    async def request_video(self, served: Running) -> None:
        prompt = self._words("video")
        fields = {"model": "video-1", "seconds": 4, "prompt": prompt, "webhook_url": self.rig.hook}
        response = await served.ask("POST", "/compat/v1/videos", fields)
        if self._is_ok(response):
            self._remember(self.videos, response.json["id"], prompt)

    async def request_image(self, served: Running) -> None:
        prompt = self._words("image")
        fields = {"model": "image-1", "prompt": prompt, "size": "64x64"}
        response = await served.ask("POST", "/compat/v1/images/generations", fields)
        if self._is_ok(response):
            assert len(response.json["data"]) == 1
            self._remember(self.images, response.headers["x-request-id"], prompt)

    async def request_sound(self, served: Running) -> None:
        response = await self.rig.start_sound(served, next(self._numbers))
        if self._is_ok(response):
            self.sounds.append(response.json["id"])

    async def chat(self, served: Running) -> None:
        await self._chat(served, lambda response: str(response.json["choices"][0]["message"]["content"]))

    async def stream_chat(self, served: Running) -> None:
        await self._chat(served, _streamed_text, stream=True)

    async def _chat(self, served: Running, text: Callable[[RawResponse], str], **more: Any) -> None:
        prompt = self._words("chat")
        fields = {"model": "lab/chat", "messages": [{"role": "user", "content": prompt}], "max_tokens": 20, **more}
        response = await served.ask("POST", "/compat/v1/chat/completions", fields)
        if not self._is_ok(response):
            return
        assert text(response) == prompt, "the provider repeats what it hears"
        await self._see_record(served, self.chats, response.headers["x-request-id"], prompt)

    async def stream_speech(self, served: Running) -> None:
        text = spoken_text("call", next(self._numbers))
        response = await served.ask("POST", SPEECH, {"model": "lab/voice", "input": text, "voice": "alloy"})
        if self._is_ok(response):
            seconds = SPOKEN_CHARACTERS / self.rig.lab.characters_per_second
            assert response.body == sounds.encoded("mp3", seconds), "whole, as the provider sent it"
            await self._see_record(served, self.speeches, response.headers["x-request-id"], text)

    async def _see_record(self, served: Running, answered: list[str], request_id: str, prompt: str) -> None:
        """Read the record of a call that ended, which is stored from then on whatever happens to the server."""
        self._remember(answered, request_id, prompt)
        record = await served.ask("GET", f"/v1/requests/{request_id}")
        while self.share_port and record.json["status"] == "processing":  # until its process writes it, or is dead
            await asyncio.sleep(0.02)
            record = await served.ask("GET", f"/v1/requests/{request_id}")
        if record.json["status"] == "completed" or not self.share_port:
            assert (record.status, record.json["status"]) == (200, "completed"), record
            self.recorded.add(request_id)

    def _words(self, kind: str) -> str:
        words = [kind, *["word"] * (CHAT_WORDS - 2), str(next(self._numbers))]
        return " ".join(words)

    def _is_ok(self, response: RawResponse) -> bool:
        if response.status in (200, 202):
            return True
        self.refused[f"{response.status} {response.json['error']['code']}"] += 1
        return False

    def _remember(self, answered: list[str], request_id: str, prompt: str) -> None:
        answered.append(request_id)
        self.prompts[request_id] = prompt

    # -------------------------------------------------------------------------------------------------------- checking

    def fewest(self) -> int:
        """How many calls were answered of the kind with the fewest."""
        return min(map(len, (self.videos, self.images, self.sounds, self.speeches, self.recorded)))

    async def check(self, served: Running, kills: int, failures: frozenset[str] = frozenset()) -> Counter[str]:
        """Check that all that was answered is recorded and charged once; return how many there are of what.

        A chat or a speech whose record nobody has read may be lost with its server, at no cost to its caller.
        """
        ended = await self.rig.check(served, [*self.videos, *self.sounds], failures)
        statuses = {row["id"]: row["status"] for row in await self.rig.rows("SELECT id, status FROM requests")}
        stored = {request_id for request_id, status in statuses.items() if status == "completed"}
        assert stored >= {*self.images, *self.recorded}
        streams = [*self.chats, *self.speeches]
        assert statuses.keys() >= {*streams}
        lost = [request_id for request_id in streams if request_id not in stored]
        assert len(lost) <= 3 * kills, "each of their three callers has one call at a time"
        invoiced = Counter(charge.prompt for charge in self.rig.lab.invoice)
        assert [prompt for request_id, prompt in self.prompts.items() if invoiced[prompt] > 1] == []
        assert [
            request_id for request_id in stored & self.prompts.keys() if not invoiced[self.prompts[request_id]]
        ] == []
        kinds = {name: len(getattr(self, name)) for name in ("videos", "images", "sounds", "chats", "speeches")}
        return Counter({**kinds, "not charged": len(lost), **ended})


def _streamed_text(response: RawResponse) -> str:
    """The text of a stream that was received to its end."""
    events = [line.removeprefix(b"data: ") for line in response.body.split(b"\n") if line.startswith(b"data: ")]
    assert events[-1] == b"[DONE]", events
    choices = [choice for event in events[:-1] for choice in json.loads(event)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)
