"""Pass a stream of chat chunks on as it comes, learning from it what was used."""

from dataclasses import dataclass, field

import msgspec

DONE = b"data: [DONE]\n\n"
_MOST_EVENT_BYTES = 1024 * 1024


class Broken(Exception):
    """The provider's stream cannot be passed on: an error inside it, or something that is no stream of chunks."""


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None


class _Chunk(msgspec.Struct):
    choices: list[msgspec.Raw] | None = None
    usage: _Usage | None = None
    error: msgspec.Raw | None = None


_decode = msgspec.json.Decoder(_Chunk).decode
# Only chunks that may say something to us are looked into; the others are content.
_TELLING = (b'"usage":{', b'"usage": {', b'"error"', b"[DONE]")


@dataclass(slots=True)
class Relay:
    """Whole events out as soon as their last byte is in. Never holds back more than one unfinished event."""

    keeps_usage: bool  # the caller asked for the usage chunk
    events: int = 0
    usage: tuple[int, int] | None = None
    cost: float | None = None
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
        if not ready:
            return b""
        if any(word in ready for word in _TELLING):
            ready = self._sifted(ready)
        else:
            self.events += ready.count(b"data:")
        self.size_bytes += len(ready)
        return ready

    def _sifted(self, events: bytes) -> bytes:
        kept = []
        for event in events.split(b"\n\n"):
            data = event.removeprefix(b"data:").strip() if event.startswith(b"data:") else b""
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
        if chunk.error is not None and bytes(chunk.error) != b"null":
            raise Broken("failed while answering")
        self.events += bool(chunk.choices)
        if chunk.usage is None:
            return True
        self.usage = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
        self.cost = chunk.usage.cost
        return self.keeps_usage or bool(chunk.choices)
