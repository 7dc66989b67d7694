"""Compare two recordings of the same call, made at different times: what a provider has changed meanwhile."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Literal

import msgspec

from penstock.net.event_stream import data_of_events
from penstock.recordings.files import RecordingFile

Kind = Literal["failed", "shape", "cost", "latency", "picture"]
KINDS: tuple[Kind, ...] = ("failed", "shape", "cost", "latency", "picture")
_LATENCY_MS = 500  # a smaller difference is noise
_MOST_DIFFERENCES = 20
# Fields whose values are part of the shape, because programs decide by them.
_DECIDING = frozenset({"finish_reason", "status", "type", "object", "role", "name"})
_LONGEST_VALUE = 40


class Change(msgspec.Struct, frozen=True):
    """One thing that is different now."""

    kind: Kind
    text: str


class Limits(msgspec.Struct, frozen=True):
    """From where on a difference is a change."""

    cost_percent: float = 5.0
    latency_percent: float = 100.0
    distance: float = 0.4


class Side(msgspec.Struct, frozen=True):
    """A recording: its file, and the bytes of its media in order."""

    document: RecordingFile
    media: tuple[bytes, ...]

    @property
    def cost(self) -> Decimal | None:
        """What the call cost in dollars. Older recordings do not say it, except in the usage of a response."""
        if self.document.cost is not None:
            return Decimal(self.document.cost)
        usage = [found for value in self.values for found in _usages(value)]
        return usage[-1] if usage else None

    @property
    def values(self) -> list[Any]:
        """The JSON of a chat's response, or of each event of a stream."""
        if self.document.task != "chat":
            return []
        (data,) = self.media
        is_stream = self.document.files[0].content_type == "text/event-stream"
        found = []
        for text in data_of_events(data) if is_stream else [data]:
            with suppress(msgspec.DecodeError):  # such as [DONE]
                found.append(msgspec.json.decode(text))
        return found


def changes(before: Side, after: Side, limits: Limits, distances: Sequence[float | None] = ()) -> list[Change]:
    """What has changed. `distances` are those of the pictures, None where one cannot be compared."""
    found = [Change("shape", text) for text in _shape_changes(before, after)]
    found += _cost_changes(before.cost, after.cost, limits)
    was_ms, is_ms = before.document.duration_ms, after.document.duration_ms
    if is_ms - was_ms > _LATENCY_MS and is_ms > was_ms * (1 + limits.latency_percent / 100):
        found.append(Change("latency", f"took {is_ms / 1000:.1f} s, was {was_ms / 1000:.1f} s"))
    for number, distance in enumerate(distances, 1):
        if distance is not None and distance > limits.distance:
            found.append(Change("picture", f"picture {number} looks different: distance {distance:.2f}"))
    return found


def _cost_changes(was: Decimal | None, now: Decimal | None, limits: Limits) -> list[Change]:
    if was is None or now is None or was == now:
        return []
    if was and abs(now - was) * 100 <= was * Decimal(limits.cost_percent):
        return []
    percent = f" ({(now - was) / was * 100:+.0f}%)" if was else ""
    return [Change("cost", f"costs ${now:f}, was ${was:f}{percent}")]


def _shape_changes(before: Side, after: Side) -> Iterator[str]:
    if before.document.executed_model != after.document.executed_model:
        yield f"made by {after.document.executed_model}, was {before.document.executed_model}"
    if before.document.task == "chat":
        was, now = _shapes(before.values), _shapes(after.values)
        lines = [f"new: {line}" for line in sorted(now - was)] + [f"gone: {line}" for line in sorted(was - now)]
        yield from lines[:_MOST_DIFFERENCES]
        if len(lines) > _MOST_DIFFERENCES:
            yield f"and {len(lines) - _MOST_DIFFERENCES} more differences"
        return
    was_files, now_files = _files(before.document), _files(after.document)
    if was_files != now_files:
        yield f"made {now_files}, was {was_files}"
    if before.document.seconds != after.document.seconds:
        yield f"lasts {after.document.seconds} s, was {before.document.seconds} s"


def _files(document: RecordingFile) -> str:
    """What was made, such as `image/png 1024x1024, image/png 1024x1024`."""
    return ", ".join(
        f"{file.content_type} {file.width}x{file.height}" if file.width else file.content_type
        for file in document.files
    )


def _shapes(values: Sequence[Any]) -> frozenset[str]:
    return frozenset(line for value in values for line in _lines(value, ""))


def _lines(value: Any, path: str) -> Iterator[str]:
    """A line for each field, with its type, and its value if programs decide by it. Items of lists count together."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _lines(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        if not value:
            yield f"{path}[]: empty"
        for item in value:
            yield from _lines(item, f"{path}[]")
    else:
        name = path.rpartition(".")[2]
        is_shown = name in _DECIDING and isinstance(value, str) and len(value) <= _LONGEST_VALUE
        yield f"{path}: {_type(value)}" + (f" `{value}`" if is_shown else "")


def _type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number"


def _usages(value: Any) -> Iterator[Decimal]:
    """The costs that a response, or an event with one, says."""
    if isinstance(value, dict):
        for holder in (value, value.get("response")):
            usage = holder.get("usage") if isinstance(holder, dict) else None
            if isinstance(usage, dict) and type(usage.get("cost")) in (int, float):
                yield Decimal(str(usage["cost"]))
