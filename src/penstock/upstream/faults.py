"""Read the header by which a call asks for faults, and give them to the candidates that they concern."""

import re
from collections.abc import Collection
from dataclasses import replace

from penstock.clock import Clock
from penstock.errors import InvalidRequest
from penstock.schema import MODALITY
from penstock.upstream.candidate import Candidate
from penstock.upstream.drill import Drill, Fault

HEADER = "x-service-fault"
_NAME = "X-Service-Fault"
TASKS = ("image", "video", "chat", "speech")  # a fault of one is for whichever provider serves such a call
WEBHOOK = "webhook"
_LONGEST = 1000
_MOST = 10
_MOST_SECONDS = 3600
_MOST_TIMES = 100
_MOST_DROPS = 20
_ITEM = re.compile(r"([\w.-]+) ?= ?(.+?)(?: for ([0-9]{1,4}) ?s)?")
_SLOW = re.compile(r"slow ([0-9]{1,4}(?:\.[0-9])?) ?([xs])")
_DROP = re.compile(r"drop ([0-9]{1,2})")
_FORMS = (
    "a provider's name, `image`, `video`, `chat` or `speech`, then `=` and an HTTP status from 400 to 599, "
    f"`unreachable`, `lost-after-submit`, `slow 4x` (at most {_MOST_TIMES}) or `slow 3s`, then perhaps `for 60s` "
    f"(at most {_MOST_SECONDS}); or `webhook=drop 2` (at most {_MOST_DROPS}); several are separated by `;`"
)


def check_faults(text: str, providers: Collection[str]) -> None:
    """Check the header of a call. Raises InvalidRequest for what is no fault, or names no provider."""
    for fault in parse_faults(text):
        if fault.target not in (*TASKS, WEBHOOK) and fault.target not in providers:
            raise _wrong(f"names `{fault.target}`, which is no provider of this gateway")


def parse_faults(text: str) -> tuple[Fault, ...]:
    """The faults that a header lists. Raises InvalidRequest."""
    items = [item.strip() for item in text.split(";") if item.strip()]
    if not 0 < len(items) <= _MOST or len(text) > _LONGEST:
        raise _wrong(f"must list 1 to {_MOST} faults in at most {_LONGEST} characters")
    return tuple(map(_fault, items))


def _fault(item: str) -> Fault:
    found = _ITEM.fullmatch(item)
    if found is None:
        raise _wrong(f"has `{item}`")
    target, what, seconds = found.groups()
    for_ms = None if seconds is None else int(seconds) * 1000
    if drop := _DROP.fullmatch(what):
        fault = Fault(target, "drop", int(drop[1]))
    elif slow := _SLOW.fullmatch(what):
        fault = Fault(target, "slow", float(slow[1]), slow[2], for_ms)
    elif what == "unreachable":
        fault = Fault(target, "unreachable", for_ms=for_ms)
    elif what == "lost-after-submit":
        fault = Fault(target, "lost", for_ms=for_ms)
    else:
        fault = Fault(target, "status", int(what) if re.fullmatch("[0-9]{3}", what) else 0, for_ms=for_ms)
    if not _is_allowed(fault, has_end=seconds is not None):
        raise _wrong(f"has `{item}`")
    return fault


def _is_allowed(fault: Fault, *, has_end: bool) -> bool:
    if (fault.kind == "drop") != (fault.target == WEBHOOK):
        return False
    if has_end and not 0 < (fault.for_ms or 0) <= _MOST_SECONDS * 1000:
        return False
    if fault.kind == "drop":
        return 1 <= fault.number <= _MOST_DROPS
    if fault.kind == "slow":
        return 0 < fault.number <= (_MOST_TIMES if fault.unit == "x" else _MOST_SECONDS)
    return fault.kind != "status" or 400 <= fault.number <= 599


def _wrong(what: str) -> InvalidRequest:
    return InvalidRequest(f"The header {_NAME} {what}. Allowed are: {_FORMS}.", param=_NAME)


def dropped_deliveries(text: str) -> int:
    """How many deliveries of the call's webhook are dropped."""
    return int(max((fault.number for fault in parse_faults(text) if fault.kind == "drop"), default=0)) if text else 0


# ---------------------------------------------------------------------------------------------------------- candidates


def with_drill(candidate: Candidate, text: str, task: str, clock: Clock, started_ms: int) -> Candidate:
    """The candidate with those faults of a call that concern it; the same one if none does."""
    if not text:
        return candidate
    targets = (candidate.provider.slug, MODALITY.get(task, task))
    faults = tuple(fault for fault in parse_faults(text) if fault.target in targets)
    return replace(candidate, drill=Drill(faults, clock, started_ms)) if faults else candidate
