"""`penstock drill`: what would have become of past requests if a provider had been down, slow or dearer."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.commands.data_folder import Config, Data, known_org, load_settings, with_store
from penstock.commands.output import Json, print_json, say, usd
from penstock.commands.tables import show_table
from penstock.environment import ENVIRONMENT
from penstock.values import DAY_MS, OrgId

if TYPE_CHECKING:
    from penstock.store.base import Store
    from penstock.vault import Vault

_AGO = re.compile(r"([1-9][0-9]{0,3})([hd])")
_HOUR_MS = 3_600_000
_COUNTS = ("unaffected", "failed_over", "waited", "failed", "unknown")


def drill(
    down: Annotated[list[str] | None, typer.Option(help="A provider that does not answer. May be repeated.")] = None,
    slow: Annotated[
        list[str] | None, typer.Option(help="A provider that takes longer, such as `fal=4x`. May be repeated.")
    ] = None,
    dearer: Annotated[
        list[str] | None, typer.Option(help="A provider that costs more, such as `fal=1.5x`. May be repeated.")
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            help="`yesterday` or `today` in UTC, so long ago such as `6h` or `7d`, or an ISO 8601 time.",
        ),
    ] = "24h",
    end: Annotated[str | None, typer.Option("--to", help="The same; by default now, or the end of yesterday.")] = None,
    org: Annotated[str | None, typer.Option(help="Id of an organization; by default all.")] = None,
    data: Data = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Say what would have become of past requests if a provider had been down, slow or dearer.

    Each is routed again in thought: who would have taken over, what would have waited or failed, and what it would have
    cost. Nothing is called.
    """
    settings = load_settings(data=data, config=config)
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    from_ms = time_of(start, now_ms)
    to_ms = time_of(end, now_ms) if end else now_ms // DAY_MS * DAY_MS if start == "yesterday" else now_ms

    async def work(store: "Store", vault: "Vault") -> dict[str, Any]:
        from penstock.drills.report import drill_report
        from penstock.drills.reroute import Rerouter
        from penstock.drills.scenario import read_scenario
        from penstock.models.catalog import Catalog
        from penstock.providers import discover

        catalog = Catalog(discover(), settings, ENVIRONMENT)
        scenario = read_scenario(down or (), slow or (), dearer or (), catalog.providers.known)
        org_ids = [await known_org(store, org)] if org else [OrgId(row["id"]) for row in await store.all("list_orgs")]
        return await drill_report(store, Rerouter(catalog, settings, scenario, to_ms), org_ids, from_ms, to_ms)

    report = with_store(settings, work)
    if as_json:
        print_json(report)
        return
    columns = ["kind", "model", "provider", "requests", "failed over", "waited", "failed", "cost", "cost then", "by"]
    show_table("Drill", columns, [_row(each) for each in report["classes"]])
    counts = ", ".join(f"{report[name]} {name.replace('_', ' ')}" for name in _COUNTS if report[name])
    say(f"{report['requests']} requests: {counts or 'none'}; {usd(report['cost'])}, then {usd(report['cost_then'])}")


def _row(each: dict[str, Any]) -> list[Any]:
    names = ("kind", "model", "provider", "requests", "failed_over", "waited", "failed")
    by = ", ".join(f"{provider} {count}" for provider, count in each["served_by"].items())
    return [*(each[name] for name in names), usd(each["cost"]), usd(each["cost_then"]), by]


def time_of(text: str, now_ms: int) -> int:
    """The time in milliseconds that a word, an age or an ISO 8601 time means."""
    if text in ("yesterday", "today"):
        return now_ms // DAY_MS * DAY_MS - (DAY_MS if text == "yesterday" else 0)
    if ago := _AGO.fullmatch(text):
        return now_ms - int(ago[1]) * (DAY_MS if ago[2] == "d" else _HOUR_MS)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        message = f"{text} must be `yesterday`, `today`, such as `6h` or `7d`, or an ISO 8601 time"
        raise typer.BadParameter(message) from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
