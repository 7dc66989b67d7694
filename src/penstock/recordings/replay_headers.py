"""The replay headers of a call: what they ask for, when its response is due, and what the response says about it."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from penstock.errors import InvalidRequest, RecordingNotFound
from penstock.values import REPLAY_MATCHES, REPLAY_MODES

_LATENCY = re.compile(r"([0-9]{1,5}), ?([0-9]{1,5})")
LONGEST_LATENCY_MS = 60_000  # a caller waits, with an open connection
_LONGEST_VIDEO_MS = 600_000  # for `real`: nobody waits, but a job runs
_FIELDS_MAX = 64
_PREFIX = "x-service-replay"
_HEADERS = frozenset(_PREFIX + suffix for suffix in ("", "-match", "-fields", "-recording", "-latency"))


class ReplayOptions(msgspec.Struct, frozen=True):
    """The values of the replay headers."""

    mode: str
    match: str = "standard"
    fields: tuple[str, ...] = ()
    recording: str | None = None
    latency: str = "instant"

    @property
    def may_replay(self) -> bool:
        """Whether a matching recording is served instead of a provider's output."""
        return self.mode.startswith("replay")

    @property
    def records(self) -> bool:
        """Whether the result of a live call is recorded."""
        return self.mode.endswith("record")


def replay_options(headers: Mapping[str, str], key_mode: str | None) -> ReplayOptions | None:
    """The replay options of a call, or None when neither its headers nor its key set a mode.

    Raises InvalidRequest for a bad header, or when a header is missing that another one needs.
    """
    mode = _header(headers, "", REPLAY_MODES) or key_mode
    match = _header(headers, "-match", REPLAY_MATCHES) or "standard"
    written = (name.strip() for name in headers.get(f"{_PREFIX}-fields", "").split(","))
    fields = tuple(dict.fromkeys(name for name in written if name))
    recording = headers.get(f"{_PREFIX}-recording")
    latency = headers.get(f"{_PREFIX}-latency", "instant")
    if match == "specific" and not fields:
        raise InvalidRequest(
            "X-Service-Replay-Fields is required when X-Service-Replay-Match is `specific`: field names, "
            "separated by commas.",
            param="X-Service-Replay-Fields",
        )
    if len(fields) > _FIELDS_MAX:
        raise InvalidRequest(
            f"X-Service-Replay-Fields may have {_FIELDS_MAX} field names at most.", param="X-Service-Replay-Fields"
        )
    if match == "pinned" and not recording:
        raise InvalidRequest(
            "X-Service-Replay-Recording is required when X-Service-Replay-Match is `pinned`: the id of a recording.",
            param="X-Service-Replay-Recording",
        )
    pauses = _LATENCY.fullmatch(latency)
    if latency not in ("instant", "real") and not (pauses and int(pauses[1]) <= int(pauses[2]) <= LONGEST_LATENCY_MS):
        raise InvalidRequest(
            "X-Service-Replay-Latency must be `instant`, `real`, or milliseconds to the first and the last byte, "
            f"such as `100,900`; the second is at least the first and at most {LONGEST_LATENCY_MS}.",
            param="X-Service-Replay-Latency",
        )
    return ReplayOptions(mode, match, fields, recording, latency) if mode else None


def has_replay_header(headers: Mapping[str, str]) -> bool:
    """Whether a call has any header about replay, also one that means nothing without a mode and may be wrong."""
    return not _HEADERS.isdisjoint(headers)


def _header(headers: Mapping[str, str], suffix: str, allowed: Sequence[str]) -> str | None:
    value = headers.get(_PREFIX + suffix)
    if value is not None and value not in allowed:
        name = "X-Service-Replay" + suffix.title()
        raise InvalidRequest(f"{name} must be one of {', '.join(f'`{word}`' for word in allowed)}.", param=name)
    return value


def replay_times(latency: str, recorded_ms: int, now_ms: int, *, is_video: bool = False) -> tuple[int, int]:
    """When the first and the last byte of a replayed response are due: after at most a minute, a video ten minutes."""
    if latency == "instant":
        return now_ms, now_ms
    if pauses := _LATENCY.fullmatch(latency):
        return now_ms + int(pauses[1]), now_ms + int(pauses[2])
    due_ms = now_ms + min(recorded_ms, _LONGEST_VIDEO_MS if is_video else LONGEST_LATENCY_MS)
    return due_ms, due_ms


def no_match() -> RecordingNotFound:
    """The error for a call in the mode `replay-or-error` that no recording matches."""
    message = (
        "No recording matches this call. Make it once with the header `X-Service-Replay: record` to record it; tests "
        "do so with `pytest --penstock-record`, or with `penstock recordings serve --record`."
    )
    return RecordingNotFound(message, should_retry=False)


def response_headers(status: str, recording_id: str | None) -> dict[str, str]:
    """The headers that say whether a response is live, recorded, replayed or mocked."""
    headers = {"x-service-replay-status": status}
    if recording_id:
        headers["x-service-replay-recording"] = recording_id
    return headers
