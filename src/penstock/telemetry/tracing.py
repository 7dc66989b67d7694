"""Spans of calls and jobs; they cost next to nothing while tracing is off. `trace_export` turns it on.

The place in the current trace is kept in a context variable, so that any part of the work can add a span:

    with span("convert"):
        ...

No span has a prompt, a key, a URL or the text of an error: only names, numbers and kinds of failures.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Literal

import msgspec

Kind = Literal["internal", "server", "client"]
Value = str | int | float | bool | Sequence[str]


class Span:
    """A part of the work. This one records nothing, because tracing is off or the trace is not sampled.

    A span is current within its `with` block, and ends with it unless `keep_open` was called.
    """

    __slots__ = ()
    is_recorded = False

    def __enter__(self) -> "Span":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trail: object) -> None:
        pass

    def set(self, name: str, value: Value | None) -> None:
        """Set an attribute; None sets nothing."""

    def fail(self, error_type: str) -> None:
        """Mark the span as failed. The type is a name of ours, never a message."""

    def keep_open(self) -> None:
        """Let the span go on after its block, until `end`; an exception still ends it."""

    def end(self) -> None:
        """End a span that was kept open."""


NO_SPAN = Span()


class Position(ABC):
    """A place in a trace, under which the spans of the current task begin."""

    __slots__ = ()

    @abstractmethod
    def start(self, name: str, kind: Kind) -> Span:
        """A span under this place."""

    @property
    @abstractmethod
    def trace_id(self) -> str: ...

    @abstractmethod
    def headers(self) -> dict[str, str]:
        """The place as `traceparent`, and `tracestate` if there is one."""


class Tracing(ABC):
    """Tracing that is on: it finds places in the traces of callers and of stored jobs."""

    @abstractmethod
    def position(self, headers: Mapping[str, str]) -> Position:
        """The place that the headers name; if they name none, a span there begins a trace."""

    def start_call(self, name: str, headers: Mapping[str, str]) -> Span:
        """The span of a call, in the trace of its caller if the headers name one."""
        return self.position(headers).start(name, "server")

    @contextmanager
    def continue_trace(self, stored: str | None) -> Iterator[None]:
        """Go on with the trace of a `stored_context`; outside of any trace if there is none."""
        headers = msgspec.json.decode(stored, type=dict[str, str]) if stored else None
        token = enter(None if headers is None else self.position(headers))
        try:
            yield
        finally:
            leave(token)


_current: ContextVar[Position | None] = ContextVar("trace_position", default=None)


def enter(position: Position | None) -> Token[Position | None]:
    """Set the current place; `leave` sets the one before it again."""
    return _current.set(position)


def leave(token: Token[Position | None]) -> None:
    _current.reset(token)


def span(name: str, kind: Kind = "internal") -> Span:
    """A span under the current place, to be used with `with`."""
    position = _current.get()
    return NO_SPAN if position is None else position.start(name, kind)


def trace_headers() -> dict[str, str]:
    """The headers with which whoever is called next can go on with the trace; none outside of a trace."""
    position = _current.get()
    return {} if position is None else position.headers()


def stored_context() -> str | None:
    """The current place as text, to be stored with a job that another process may run."""
    headers = trace_headers()
    return msgspec.json.encode(headers).decode() if headers else None


def current_trace_id() -> str | None:
    position = _current.get()
    return None if position is None else position.trace_id
