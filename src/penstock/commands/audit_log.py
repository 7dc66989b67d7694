"""List, export and verify the audit log."""

import sys
from typing import Annotated, Any

import msgspec
import typer

from penstock.audit_log import EVERYTHING, EventRow, Verdict, read_events, verify_chain
from penstock.commands.data_folder import Config, Data, load_settings, with_store
from penstock.commands.output import Json, report
from penstock.commands.tables import show_table
from penstock.store.base import Store
from penstock.values import OrgId
from penstock.vault import Vault

_NO_FILTERS: dict[str, Any] = {
    "actor": None,
    "action": None,
    "target": None,
    "created_after": None,
    "created_before": None,
}
OfOrg = Annotated[str | None, typer.Option("--org", help="Only events about this organization.")]

app = typer.Typer(no_args_is_help=True, help="List, export and verify the audit log: who changed what.")


@app.command("list")
def list_events(
    data: Data = None,
    config: Config = None,
    org: OfOrg = None,
    actor: Annotated[str | None, typer.Option(help="Only what this key or command did.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this kind, such as key.revoked.")] = None,
    target: Annotated[str | None, typer.Option(help="Only what was done to this id.")] = None,
    limit: Annotated[int, typer.Option(help="How many of the newest events to list.", min=1)] = 50,
    as_json: Json = False,
) -> None:
    """List events, newest first."""
    settings = load_settings(data=data, config=config)
    filters = {**_NO_FILTERS, "actor": actor, "action": action, "target": target}

    async def work(store: Store, vault: Vault) -> list[dict[str, Any]]:
        values = {"org_id": org or EVERYTHING, "low": "aud_", "high": "aud_~", "limit": limit}
        rows = await store.slow("list_older_audit_events", **values, **filters)
        return [EventRow(**row).record() for row in rows]

    columns = ["id", "created_at", "actor", "action", "target", "before", "after"]
    rows = [[event[column] for column in columns] for event in with_store(settings, work)]
    show_table("Audit log", columns, rows, as_json, on_terminal=["created_at", "actor", "action", "target"])


@app.command("export")
def export_events(data: Data = None, config: Config = None, org: OfOrg = None) -> None:
    """Print all events as JSON Lines, oldest first."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> None:
        async for row in read_events(store, OrgId(org) if org else EVERYTHING, **_NO_FILTERS):
            sys.stdout.write(msgspec.json.encode(row.record(), order="sorted").decode() + "\n")

    with_store(settings, work)


@app.command("verify")
def verify(
    data: Data = None,
    config: Config = None,
    head: Annotated[
        str | None, typer.Option(help="A hash of an earlier event that was kept elsewhere: it must be in the chain.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute the chain of hashes again; exit with status 1 if an event was changed, removed or inserted."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> Verdict:
        return await verify_chain(store, head)

    found = with_store(settings, work)
    ending = f"the last hash is {found.head}"
    text = f"{found.events} events, {ending}" if found.problem is None else f"broken: {found.problem}"
    report(text, as_json, events=found.events, head=found.head, problem=found.problem)
    if found.problem:
        raise typer.Exit(1)
