"""How much an account at a vendor takes: what the vendor's headers say, and what its refusals teach."""

import re
from collections import deque
from collections.abc import Mapping
from math import inf
from typing import NamedTuple

import msgspec

from penstock.clock import Clock

_MINUTE = 60.0
_AFTER_REFUSAL = 0.8  # of the starts of the last minute
_GROWTH = 1.05  # of a learned limit, for each minute without a refusal
_STARTS_MIN = 5  # in the last minute; fewer say nothing about how many the vendor takes
_STARTS_KEPT = 100_000
_BURST_SECONDS = 5.0  # how many starts may come at once: those of this time
_PAUSE_SECONDS = 5.0  # after a refusal that does not say how long
_PAUSE_SECONDS_MAX = 300.0
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


class Wait(NamedTuple):
    """Why an account takes no new call now."""

    seconds: float  # until it may take one
    is_set: bool = False  # by the operator, and not a guess


class AccountUse(msgspec.Struct, frozen=True):
    """How a process uses an account, and what it has learned, as the other processes read it."""

    open: int = 0
    starts: int = 0  # of the last minute
    refused_at_ms: int = 0  # when it last learned something
    rate: float | None = None  # learned, a minute
    concurrent: int | None = None  # learned
    pause_seconds: float = 0.0


class AccountLimits:
    """Counts the calls and jobs of one account in this process, and learns how many the vendor takes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.open = 0
        self.rate: float | None = None  # a minute
        self.concurrent: int | None = None
        self._starts = deque[float](maxlen=_STARTS_KEPT)
        self._tokens = inf
        self._tokens_at = clock.monotonic()
        self._refused_at_ms = 0
        self._grown_at = clock.monotonic()
        self._paused_until = 0.0
        self._others: list[AccountUse] = []

    # --------------------------------------------------------------------------------------------------------- counting

    def begin(self, *, is_new: bool = True) -> None:
        """Count a call, or a job that another run has started, until `end`."""
        self.open += 1
        if is_new:
            self._starts.append(self._clock.monotonic())
            self._tokens -= 1.0

    def end(self) -> None:
        self.open -= 1

    @property
    def starts_of_last_minute(self) -> int:
        since = self._clock.monotonic() - _MINUTE
        while self._starts and self._starts[0] <= since:
            self._starts.popleft()
        return len(self._starts)

    # --------------------------------------------------------------------------------------------------------- learning

    def refuse(self, retry_after_seconds: float | None, *, is_concurrency: bool) -> None:
        """Learn from a call that the vendor refused because there were too many."""
        self._refused_at_ms = self._clock.steady_ms()
        self._grown_at = self._clock.monotonic()
        if is_concurrency:
            self.concurrent = max(1, self.open + self._open_elsewhere - 1)
        elif (starts := self.starts_of_last_minute + self._started_elsewhere - 1) >= _STARTS_MIN:
            self._set_rate(_AFTER_REFUSAL * starts)
        self.pause(_PAUSE_SECONDS if retry_after_seconds is None and not is_concurrency else retry_after_seconds or 0.0)

    def pause(self, seconds: float) -> None:
        until = self._clock.monotonic() + min(seconds, _PAUSE_SECONDS_MAX)
        self._paused_until = max(self._paused_until, until)

    def read_headers(self, headers: Mapping[str, str]) -> None:
        """Take what the vendor says of its limit instead of what was learned."""
        remaining = headers.get("x-ratelimit-remaining-requests")
        if remaining is None:
            return
        reset = span_seconds(headers.get("x-ratelimit-reset-requests", ""))
        limit = headers.get("x-ratelimit-limit-requests", "")
        if limit.isdecimal() and remaining.isdecimal() and int(remaining) > 0:
            if self.rate is not None and reset is not None and reset <= _MINUTE:
                self._set_rate(float(min(int(limit), 1_000_000)))
        elif remaining == "0" and reset is not None:
            self.pause(reset)

    def forget(self) -> None:
        """Begin anew: the account was changed."""
        self.rate = self.concurrent = None
        self._paused_until = 0.0

    def _set_rate(self, rate: float) -> None:
        self.rate = max(1.0, rate)
        self._tokens = 0.0
        self._tokens_at = self._clock.monotonic()

    def _grow(self) -> None:
        """Let what was learned grow with each minute without a refusal."""
        minutes = int((self._clock.monotonic() - self._grown_at) / _MINUTE)
        if minutes < 1:
            return
        self._grown_at += minutes * _MINUTE
        if self.rate is not None:
            self.rate *= _GROWTH**minutes
        if self.concurrent is not None:
            self.concurrent = max(self.concurrent + minutes, int(self.concurrent * _GROWTH**minutes))

    # --------------------------------------------------------------------------------------------------------- choosing

    def wait(self, concurrent: int | None, per_minute: int | None) -> Wait | None:
        """Why the account takes no call now, by these limits of the operator and by what was learned; or None."""
        if concurrent is None and per_minute is None and not self._has_learned:
            return None
        self._grow()
        is_open = self.open + self._open_elsewhere
        if concurrent is not None and is_open >= concurrent:
            return Wait(1.0, is_set=True)
        seconds = max(0.0, self._paused_until - self._clock.monotonic())
        if self.concurrent is not None and is_open >= self.concurrent:
            seconds = max(seconds, 1.0)
        rate = min(inf if per_minute is None else per_minute, inf if self.rate is None else self.rate)
        for_token = 0.0 if rate == inf else self._until_token(rate - self._started_elsewhere)
        if for_token and rate == per_minute:
            return Wait(max(seconds, for_token), is_set=True)
        seconds = max(seconds, for_token)
        return Wait(seconds) if seconds else None

    @property
    def _has_learned(self) -> bool:
        return self.rate is not None or self.concurrent is not None or self._paused_until > 0

    def free_share(self, concurrent: int | None) -> float:
        """The free part of what the account takes at a time, never nothing."""
        limits = [limit for limit in (concurrent, self.concurrent) if limit]
        return max(0.01, 1 - self.open / min(limits)) if limits else 1.0

    def _until_token(self, rate: float) -> float:
        """Seconds until a call may start at so many a minute."""
        rate = max(1.0, rate)
        self._refill(rate)
        return 0.0 if self._tokens >= 1.0 else (1.0 - self._tokens) * _MINUTE / rate

    def _refill(self, rate: float) -> None:
        now = self._clock.monotonic()
        most = max(1.0, rate * _BURST_SECONDS / _MINUTE)
        self._tokens = min(most, max(self._tokens, -rate) + (now - self._tokens_at) * rate / _MINUTE)
        self._tokens_at = now

    @property
    def _open_elsewhere(self) -> int:
        return sum(other.open for other in self._others)

    @property
    def _started_elsewhere(self) -> int:
        return sum(other.starts for other in self._others)

    # ---------------------------------------------------------------------------------------------------------- sharing

    def use(self) -> AccountUse:
        """What the other processes need to know."""
        pause = max(0.0, self._paused_until - self._clock.monotonic())
        starts = self.starts_of_last_minute
        return AccountUse(self.open, starts, self._refused_at_ms, self.rate, self.concurrent, round(pause, 1))

    def follow(self, others: list[AccountUse]) -> None:
        """Count what the other processes use, and take over what one of them has learned since."""
        self._others = others
        for other in others:
            if other.refused_at_ms > self._refused_at_ms:
                self._refused_at_ms = other.refused_at_ms
                self._grown_at = self._clock.monotonic()
                self.concurrent = other.concurrent
                if other.rate is not None:
                    self._set_rate(other.rate)
            if other.pause_seconds:
                self.pause(other.pause_seconds)


def span_seconds(text: str) -> float | None:
    """The seconds of a span of time as vendors write it, such as `1s`, `6m0s`, `12ms` or `30`; None if it is none."""
    found = list(_SPAN.finditer(text.strip()))
    if not found or "".join(match[0] for match in found) != text.strip():
        return None
    return sum(float(match[1]) * _SECONDS[match[2]] for match in found)
