"""How fast and how reliable providers were lately, from the records of all processes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from statistics import median
from typing import NamedTuple

import msgspec

from penstock.cache import Cache
from penstock.clock import Clock
from penstock.schema import FailedAttempt
from penstock.store.base import Store
from penstock.values import DAY_MS, OrgId, first_id

_ROWS_MAX = 1000  # the newest are read
_SECONDS_KEPT = 15.0
_KEPT_MAX = 256  # organizations whose figures are kept; the oldest are dropped
_NOT_ITS_FAULT = ("rejected", "refused")  # the request is to blame

_decode_attempts = msgspec.json.Decoder(list[FailedAttempt]).decode


class Performance(msgspec.Struct, frozen=True):
    """The last calls of one model of one provider."""

    successes: int
    failures: int
    seconds: float  # the median of the successful calls
    throughput: float  # the median of outputs, or of output tokens, per second

    @property
    def success_rate(self) -> float:
        return self.successes / (self.successes + self.failures)

    @property
    def expected_seconds(self) -> float:
        """How long it takes until a call succeeds, if failed ones are repeated."""
        return self.seconds / self.success_rate if self.successes else inf

    @property
    def expected_throughput(self) -> float:
        return self.throughput * self.success_rate

    @property
    def summary(self) -> str:
        """For callers, who do not see how many calls others make."""
        speed = f"{self.seconds:.3g} s, {self.throughput:.3g} per second, " if self.successes else ""
        return f"{speed}{self.success_rate:.0%} of the last calls succeeded"


Performances = Mapping[tuple[str, str], Performance]  # by the slug of a provider and its name of a model


class _EndedAttempt(msgspec.Struct, frozen=True):
    """How an attempt of a generation ended."""

    provider: str
    upstream_model: str
    state: str
    failure_kind: str | None
    count: int
    created_at_ms: int
    updated_at_ms: int


class _EndedChat(msgspec.Struct, frozen=True):
    """How a chat call ended."""

    provider: str | None
    upstream_model: str | None
    status: str
    output_tokens: int | None
    attempts: str | None  # that failed, as JSON
    created_at_ms: int
    duration_ms: int


class _Outcome(NamedTuple):
    """One call to a provider that ended."""

    provider: str
    upstream_model: str
    seconds: float | None  # None: it failed
    amount: int = 0  # of outputs, or of output tokens


class PerformanceReader:
    """Reads the records of the last day when a call needs them, and keeps the figures for some seconds."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._kept: Cache[str, Performances] = Cache(clock.monotonic, _KEPT_MAX)

    async def read(self, task: str, org_id: OrgId) -> Performances:
        """Of images and videos for all organizations, of chat for one."""
        key = org_id if task == "chat" else ""
        figures = self._kept.get(key)
        if figures is None:
            figures = _figures(await self._outcomes(task, org_id))
            self._kept.put(key, figures, _SECONDS_KEPT)
        return figures

    async def _outcomes(self, task: str, org_id: OrgId) -> list[_Outcome]:
        low = self._clock.now_ms() - DAY_MS
        if task == "chat":
            rows = await self._store.slow("list_ended_chats", org_id=org_id, low=first_id("req", low), limit=_ROWS_MAX)
            return [outcome for row in rows for outcome in _chat_outcomes(_EndedChat(**row))]
        rows = await self._store.slow("list_ended_attempts", low=first_id("att", low), limit=_ROWS_MAX)
        return [outcome for row in rows for outcome in _attempt_outcomes(_EndedAttempt(**row))]


def _attempt_outcomes(attempt: _EndedAttempt) -> Iterator[_Outcome]:
    if attempt.state == "completed":
        seconds = (attempt.updated_at_ms - attempt.created_at_ms) / 1000
        yield _Outcome(attempt.provider, attempt.upstream_model, seconds, attempt.count)
    elif attempt.failure_kind not in _NOT_ITS_FAULT:
        yield _Outcome(attempt.provider, attempt.upstream_model, None)


def _chat_outcomes(chat: _EndedChat) -> Iterator[_Outcome]:
    """The failed attempts of a chat call and, if it was completed, the last one, which took the rest of the time."""
    attempts = _decode_attempts(chat.attempts) if chat.attempts else []
    for attempt in attempts:
        if attempt.kind not in _NOT_ITS_FAULT:
            yield _Outcome(attempt.provider, attempt.upstream_model, None)
    if chat.status == "completed" and chat.provider and chat.upstream_model:
        spent_ms = attempts[-1].ended_at_ms - chat.created_at_ms if attempts else 0
        seconds = max(0, chat.duration_ms - spent_ms) / 1000
        yield _Outcome(chat.provider, chat.upstream_model, seconds, chat.output_tokens or 0)


def _figures(outcomes: Iterable[_Outcome]) -> Performances:
    by_model: dict[tuple[str, str], list[_Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_model[outcome.provider, outcome.upstream_model].append(outcome)
    return {name: _performance(found) for name, found in by_model.items()}


def _performance(outcomes: list[_Outcome]) -> Performance:
    timed = [(outcome.seconds, outcome.amount) for outcome in outcomes if outcome.seconds is not None]
    if not timed:
        return Performance(0, len(outcomes), inf, 0.0)
    return Performance(
        successes=len(timed),
        failures=len(outcomes) - len(timed),
        seconds=median(seconds for seconds, _ in timed),
        throughput=median(amount / max(seconds, 0.001) for seconds, amount in timed),
    )
