"""Tell whether the other processes have had the time to renew their leases, so that an expired one means a crash."""

from penstock.clock import Clock

_ROUNDS = 2


class Renewals:
    """The renewals of this process, which show whether the others could renew too.

    While the store is away, or the machine stands still, no process renews, and all leases expire together. The others
    renew soon after, but not all of them before this one. So the leases of others are judged only after two renewals in
    a row that were in time: none of the store's calls failed, and no lease could expire since the renewal before. A
    process that has just been started waits for them too, and so does one that finds the database's clock set: leases
    from before are in another time.
    """

    def __init__(self, clock: Clock, *, lease_seconds: float, seconds_between: float) -> None:
        self._clock = clock
        # A lease of another process may be `seconds_between` older than those of this one.
        self._late_ms = (lease_seconds - seconds_between) * 1000
        self._last_ms = clock.steady_ms()
        self._steps = clock.steps
        self._in_time = 0

    def note_renewal(self) -> None:
        self._in_time = 0 if self._is_late else self._in_time + 1
        self._last_ms = self._clock.steady_ms()
        self._steps = self._clock.steps

    def note_failure(self) -> None:
        """The store was unavailable, for a renewal or for anything else."""
        self._in_time = 0

    @property
    def others_had_time(self) -> bool:
        """Whether every living process has renewed its leases, so that an expired one belongs to a dead process."""
        return self._in_time >= _ROUNDS and not self._is_late

    @property
    def _is_late(self) -> bool:
        return self._clock.steps != self._steps or self._clock.steady_ms() - self._last_ms > self._late_ms
