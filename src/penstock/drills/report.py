"""Read the requests of a window page by page, and sum up what a scenario would have done to them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.drills.reroute import Outcome, PastRequest, Rerouter
from penstock.store.base import Store
from penstock.values import Nanos, OrgId, dollars, first_id, iso

_PAGE = 500
_MOST_CLASSES = 500  # callers choose the names of a router's models; the rest counts together
_OTHERS = ("", "other models", "")


@dataclass(slots=True)
class Sums:
    """What would have become of the requests of one kind, model and provider."""

    counts: Counter[str] = field(default_factory=Counter)  # by what would have become of them
    served_by: Counter[str] = field(default_factory=Counter)  # who would have taken over
    cost: int = 0
    cost_then: int = 0
    ms: int = 0
    ms_then: int = 0  # of those that would have been completed
    longest_ms: int = 0

    def add(self, past: PastRequest, outcome: Outcome) -> None:
        self.counts[outcome.what] += 1
        if outcome.what == "failed_over" and outcome.provider:
            self.served_by[outcome.provider] += 1
        self.cost += past.cost
        self.cost_then += outcome.cost
        self.ms += past.duration_ms
        self.ms_then += outcome.duration_ms if outcome.what != "failed" else 0
        self.longest_ms = max(self.longest_ms, outcome.duration_ms)

    def fields(self) -> dict[str, Any]:
        """As reports show it."""
        requests = self.counts.total()
        completed = requests - self.counts["failed"]
        return {
            "requests": requests,
            **{name: self.counts[name] for name in ("unaffected", "failed_over", "waited", "failed", "unknown")},
            "cost": dollars(Nanos(self.cost)),
            "cost_then": dollars(Nanos(self.cost_then)),
            "mean_seconds": round(self.ms / max(1, requests) / 1000, 3),
            "mean_seconds_then": round(self.ms_then / max(1, completed) / 1000, 3),
            "longest_seconds_then": round(self.longest_ms / 1000, 3),
        }


async def drill_report(
    store: Store, rerouter: Rerouter, org_ids: Sequence[OrgId], from_ms: int, to_ms: int
) -> dict[str, Any]:
    """What would have become of the requests of organizations that began in a window and were completed."""
    classes: dict[tuple[str, str, str], Sums] = {}
    total = Sums()
    for org_id in org_ids:
        low = first_id("req", from_ms)
        while True:
            rows = await store.slow(
                "list_completed_with_plans", org_id=org_id, low=low, high=first_id("req", to_ms), limit=_PAGE
            )
            for row in rows:
                past = PastRequest(**row)
                outcome = rerouter.outcome(past)
                total.add(past, outcome)
                name = (past.kind, past.model, past.provider)
                if name not in classes and len(classes) >= _MOST_CLASSES:
                    name = _OTHERS
                classes.setdefault(name, Sums()).add(past, outcome)
            if len(rows) < _PAGE:
                break
            low = rows[-1]["id"]
    return {
        "object": "drill",
        "from": iso(from_ms),
        "to": iso(to_ms),
        "currency": "usd",
        **total.fields(),
        "classes": [_class(name, sums) for name, sums in sorted(classes.items(), key=_by_count)],
    }


def _by_count(named: tuple[tuple[str, str, str], Sums]) -> tuple[int, tuple[str, str, str]]:
    name, sums = named
    return -sums.counts.total(), name


def _class(name: tuple[str, str, str], sums: Sums) -> dict[str, Any]:
    kind, model, provider = name
    return {"kind": kind, "model": model, "provider": provider, **sums.fields(), "served_by": dict(sums.served_by)}
