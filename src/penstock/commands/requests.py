"""Show requests and what they cost, from the command line."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from penstock.commands.data_folder import Config, Data
from penstock.commands.gateway_client import Key, Url, find_gateway
from penstock.commands.output import Json, print_json, usd
from penstock.commands.tables import show_table

_TIMES = "ISO 8601, or an age such as 7d or 24h"
_AGE = re.compile(r"^(\d{1,5})([dh])$")
_PROMPT_LENGTH = 40  # so that a row stays one line
_STATUSES = {"failed": "upstream_failure", "running": "processing", "waiting": "pending"}  # as the dashboard says them


def moment(text: str | None) -> str | None:
    """A time as the API takes it; an age such as `7d` is that long ago."""
    if text is None or not (age := _AGE.match(text)):
        return text
    ago = timedelta(days=int(age[1])) if age[2] == "d" else timedelta(hours=int(age[1]))
    return (datetime.now(UTC) - ago).isoformat()


def list_requests(
    limit: Annotated[int, typer.Option(help="How many records, from 1 to 100.")] = 20,
    status: Annotated[
        str | None, typer.Option(help="Only requests with this status, such as completed, failed or rejected.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Only requests of this model.")] = None,
    key_id: Annotated[str | None, typer.Option(help="Only requests of this key.")] = None,
    session_id: Annotated[str | None, typer.Option(help="Only requests of this session.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="Only requests with this label, as name=value. May be repeated.")
    ] = None,
    search: Annotated[str | None, typer.Option(help="Only requests with these words in their prompt.")] = None,
    created_after: Annotated[str | None, typer.Option(help=f"Only requests since this time: {_TIMES}.")] = None,
    created_before: Annotated[str | None, typer.Option(help=f"Only requests up to this time: {_TIMES}.")] = None,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """List requests with their cost, newest first."""
    gateway = find_gateway(url, key, data, config)
    page = gateway.get(
        "/v1/requests",
        limit=limit,
        status=_STATUSES.get(status or "", status),
        model=model,
        key_id=key_id,
        session_id=session_id,
        search=search,
        **{f"label.{name}": value for name, _, value in (text.partition("=") for text in label or ())},
        created_after=moment(created_after),
        created_before=moment(created_before),
    ).body
    if as_json:
        print_json(page)
        return
    names = ["id", "created", "model", "status", "cost", "seconds", "error", "prompt"]
    show_table("Requests", names, [_row(record) for record in page["data"]])


Group = Annotated[
    str,
    typer.Option(
        "--by", help="model, provider, key, kind, user, session or label:NAME; or two of them with a comma between."
    ),
]


def show_spend(
    by: Group = "model",
    created_after: Annotated[
        str | None, typer.Option(help=f"Since this time: {_TIMES}. By default 30 days ago.")
    ] = None,
    created_before: Annotated[str | None, typer.Option(help=f"Up to this time: {_TIMES}. By default now.")] = None,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Show what was spent, by model, provider, key, kind, user, session or label."""
    gateway = find_gateway(url, key, data, config)
    usage = gateway.get(
        "/v1/usage",
        group_by=by,
        bucket="month",
        created_after=moment(created_after),
        created_before=moment(created_before),
    ).body
    if as_json:
        print_json(usage)
        return
    rows = [
        [_group_name(group), group["requests"], group["failed"], usd(group["cost"])]
        for group in [*usage["groups"], {**usage["total"], "name": "in all", "group": None}]
    ]
    show_table("Spend", [by, "requests", "failed", "cost"], rows)


def _group_name(group: dict[str, Any]) -> str:
    name, ids = group["name"], group["group"]
    if not isinstance(name, list):
        return str(name or ids or "(none)")
    return ", ".join(str(each or id_ or "(none)") for each, id_ in zip(name, ids, strict=True))


def _row(record: dict[str, Any]) -> list[Any]:
    duration_ms = record["duration_ms"]
    return [
        record["id"],
        record["created_at"],
        record["model"],
        record["status"],
        usd(record["cost"]),
        None if duration_ms is None else f"{duration_ms / 1000:.1f}",
        record["error_code"],
        _first_words(record["prompt"] or ""),
    ]


def _first_words(prompt: str) -> str:
    line = " ".join(prompt.split())
    return line if len(line) <= _PROMPT_LENGTH else f"{line[: _PROMPT_LENGTH - 1]}…"
