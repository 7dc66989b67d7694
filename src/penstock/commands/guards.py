"""`penstock guards`: what the guards in penstock.toml watch, and how often each gave each verdict."""

from typing import Annotated, Any

import typer

from penstock.clock import Clock
from penstock.commands.data_folder import Config, Data, known_org, load_settings, with_store
from penstock.commands.output import Json, print_json
from penstock.commands.tables import show_table
from penstock.guards.configured import read_guards
from penstock.guards.records import guard_record
from penstock.guards.verdict_counts import ALL_ORGS, MAX_DAYS, VERDICTS, sum_verdicts
from penstock.store.base import Store
from penstock.vault import Vault


def list_guards(
    data: Data = None,
    config: Config = None,
    org: Annotated[str | None, typer.Option(help="Count only verdicts about calls of this organization.")] = None,
    days: Annotated[int, typer.Option(help="Count the verdicts of so many UTC days.", min=1, max=MAX_DAYS)] = 7,
    as_json: Json = False,
) -> None:
    """List guards: what each watches, and how often it let calls pass, flagged, refused or did not answer."""
    settings = load_settings(data=data, config=config)
    guards = read_guards(settings.guards)

    async def work(store: Store, vault: Vault) -> list[dict[str, Any]]:
        sums = await sum_verdicts(store, Clock(), await known_org(store, org) if org else ALL_ORGS, days)
        return [guard_record(guard, sums.get(guard.name, {})) for guard in guards]

    records = with_store(settings, work)
    if as_json:
        print_json(records)
        return
    columns = ["name", "when", "run", "kinds", "on_hit", "on_error", *VERDICTS]
    rows = [
        [
            record["name"],
            record["when"],
            record["run"],
            ", ".join(record["kinds"]),
            record["on_hit"],
            record["on_error"],
        ]
        + [record["verdicts"][verdict] for verdict in VERDICTS]
        for record in records
    ]
    show_table("Guards", columns, rows)
