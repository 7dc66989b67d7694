"""What is noted about a call while it is served, for its access line and its header with the gateway's own time."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar

from penstock.clock import Clock
from penstock.values import Nanos


class CallReport:
    """Facts about one call. The jobs that it starts in this process report here too.

    It is entered for each wait for a provider, to measure how long the call waits; waits that overlap count once.
    """

    __slots__ = ("_monotonic", "_running", "_seconds", "_since", "cost", "headers", "provider", "started")

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._running = 0
        self._since = 0.0
        self._seconds = 0.0
        self.started: float = clock.monotonic()
        self.provider: str | None = None  # that served it, or failed last
        self.cost: Nanos | None = None  # charged to the caller
        self.headers: Mapping[str, str] = {}  # what the response says of the way that the call went

    def __enter__(self) -> None:
        if not self._running:
            self._since = self._monotonic()
        self._running += 1

    def __exit__(self, *exception: object) -> None:
        self._running -= 1
        if not self._running:
            self._seconds += self._monotonic() - self._since

    @property
    def overhead_ms(self) -> float:
        """What the gateway itself has taken so far: all of the time but the waits for providers."""
        now = self._monotonic()
        waited = self._seconds + (now - self._since if self._running else 0.0)
        return max(0.0, now - self.started - waited) * 1000


GUARDS = "x-service-guards"
_current: ContextVar[CallReport | None] = ContextVar("call_report", default=None)
_NO_CALL = nullcontext()


def open_report(clock: Clock) -> CallReport:
    """Begin the report of a call: in this task, and in the tasks that it starts."""
    report = CallReport(clock)
    _current.set(report)
    return report


def provider_wait() -> AbstractContextManager[None]:
    """Count the time inside as waiting for a provider. Does nothing for a job whose call was made elsewhere."""
    report = _current.get()
    return _NO_CALL if report is None else report


def report_result(provider: str | None, cost: Nanos | None) -> None:
    """Note who served the current call and what it cost, for the access line."""
    if report := _current.get():
        report.provider = provider
        report.cost = cost


def report_guards(verdict: str) -> None:
    """Note what the guards said of the current call, for the header of its response."""
    if report := _current.get():
        flagged = "flag" in (verdict, report.headers.get(GUARDS))
        report.headers = {**report.headers, GUARDS: "flag" if flagged else verdict}


def reported_cost() -> Nanos | None:
    """What the current call was charged; None if that is not known yet."""
    report = _current.get()
    return None if report is None else report.cost
