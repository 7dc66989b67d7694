"""Write a log line for each call: what was called, how it ended, how long it took, who served it and what it cost.

Each chat call writes a line, so it is encoded here and not by structlog, which takes more than ten times as long. Lines
are encoded and written together, some milliseconds late: a line alone costs the event loop several times as much,
because each write lets other threads take the interpreter from it.
"""

import asyncio
import sys
import time
from functools import lru_cache

import msgspec

from penstock.settings import Settings
from penstock.telemetry.logs import DIM, RESET, Style, escape_controls, log_style, redact
from penstock.values import OrgId

DISCONNECTED = 499  # the status in the line of a call whose caller left before a response was sent; nginx's number
_DELAY_SECONDS = 0.05
_WRITE_BYTES = 4096  # at most in one write: then the lines of processes that share a pipe are not mixed
_COLOURS = {2: "\033[32m", 3: "\033[36m", 4: "\033[33m", 5: "\033[31m"}


class AccessLine(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """The fields of a line. Of what callers choose it has only the model: no path, query, body or header."""

    method: str
    route: str  # the template, such as /compat/v1/videos/{id}
    status: int
    ms: float  # from the head of the call to the end of its response
    overhead_ms: float | None = None  # of this, what the gateway itself took until it sent the head
    code: str | None = None  # of the error
    request_id: str
    org_id: OrgId | None = None
    key_id: str | None = None
    model: str | None = None
    provider: str | None = None
    cost_usd: float | None = None
    trace_id: str | None = None
    event: str = ""
    level: str = ""
    timestamp: str = ""


class AccessLog:
    """Writes access lines to stderr, in the style of all other log lines."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._waiting: list[tuple[int, AccessLine]] = []  # with the time in milliseconds

    @classmethod
    def of(cls, settings: Settings) -> "AccessLog | None":
        """None if the settings ask for no access lines."""
        if not settings.access_log or settings.log_level not in ("debug", "info"):
            return None
        return cls(log_style(settings.log_format))

    def add(self, line: AccessLine) -> None:
        """Write the line soon."""
        if not self._waiting:
            asyncio.get_running_loop().call_later(_DELAY_SECONDS, self.write)
        self._waiting.append((time.time_ns() // 1_000_000, line))

    def write(self) -> None:
        """Write the lines that wait."""
        waiting = self._waiting
        self._waiting = []
        text = b""
        for at_ms, line in waiting:
            encoded = self._encode(at_ms, line)
            if text and len(text) + len(encoded) > _WRITE_BYTES:
                sys.stderr.write(text.decode())
                text = b""
            text += encoded
        if text:
            sys.stderr.write(text.decode())

    def _encode(self, at_ms: int, line: AccessLine) -> bytes:
        if line.model is not None:
            line.model = redact(line.model)
        if self._style != "json":
            return _readable(at_ms, line, is_coloured=self._style == "colour").encode() + b"\n"
        line.event = "call"
        line.level = "info"
        line.timestamp = f"{_second(at_ms // 1000)}.{at_ms % 1000:03}Z"
        return msgspec.json.encode(line) + b"\n"


@lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def _readable(at_ms: int, line: AccessLine, *, is_coloured: bool) -> str:
    dim, reset = (DIM, RESET) if is_coloured else ("", "")
    clock_time = time.strftime("%H:%M:%S", time.localtime(at_ms // 1000))
    colour = _COLOURS.get(line.status // 100, "") if is_coloured else ""
    parts = [
        f"{dim}{clock_time}{reset} {line.method:<6} {line.route} {colour}{line.status}{reset}",
        f"{line.ms:.1f} ms",
    ]
    if line.code:
        parts.append(f"{colour}{line.code}{reset}")
    if line.model:
        parts.append(escape_controls(line.model) + (f" by {line.provider}" if line.provider else ""))
    if line.cost_usd is not None:
        parts.append(f"${line.cost_usd:.6f}".rstrip("0").rstrip("."))
    if line.overhead_ms is not None:
        parts.append(f"{dim}own {line.overhead_ms:.1f} ms{reset}")
    ids = f"{line.request_id} {line.trace_id}" if line.trace_id else line.request_id
    return "  ".join([*parts, f"{dim}{ids}{reset}"])
