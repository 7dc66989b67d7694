"""Pass a stream of chat chunks on as it comes, learning from it what was used."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec

DONE = b"data: [DONE]\n\n"
_MOST_EVENT_BYTES = 1024 * 1024
_ABSURD_USD = 10**9


# Quotes inside a text are escaped: this is never part of what was said.
_FINISH = re.compile(rb'("finish_reason":\s*")([a-z_]+)"')


class Broken(Exception):
    """The provider's stream cannot be passed on: an error inside it, or something that is no stream of chunks."""

    def __init__(self, words: str, event: bytes = b"") -> None:
        super().__init__(words)
        self.event = event  # the error as it came, where there was one


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    """What a provider says that a conversation used."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    cost: float | None = None  # dollars
    cost_in_usd_ticks: int | None = None  # as xAI puts it: a dollar has 10^10

    @property
    def input(self) -> int:
        return self.prompt_tokens or 0

    @property
    def output(self) -> int:
        """Google and xAI leave thinking out of the completion, and count it in the total alone."""
        return max(self.completion_tokens or 0, (self.total_tokens or 0) - self.input)

    @property
    def cached(self) -> int:
        """Of the input, what the provider still had in mind."""
        told = self.prompt_tokens_details
        return min(self.input, told.cached_tokens or 0) if told else 0

    @property
    def cost_usd(self) -> Decimal | None:
        """A figure that makes no sense counts as none."""
        usd = self.cost if self.cost_in_usd_ticks is None else Decimal(self.cost_in_usd_ticks) / 10**10
        return Decimal(str(usd)) if usd is not None and 0 <= usd < _ABSURD_USD else None


class _Chunk(msgspec.Struct):
    choices: list[msgspec.Raw] | None = None
    usage: Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")


_decode = msgspec.json.Decoder(_Chunk).decode
# Only chunks that may say something to us are looked into; the others are content.
_TELLING = (b'"usage":{', b'"usage": {', b'"error"', b"[DONE]")


@dataclass(slots=True)
class Relay:
    """Whole events out as soon as their last byte is in. Never holds back more than one unfinished event."""

    keeps_usage: bool  # the caller asked for the usage chunk
    finish: Mapping[bytes, bytes] = field(default_factory=dict)  # the provider's words for why an answer ended, in ours
    events: int = 0
    usage: Usage | None = None
    done: bool = False
    size_bytes: int = 0
    _rest: bytes = field(default=b"", repr=False)

    def feed(self, chunk: bytes) -> bytes:
        """What can be passed on now."""
        data = self._rest + chunk if self._rest else chunk
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        end = data.rfind(b"\n\n") + 2
        if end < 2:
            end = 0
        self._rest = data[end:]
        if len(self._rest) > _MOST_EVENT_BYTES:
            raise Broken("sent a line that is too long")
        ready = data[:end]
        if not self.events and (ready.startswith(b":") or b"\n:" in ready):
            ready = _without_comments(ready)
        if not ready:
            return b""
        if any(word in ready for word in _TELLING):
            ready = self._sifted(ready)
        else:
            self.events += ready.count(b"data:")
        ready = plainly(ready, self.finish)
        self.size_bytes += len(ready)
        return ready

    def _sifted(self, events: bytes) -> bytes:
        kept = []
        for event in events.split(b"\n\n"):
            data = b"".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
            if not data:
                if event:
                    kept.append(event)
            elif data == b"[DONE]":
                self.done = True
                kept.append(event)
            elif self._passes(data):
                kept.append(event)
        return b"\n\n".join([*kept, b""]) if kept else b""

    def _passes(self, data: bytes) -> bool:
        try:
            chunk = _decode(data)
        except msgspec.DecodeError:
            raise Broken("sent something that is no chunk") from None
        if bytes(chunk.error) != b"null":
            raise Broken("failed while answering", data)
        self.events += bool(chunk.choices)
        if chunk.usage is None:
            return True
        self.usage = chunk.usage
        return self.keeps_usage or bool(chunk.choices)


def plainly(answer: bytes, finish: Mapping[bytes, bytes]) -> bytes:
    """The interface knows four reasons for the end of an answer; some providers have more."""
    if not finish:
        return answer
    return _FINISH.sub(lambda found: found[1] + finish.get(found[2], found[2]) + b'"', answer)


def _without_comments(events: bytes) -> bytes:
    """A provider that only says that it is still there has not begun: nothing is promised to the caller yet."""
    kept = (
        b"\n".join(line for line in event.split(b"\n") if not line.startswith(b":")) for event in events.split(b"\n\n")
    )
    return b"".join(event + b"\n\n" for event in kept if event)
