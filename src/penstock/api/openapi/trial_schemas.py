"""JSON Schemas of the responses about trials."""

from collections.abc import Mapping

from penstock.api.openapi.schema_parts import (
    FLAG,
    INTEGER,
    MONEY,
    NUMBER,
    TEXT,
    TIME,
    Schema,
    always,
    array,
    closed_object,
    list_of,
    one_of,
    or_null,
)
from penstock.batches.records import STATUSES
from penstock.trials.records import KINDS

_TRIAL: Mapping[str, Schema] = {
    "id": TEXT,
    "object": always("trial"),
    "name": or_null(TEXT),
    "kind": one_of(*KINDS),
    "created_at": TIME,
    "key_id": TEXT,
    "models": array(TEXT),
    "prompts": INTEGER,
    "batch_id": TEXT,
    "status": one_of(*STATUSES),
    "reason": or_null(TEXT),
    "counts": closed_object(dict.fromkeys(("total", "completed", "failed", "pending"), INTEGER)),
    "estimated_cost": MONEY,
    "cost": MONEY,
    "max_cost": or_null(MONEY),
    "currency": always("usd"),
    "link": or_null(closed_object({"expires_at": TIME, "shows_prompts": FLAG})),
}
_VOTES = dict.fromkeys(("wins", "losses", "ties", "both_bad"), INTEGER)
_RATES = ("win_rate", "win_rate_low", "win_rate_high", "wins_per_dollar", "wins_per_second")
_RESULTS: Mapping[str, Schema] = {
    "votes": INTEGER,
    "voters": INTEGER,
    "results": array(
        closed_object(
            {
                "model": TEXT,
                "completed": INTEGER,
                "failed": INTEGER,
                "cost": MONEY,
                "cost_per_output": or_null(MONEY),
                "seconds": or_null(NUMBER),
                **_VOTES,
                **dict.fromkeys(_RATES, or_null(NUMBER)),
            }
        )
    ),
    "pairs": array(closed_object({"models": array(TEXT), **_VOTES})),
}
_ESTIMATE = closed_object(
    {
        "object": always("trial.estimate"),
        "prompts": INTEGER,
        "rows": INTEGER,
        "estimated_cost": MONEY,
        "highest_cost": MONEY,
        "currency": always("usd"),
        "models": array(closed_object({"model": TEXT, "estimated_cost": MONEY})),
    }
)

TRIAL_SCHEMAS: Mapping[str, Schema] = {
    "Trial": closed_object(_TRIAL),
    "TrialList": list_of("Trial", pages=True),
    "TrialResults": closed_object({**_TRIAL, **_RESULTS}),
    "TrialEstimate": _ESTIMATE,
}
