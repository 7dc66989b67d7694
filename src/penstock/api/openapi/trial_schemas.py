"""What the OpenAPI document says about trials: the schemas of their responses, and how to use each operation."""

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
    "verdict": or_null(closed_object({"model": TEXT, "alias": TEXT, "at": TIME})),
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
_SIDE = closed_object({"text": or_null(TEXT), "url": or_null(TEXT)})
_PAIR = closed_object(
    {
        "object": always("pair"),
        "voter": TEXT,
        "kind": one_of(*KINDS),
        "voted": INTEGER,
        "total": INTEGER,
        "is_running": FLAG,
        "pair": or_null(TEXT),
        "prompt": or_null(TEXT),
        "left": or_null(_SIDE),
        "right": or_null(_SIDE),
    }
)
_VERDICT = closed_object(
    {
        "object": always("trial.verdict"),
        "trial_id": TEXT,
        "model": TEXT,
        "alias": TEXT,
        "replaces": or_null(TEXT),
        "from": TIME,
        "to": TIME,
        "requests": INTEGER,
        "spent": MONEY,
        "expected": or_null(MONEY),
        "saves": {"type": ["number", "null"], "description": "US dollars; below zero if it costs more."},
        "currency": always("usd"),
        **dict.fromkeys(("win_rate", "win_rate_low", "win_rate_high"), or_null(NUMBER)),
    }
)

TRIAL_SCHEMAS: Mapping[str, Schema] = {
    "Trial": closed_object(_TRIAL),
    "TrialList": list_of("Trial", pages=True),
    "TrialResults": closed_object({**_TRIAL, **_RESULTS}),
    "TrialEstimate": _ESTIMATE,
    "TrialLink": closed_object(
        {"object": always("trial.link"), "url": TEXT, "expires_at": TIME, "shows_prompts": FLAG}
    ),
    "TrialVerdict": _VERDICT,
    "Alias": closed_object({"object": always("alias"), "name": TEXT, "model": TEXT}),
    "AliasList": list_of("Alias", pages=False),
    "Pair": _PAIR,
    "Vote": closed_object({"object": always("vote"), "counted": FLAG}),
}

TRIAL_OPERATIONS: Mapping[str, str] = {
    "create_trial": (
        "Makes each prompt with each model, as one batch. Prompts are typed, the rows of a CSV or JSONL file, or those "
        "of recent requests. Every call is checked and priced before any of them runs. With `dryRun=true` the response "
        "is the estimate, and nothing is stored."
    ),
    "list_trials": ("Lists the trials of the organization, newest first."),
    "retrieve_trial": (
        "Returns a trial with the cost, the median of seconds, the failures and the votes of each model. The win rate "
        "counts a tie as half a win and leaves out pairs of which both are bad; its interval is Wilson's, 95 %."
    ),
    "delete_trial": ("Deletes a trial and its votes. Its batch begins no more rows; what was made and charged stays."),
    "share_trial": (
        "Makes the link by which people without a key vote on pairs of outputs. It is shown once, expires, and ends an "
        "earlier link of the trial."
    ),
    "unshare_trial": ("Revokes the link by which people vote. The votes stay."),
    "decide_trial": (
        "Lets calls for `alias`, which may be another model or a new name, get `model` from now on. The response "
        "has what the calls of the last thirty days cost, and what they would have cost. With `dryRun=true` nothing "
        "changes."
    ),
    "list_aliases": "Lists the names that the organization gives to models.",
    "put_alias": (
        "Lets calls that ask for the alias get a model. The alias may be the id of another model: then its calls are "
        "routed to this one. Every process notices within two seconds."
    ),
    "delete_alias": "Removes an alias. Calls that ask for it get the model of that name again, or an error.",
    "show_pair": (
        "Shows two outputs for one prompt, on which this voter has not voted. `link` is the text behind the `#` of the "
        "link. Neither side names its model. `voter` is what the first response gave; all are null if nothing is left."
    ),
    "add_vote": ("Counts a vote on a pair. A second vote of the same voter on it is not counted."),
}
