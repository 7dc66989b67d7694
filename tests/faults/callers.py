"""Callers of videos, images and chats who remember what they were answered, and compare it with what is recorded."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.api.raw_http import RawResponse
from tests.faults.rig import CHAT_WORDS, Rig, Running

_SECONDS = 30  # a call that takes longer has failed
_LOST = (OSError, EOFError, TimeoutError)


@dataclass(slots=True)
class Callers:
    """One caller for each kind of call and server. Each makes one call after the other."""

    rig: Rig
    prompts: dict[str, str] = field(default_factory=dict)  # of everything that was answered, by request id
    videos: list[str] = field(default_factory=list)  # accepted
    images: list[str] = field(default_factory=list)  # answered
    chats: list[str] = field(default_factory=list)  # answered to the end
    recorded: set[str] = field(default_factory=set)  # of these chats, those whose record was seen afterwards
    refused: Counter[str] = field(default_factory=Counter)
    have_enough: bool = False  # set by a test to end all calls
    share_port: bool = False  # several processes serve one port, so the next call may reach another one
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def call(self, served: Running) -> None:
        """Call a server until it is killed or the callers have enough."""
        kinds = (self.request_video, self.request_image, self.chat, self.stream_chat)
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

    async def chat(self, served: Running) -> None:
        await self._chat(served, lambda response: str(response.json["choices"][0]["message"]["content"]))

    async def stream_chat(self, served: Running) -> None:
        await self._chat(served, _streamed_text, stream=True)

    async def _chat(self, served: Running, text: Callable[[RawResponse], str], **more: Any) -> None:
        """Chat, and then read the record, which is stored from then on whatever happens to the server."""
        prompt = self._words("chat")
        fields = {"model": "lab/chat", "messages": [{"role": "user", "content": prompt}], "max_tokens": 20, **more}
        response = await served.ask("POST", "/compat/v1/chat/completions", fields)
        if not self._is_ok(response):
            return
        assert text(response) == prompt, "the provider repeats what it hears"
        request_id = response.headers["x-request-id"]
        self._remember(self.chats, request_id, prompt)
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

    async def check(self, served: Running, kills: int, failures: frozenset[str] = frozenset()) -> Counter[str]:
        """Check that all that was answered is recorded and charged once; return how many there are of what.

        A chat whose record nobody has read may be lost with its server, at no cost to its caller.
        """
        ended = await self.rig.check(served, self.videos, failures)
        statuses = {row["id"]: row["status"] for row in await self.rig.rows("SELECT id, status FROM requests")}
        stored = {request_id for request_id, status in statuses.items() if status == "completed"}
        assert stored >= {*self.images, *self.recorded}
        assert statuses.keys() >= {*self.chats}
        lost = [request_id for request_id in self.chats if request_id not in stored]
        assert len(lost) <= 2 * kills, "each of the two callers of chats has one call at a time"
        invoiced = Counter(charge.prompt for charge in self.rig.lab.invoice)
        assert [prompt for request_id, prompt in self.prompts.items() if invoiced[prompt] > 1] == []
        assert [
            request_id for request_id in stored & self.prompts.keys() if not invoiced[self.prompts[request_id]]
        ] == []
        kinds = {"videos": len(self.videos), "images": len(self.images), "chats": len(self.chats)}
        return Counter({**kinds, "chats not charged": len(lost), **ended})


def _streamed_text(response: RawResponse) -> str:
    """The text of a stream that was received to its end."""
    events = [line.removeprefix(b"data: ") for line in response.body.split(b"\n") if line.startswith(b"data: ")]
    assert events[-1] == b"[DONE]", events
    choices = [choice for event in events[:-1] for choice in json.loads(event)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)
