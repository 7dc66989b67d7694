"""What is shown of guards: what each watches, and how often it gave each verdict; neither words nor URLs."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from penstock.guards.configured import Guard
from penstock.guards.verdict_counts import ALL_ORGS, VERDICTS
from penstock.values import OrgId

_NONE: Mapping[str, int] = dict.fromkeys(VERDICTS, 0)


def guard_record(guard: Guard, verdicts: Mapping[str, int], org_id: OrgId = ALL_ORGS) -> dict[str, Any]:
    """A guard as an admin of an organization may see it, or with `ALL_ORGS` an operator, with the sums of verdicts."""
    is_operator = org_id == ALL_ORGS
    asks = guard.http or guard.model
    orgs = (guard.orgs if is_operator else (org_id,)) if guard.orgs else None
    return {
        "object": "guard",
        "name": guard.name,
        "when": guard.when,
        "run": "rules" if guard.rules else "http" if guard.http else "model",
        "kinds": list(guard.watched_kinds),
        "orgs": None if orgs is None else list(orgs),
        "rules": None
        if guard.rules is None
        else {
            "words": len(guard.rules.words),
            "max_characters": guard.rules.max_characters,
            "models_without_images": list(guard.rules.models_without_images),
        },
        "host": urlsplit(guard.http.url).hostname if guard.http and is_operator else None,
        "model": guard.model.model if guard.model else None,
        "timeout_seconds": asks.timeout_seconds if asks else None,
        "sends_images": bool(asks and asks.sends_images),
        "on_hit": guard.on_hit,
        "on_error": guard.on_error,
        "sample_percent": guard.sample_percent,
        "show_reason": guard.show_reason,
        "charge_refused": guard.charge_refused,
        "buffer_stream": guard.buffer_stream,
        "verdicts": {**_NONE, **verdicts},
    }


def is_shown_to(guard: Guard, org_id: OrgId) -> bool:
    """Whether an organization is told of a guard: if it may watch calls of it. Operators are told of all."""
    return org_id == ALL_ORGS or not guard.orgs or org_id in guard.orgs
