"""The faults of one call at one candidate, and which of them happens at the moment."""

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from penstock.clock import Clock


class Fault(msgspec.Struct, frozen=True):
    """Something that goes wrong because a call asks for it."""

    target: str  # a provider, a task, or `webhook`
    kind: Literal["status", "unreachable", "lost", "slow", "drop"]
    number: float = 0  # the status, how many seconds or times, or how many deliveries
    unit: str = ""  # of `slow`: `x` for times, `s` for seconds
    for_ms: int | None = None  # since the call was accepted; None: as long as the call lasts

    def whole_seconds(self, took: float) -> float:
        """How long something takes at a slow provider that really took so many seconds."""
        return took * self.number if self.unit == "x" else took + self.number


@dataclass(slots=True, eq=False)
class Drill:
    """The faults of one call at one candidate."""

    faults: tuple[Fault, ...]
    clock: Clock
    started_ms: int  # when the call was accepted
    submitted: float = field(init=False)  # when the last submission began, to tell how long a job took
    due: dict[str, float] = field(default_factory=dict)  # when finished jobs are reported as such, by their ids

    def __post_init__(self) -> None:
        self.submitted = self.clock.monotonic()

    @property
    def current(self) -> Fault | None:
        """The first fault whose time is not over."""
        age_ms = self.clock.now_ms() - self.started_ms
        return next((fault for fault in self.faults if fault.for_ms is None or age_ms < fault.for_ms), None)

    @property
    def slowness(self) -> Fault | None:
        """The same if it is that the provider is slow."""
        fault = self.current
        return fault if fault is not None and fault.kind == "slow" else None
