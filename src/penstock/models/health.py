"""A circuit breaker for each provider and model: after repeated failures it is tried last for a while."""

from collections import deque

import msgspec

from penstock.clock import Clock
from penstock.providers.spec import FailureKind
from penstock.values import iso

# Three failures in a row start a pause. Each pause is twice as long as the one before, up to five minutes.
_FAILURES_BEFORE_PAUSE = 3
_FIRST_PAUSE_SECONDS = 10.0
_PAUSE_SECONDS_MAX = 300.0
_HISTORY_LENGTH = 20  # how many of the last results are shown
_RECORDS_MAX = 4096  # callers choose the names of a router's models; the least recently called ones are dropped


class HealthRecord(msgspec.Struct):
    """What is known about one model of one provider."""

    failures_in_a_row: int = 0
    next_pause_seconds: float = _FIRST_PAUSE_SECONDS
    paused_until: float = 0.0  # monotonic
    successes: int = 0
    rejected: int = 0  # the request or its content; the provider works, but nothing shows that the model does
    failures: int = 0
    last_problem: str | None = None
    history: deque[tuple[int, str | None]] = msgspec.field(default_factory=lambda: deque(maxlen=_HISTORY_LENGTH))


class Health(msgspec.Struct):
    """Counts the results of real calls; it never sends probes. Kept in memory, for this process only."""

    clock: Clock
    records: dict[tuple[str, str], HealthRecord] = msgspec.field(default_factory=dict)

    def is_healthy(self, provider: str, upstream: str) -> bool:
        """False during a pause. A model that was never called is healthy."""
        record = self.records.get((provider, upstream))
        return record is None or record.paused_until <= self.clock.monotonic()

    def record_success(self, provider: str, upstream: str) -> None:
        """Count a success. Ends a pause."""
        record = self._record(provider, upstream)
        record.successes += 1
        self._end_pause(record, None)

    def _end_pause(self, record: HealthRecord, kind: FailureKind | None) -> None:
        record.history.append((self.clock.now_ms(), kind))
        record.failures_in_a_row = 0
        record.next_pause_seconds = _FIRST_PAUSE_SECONDS
        record.paused_until = 0.0

    def record_failure(
        self, provider: str, upstream: str, kind: FailureKind, retry_after_seconds: float | None = None
    ) -> None:
        """Count a failure. Starts a pause if the provider asks for one, or after the third failure in a row.

        A provider that rejects a request or refuses its content works: this ends a pause, and is counted apart.
        """
        record = self._record(provider, upstream)
        if kind in ("rejected", "refused"):
            record.rejected += 1
            self._end_pause(record, kind)
            return
        record.failures += 1
        record.history.append((self.clock.now_ms(), kind))
        record.failures_in_a_row += 1
        record.last_problem = kind
        now = self.clock.monotonic()
        if retry_after_seconds is not None:
            record.paused_until = max(record.paused_until, now + min(retry_after_seconds, _PAUSE_SECONDS_MAX))
        elif record.failures_in_a_row >= _FAILURES_BEFORE_PAUSE and record.paused_until <= now:
            # Failures during a pause do not make it longer: calls that ran at the same time fail at the same time.
            record.paused_until = now + record.next_pause_seconds
            record.next_pause_seconds = min(2 * record.next_pause_seconds, _PAUSE_SECONDS_MAX)

    def _record(self, provider: str, upstream: str) -> HealthRecord:
        """Get or create a record, and move it to the end of the dictionary: the first is the least recently called."""
        record = self.records.pop((provider, upstream), None) or HealthRecord()
        if len(self.records) >= _RECORDS_MAX:
            del self.records[next(iter(self.records))]
        self.records[provider, upstream] = record
        return record

    def report(self) -> list[dict[str, object]]:
        """One row per provider, account and model that was called, for operators."""
        now = self.clock.monotonic()
        return [
            {
                "provider": provider.partition(" ")[0],
                "account": provider.partition(" ")[2] or None,
                "model": upstream,
                "healthy": record.paused_until <= now,
                "successes": record.successes,
                "rejected": record.rejected,
                "failures": record.failures,
                "last_problem": record.last_problem,
                "recovers_in_seconds": max(0.0, round(record.paused_until - now, 1)),
                "history": [
                    {"at": iso(at_ms), "is_success": problem is None, "problem": problem}
                    for at_ms, problem in record.history
                ],
            }
            for (provider, upstream), record in sorted(self.records.items())
        ]
