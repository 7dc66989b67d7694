"""Which providers are well, from what their calls returned."""

from dataclasses import dataclass, field

from penstock.clock import Clock

# Three bad answers in a row open the circuit; each time it stays open twice as long, up to five minutes.
_BAD_IN_A_ROW = 3
_FIRST_PAUSE_SECONDS = 10.0
_LONGEST_PAUSE_SECONDS = 300.0
_MOST_PULSES = 4096  # callers choose the names of a router's models; those not called for longest are forgotten


@dataclass(slots=True)
class Pulse:
    """What is remembered of one provider's model."""

    bad_in_a_row: int = 0
    pause_seconds: float = _FIRST_PAUSE_SECONDS  # of the next one
    well_after: float = 0.0  # monotonic
    good: int = 0
    bad: int = 0
    last_problem: str | None = None


@dataclass(slots=True)
class Health:
    """A circuit breaker per provider and model, fed by real outcomes and never by probes."""

    clock: Clock
    pulses: dict[tuple[str, str], Pulse] = field(default_factory=dict)

    def well(self, provider: str, upstream: str) -> bool:
        pulse = self.pulses.get((provider, upstream))
        return pulse is None or pulse.well_after <= self.clock.monotonic()

    def answered(self, provider: str, upstream: str) -> None:
        """A success, or a refusal that says nothing about the provider's health."""
        pulse = self._pulse(provider, upstream)
        pulse.good += 1
        pulse.bad_in_a_row = 0
        pulse.pause_seconds = _FIRST_PAUSE_SECONDS
        pulse.well_after = 0.0

    def failed(self, provider: str, upstream: str, problem: str, retry_after_seconds: float | None = None) -> None:
        pulse = self._pulse(provider, upstream)
        pulse.bad += 1
        pulse.bad_in_a_row += 1
        pulse.last_problem = problem
        now = self.clock.monotonic()
        if retry_after_seconds is not None:
            pulse.well_after = max(pulse.well_after, now + min(retry_after_seconds, _LONGEST_PAUSE_SECONDS))
        elif pulse.bad_in_a_row >= _BAD_IN_A_ROW and pulse.well_after <= now:
            # Calls that were under way together fail together: one outage, one pause.
            pulse.well_after = now + pulse.pause_seconds
            pulse.pause_seconds = min(2 * pulse.pause_seconds, _LONGEST_PAUSE_SECONDS)

    def _pulse(self, provider: str, upstream: str) -> Pulse:
        """Kept in the order of their last calls: who calls a thousand names forgets those before what is in use."""
        pulse = self.pulses.pop((provider, upstream), None) or Pulse()
        if len(self.pulses) >= _MOST_PULSES:
            del self.pulses[next(iter(self.pulses))]
        self.pulses[provider, upstream] = pulse
        return pulse

    def report(self) -> list[dict[str, object]]:
        """One row per provider and model that was called, for operators."""
        now = self.clock.monotonic()
        return [
            {
                "provider": provider,
                "model": upstream,
                "well": pulse.well_after <= now,
                "good": pulse.good,
                "bad": pulse.bad,
                "last_problem": pulse.last_problem,
                "well_in_seconds": max(0.0, round(pulse.well_after - now, 1)),
            }
            for (provider, upstream), pulse in sorted(self.pulses.items())
        ]
