"""JSON Schemas of the responses about labels, the forecast, drills, accounts at vendors, destinations, and guards."""

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
    ref,
)

LABELS: Schema = {"type": "object", "additionalProperties": TEXT}
_FORECAST = closed_object(
    {
        "object": always("forecast"),
        "month": TEXT,
        "currency": always("usd"),
        "spent": MONEY,
        "usd_per_month": or_null(MONEY),
        "days_of_history": INTEGER,
        "month_end": or_null(closed_object({"low": MONEY, "likely": MONEY, "high": MONEY})),
        "budget_reached_on": or_null(TEXT),
        "message": or_null(TEXT),
        "labels": LABELS,
    }
)
_DRILL_SUMS = {
    **dict.fromkeys(("requests", "unaffected", "failed_over", "waited", "failed", "unknown"), INTEGER),
    "cost": MONEY,
    "cost_then": MONEY,
    **dict.fromkeys(("mean_seconds", "mean_seconds_then", "longest_seconds_then"), NUMBER),
}
_DRILL = closed_object(
    {
        "object": always("drill"),
        "from": TIME,
        "to": TIME,
        "currency": always("usd"),
        **_DRILL_SUMS,
        "classes": array(
            closed_object(
                {
                    "kind": TEXT,
                    "model": TEXT,
                    "provider": TEXT,
                    **_DRILL_SUMS,
                    "served_by": {"type": "object", "additionalProperties": INTEGER},
                }
            )
        ),
    }
)
_DECLARED_LABELS = closed_object(
    {
        "object": always("labels"),
        "declared_labels": array(
            closed_object({"name": TEXT, "required": FLAG, "values": or_null(array(TEXT)), "budget": FLAG})
        ),
    }
)
_LABEL_BUDGET = closed_object(
    {
        "object": always("label_budget"),
        "name": TEXT,
        "value": TEXT,
        "usd_per_month": MONEY,
        "alert_percents": array(INTEGER),
        "spent_this_month": or_null(MONEY),
    }
)
_ACCOUNT_HEALTH = closed_object(
    {
        "state": one_of("works", "limited", "spent", "refused"),
        "refused_with": or_null(INTEGER),
        "refused_at": or_null(TIME),
        "free_in_seconds": or_null(NUMBER),
        **dict.fromkeys(("open", "calls_of_last_minute"), INTEGER),
        "learned_concurrent": or_null(INTEGER),
        "learned_per_minute": or_null(NUMBER),
    }
)
_ACCOUNT = closed_object(
    {
        **dict.fromkeys(("id", "provider", "name", "last_four"), TEXT),
        "object": always("account"),
        "status": one_of("on", "off", "draining"),
        **dict.fromkeys(("weight", "priority", "version"), INTEGER),
        "models": or_null(array(TEXT)),
        "org_id": or_null(TEXT),
        **dict.fromkeys(("concurrent", "requests_per_minute", "fee_percent"), or_null(INTEGER)),
        "fallback_to_shared": FLAG,
        "usd_per_month": or_null(MONEY),
        "spent_this_month": MONEY,
        "health": _ACCOUNT_HEALTH,
        "created_at": TIME,
    }
)

_DESTINATION = closed_object(
    {
        **dict.fromkeys(("id", "name", "url", "region", "path", "last_four"), TEXT),
        "object": always("destination"),
        "endpoint": or_null(TEXT),
        **dict.fromkeys(("default", "required"), FLAG),
        "version": INTEGER,
        "failure": or_null(TEXT),
        "failed_at": or_null(TIME),
        "created_at": TIME,
    },
    optional={
        "check": closed_object(
            {**dict.fromkeys(("works", "can_read", "can_delete"), FLAG), "message": or_null(TEXT)},
        ),
    },
)

_GUARD = closed_object(
    {
        "object": always("guard"),
        "name": TEXT,
        "when": one_of("input", "output"),
        "run": one_of("rules", "http", "model"),
        "kinds": array(TEXT),
        "orgs": or_null(array(TEXT)),
        "rules": or_null(
            closed_object({"words": INTEGER, "max_characters": or_null(INTEGER), "models_without_images": array(TEXT)})
        ),
        **dict.fromkeys(("host", "model"), or_null(TEXT)),
        "timeout_seconds": or_null(NUMBER),
        "on_hit": one_of("refuse", "flag"),
        "on_error": one_of("closed", "open"),
        "sample_percent": NUMBER,
        **dict.fromkeys(("sends_images", "show_reason", "charge_refused", "buffer_stream"), FLAG),
        "verdicts": closed_object(dict.fromkeys(("pass", "flag", "refuse", "error"), INTEGER)),
    }
)

LABEL_SCHEMAS: Mapping[str, Schema] = {
    "Forecast": _FORECAST,
    "Drill": _DRILL,
    "Labels": _DECLARED_LABELS,
    "LabelBudget": _LABEL_BUDGET,
    "LabelBudgetList": list_of("LabelBudget", pages=False),
    "Account": _ACCOUNT,
    "AccountList": list_of("Account", pages=False),
    "Destination": _DESTINATION,
    "DestinationList": list_of("Destination", pages=False),
    "Guard": _GUARD,
    "GuardList": closed_object({"object": always("list"), "data": array(ref("Guard")), "days": INTEGER}),
}
