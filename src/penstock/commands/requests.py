"""Show requests and what they cost, from the command line."""

from typing import Annotated, Any

import typer

from penstock.commands.data_folder import Config, Data
from penstock.commands.gateway_client import Key, Url, find_gateway
from penstock.commands.output import Json, print_json, usd
from penstock.commands.tables import show_table


def list_requests(
    limit: Annotated[int, typer.Option(help="How many records, from 1 to 100.")] = 20,
    status: Annotated[str | None, typer.Option(help="Only records of this status.")] = None,
    key_id: Annotated[str | None, typer.Option(help="Only requests of this key.")] = None,
    session_id: Annotated[str | None, typer.Option(help="Only requests of this session.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="Only requests with this label, as name=value. May be repeated.")
    ] = None,
    created_after: Annotated[str | None, typer.Option(help="Only requests since this time, in ISO 8601.")] = None,
    created_before: Annotated[str | None, typer.Option(help="Only requests up to this time, in ISO 8601.")] = None,
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
        status=status,
        key_id=key_id,
        session_id=session_id,
        **{f"label.{name}": value for name, _, value in (text.partition("=") for text in label or ())},
        created_after=created_after,
        created_before=created_before,
    ).body
    if as_json:
        print_json(page)
        return
    show_table(
        "Requests", ["id", "created", "model", "status", "cost", "seconds", "error"], [_row(r) for r in page["data"]]
    )


Group = Annotated[
    str,
    typer.Option(
        "--by", help="model, provider, key, kind, user, session or label:NAME; or two of them with a comma between."
    ),
]


def show_spend(
    by: Group = "model",
    created_after: Annotated[
        str | None, typer.Option(help="Since this time, in ISO 8601; by default 30 days ago.")
    ] = None,
    created_before: Annotated[str | None, typer.Option(help="Up to this time, in ISO 8601; by default now.")] = None,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Show what was spent, by model, provider, key, kind, user, session or label."""
    gateway = find_gateway(url, key, data, config)
    usage = gateway.get(
        "/v1/usage", group_by=by, bucket="month", created_after=created_after, created_before=created_before
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
    ]
