"""Commands for operators and for people: serve, keys, orgs, credit, models, settings, audit."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
import uvloop
from rich.console import Console
from rich.table import Table

from penstock import billing, settings
from penstock.api import server
from penstock.api.edge import Edge
from penstock.app import Welcome, alone, first_start, opened_gateway, opened_store, working
from penstock.audit import audit as audited
from penstock.auth import Auth
from penstock.catalog import Catalog
from penstock.clock import Clock
from penstock.errors import Problem
from penstock.providers import discover
from penstock.settings import Settings
from penstock.shelf import open_shelf
from penstock.store.base import StorageMisconfigured, Store
from penstock.telemetry import configure_logs
from penstock.values import Nanos, dollars, nanos
from penstock.vault import SecretRefused, Vault

T = TypeVar("T")

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="A gateway for media."
)
keys = typer.Typer(no_args_is_help=True, help="API keys.")
orgs = typer.Typer(no_args_is_help=True, help="Organizations.")
credit = typer.Typer(no_args_is_help=True, help="What organizations may spend.")
for name, group in (("keys", keys), ("orgs", orgs), ("credit", credit)):
    app.add_typer(group, name=name)

Data = Annotated[Path | None, typer.Option(help="Data folder.")]
Config = Annotated[Path | None, typer.Option(help="Path of penstock.toml.")]
Org = Annotated[str | None, typer.Option(help="Organization; the first one unless said.")]


def main() -> None:
    """Entry point: expected trouble is one line on stderr and a non-zero exit."""
    try:
        app()
    except (Problem, ValueError, RuntimeError, StorageMisconfigured, SecretRefused, OSError) as problem:
        typer.echo(f"penstock: {problem}", err=True)
        sys.exit(1)


def _settings(**said: Any) -> Settings:
    return settings.load(said)


def _with_store(chosen: Settings, work: Callable[[Store, Vault], Coroutine[Any, Any, T]]) -> T:
    async def run() -> T:
        async with opened_store(chosen) as (store, vault):
            return await work(store, vault)

    return asyncio.run(run())


async def _org(store: Store, named: str | None) -> str:
    if named:
        return named
    row = await store.one("get_fact", name="first_org")
    if row is None:
        raise ValueError("there is no organization yet: start the gateway once, or use `penstock orgs create`")
    return str(row["value"])


def _show(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """A table for people, tab-separated lines for programs."""
    if not sys.stdout.isatty():
        for row in rows:
            typer.echo("\t".join("" if cell is None else str(cell) for cell in row))
        return
    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    Console().print(table)


# --------------------------------------------------------------------------------------------------------------- serve


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Run the gateway."""
    chosen = _settings(host=host, port=port, data=data, config=config)
    _check_exposure(chosen)
    configure_logs(chosen.log_level)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(chosen))


def _check_exposure(chosen: Settings) -> None:
    """Keys travel in the clear over plain HTTP, so beyond this machine something must speak TLS for us."""
    if chosen.host not in ("127.0.0.1", "::1", "localhost") and not chosen.behind_tls:
        raise ValueError(
            f"refusing to listen on {chosen.host} without TLS in front: set behind_tls = true when a proxy provides it"
        )


async def _serve(chosen: Settings) -> None:
    async with alone(chosen.data), opened_gateway(chosen) as gateway:
        await gateway.auth.check_secret()
        welcome = await first_start(gateway)
        async with working(gateway):
            await server.serve(Edge(gateway), chosen, lambda: _greet(chosen, welcome))


def _greet(chosen: Settings, welcome: Welcome) -> None:
    address = chosen.base_url
    typer.echo(f"Penstock listens on {address}")
    if welcome.key:
        typer.echo(
            f"""
Your first key, shown this once:

    {welcome.key}

Make a picture:

    curl {address}/compat/v1/images/generations \\
      -H "Authorization: Bearer {welcome.key}" -H "Content-Type: application/json" \\
      -d '{{"model": "atelier/sketch", "prompt": "a lighthouse at dusk"}}'
"""
        )
    sys.stdout.flush()


# ---------------------------------------------------------------------------------------------------------------- keys


@keys.command("create")
def create_key(
    data: Data = None,
    config: Config = None,
    name: Annotated[str | None, typer.Option(help="What the key is for.")] = None,
    admin: Annotated[bool, typer.Option(help="May create and revoke keys.")] = False,
    org: Org = None,
    calls_a_minute: Annotated[int | None, typer.Option(help="Most calls a minute.")] = None,
    calls_at_once: Annotated[int | None, typer.Option(help="Most calls under way.")] = None,
    usd_a_day: Annotated[str | None, typer.Option(help="Most to spend a day.")] = None,
) -> None:
    """Create a key and print it, this once."""

    async def work(store: Store, vault: Vault) -> str:
        auth = Auth(store, vault, Clock())
        made = await auth.create_key(
            await _org(store, org),
            name=name,
            scopes=["admin"] if admin else [],
            calls_a_minute=calls_a_minute,
            calls_at_once=calls_at_once,
            usd_a_day=usd_a_day,
        )
        return made.key

    key = _with_store(_settings(data=data, config=config), work)
    if sys.stdout.isatty():
        typer.echo("Keep it now; it is not shown again:")
    typer.echo(key)


@keys.command("list")
def list_keys(data: Data = None, config: Config = None, org: Org = None) -> None:
    """List an organization's keys, newest first."""

    async def work(store: Store, vault: Vault) -> list[list[Any]]:
        auth, rows = Auth(store, vault, Clock()), []
        cursor: str | None = None
        while True:
            page = await auth.keys_page(await _org(store, org), limit=100, starting_after=cursor)
            rows += [[one["id"], one["name"], one["last_four"], one["status"], one["created_at"]] for one in page.data]
            if (cursor := page.next_cursor) is None:
                return rows

    rows = _with_store(_settings(data=data, config=config), work)
    _show("Keys", ["id", "name", "ends in", "status", "created"], rows)


@keys.command("revoke")
def revoke_key(key_id: str, data: Data = None, config: Config = None) -> None:
    """Revoke a key; running gateways refuse it within two seconds."""

    async def work(store: Store, vault: Vault) -> None:
        auth = Auth(store, vault, Clock())
        await auth.revoke_key(await auth.org_of_key(key_id), key_id)

    _with_store(_settings(data=data, config=config), work)
    typer.echo(f"revoked {key_id}")


# ------------------------------------------------------------------------------------------------------ orgs and credit


@orgs.command("create")
def create_org(
    name: Annotated[str, typer.Option(help="Its name.")],
    data: Data = None,
    config: Config = None,
    billing_type: Annotated[str | None, typer.Option("--billing", help="prepaid or postpaid.")] = None,
) -> None:
    """Create an organization and print its id."""
    chosen = _settings(data=data, config=config, billing=billing_type)

    async def work(store: Store, vault: Vault) -> str:
        made = await Auth(store, vault, Clock()).create_org(name, chosen.billing)
        return made.id

    typer.echo(_with_store(chosen, work))


@orgs.command("list")
def list_orgs(data: Data = None, config: Config = None) -> None:
    """List organizations with their balances."""

    async def work(store: Store, vault: Vault) -> list[list[Any]]:
        found = await store.all("list_orgs")
        return [
            [one["id"], one["name"], one["billing"], dollars(Nanos(one["available"])), dollars(Nanos(one["held"]))]
            for one in found
        ]

    rows = _with_store(_settings(data=data, config=config), work)
    _show("Organizations", ["id", "name", "billing", "available USD", "held USD"], rows)


@credit.command("add")
def add_credit(
    usd: Annotated[str, typer.Option(help="Amount, such as 25.00.")],
    data: Data = None,
    config: Config = None,
    org: Org = None,
    note: Annotated[str, typer.Option(help="Why.")] = "added by an operator",
) -> None:
    """Add to what an organization may spend."""
    amount = _amount(usd)

    async def work(store: Store, vault: Vault) -> str:
        org_id = await _org(store, org)
        if await store.one("get_balance", org_id=org_id) is None:
            raise ValueError(f"no such organization: {org_id}")
        await store.write(lambda tx: billing.credit(tx, org_id, amount, Clock().now_ms(), note))
        row = await store.one("get_balance", org_id=org_id)
        return str(dollars(Nanos(row["available"] if row else 0)))

    typer.echo(f"available: {_with_store(_settings(data=data, config=config), work)} USD")


def _amount(usd: str) -> Nanos:
    try:
        amount = nanos(Decimal(usd))
    except InvalidOperation:
        amount = Nanos(0)
    if amount <= 0:
        raise ValueError("--usd must be an amount above 0, such as 25.00")
    return amount


# ------------------------------------------------------------------------------------------------------------- looking


@app.command()
def models(data: Data = None, config: Config = None) -> None:
    """List the models that this configuration serves."""
    catalog = Catalog(discover(), _settings(data=data, config=config), os.environ)
    rows = [
        [one["id"], ", ".join(one["modes"]), ", ".join(one["providers"]), _price(one["pricing"])]
        for one in catalog.list()
    ]
    _show("Models", ["id", "does", "providers", "price"], rows)


def _price(pricing: list[dict[str, Any]]) -> str:
    first = pricing[0] if pricing else None
    if first is None:
        return "unknown"
    both = f"{first['input_usd']} in, " if "input_usd" in first else ""
    return f"{both}{first['usd']} USD / {first['unit']}"


@app.command("settings")
def show_settings() -> None:
    """List every setting, its variable, its default and its meaning."""
    _show("Settings", ["name", "variable", "default", "meaning"], [list(row) for row in settings.rows()])


@app.command()
def audit(data: Data = None, config: Config = None) -> None:
    """Check every promise of the ledger; exit 1 when one is broken."""
    chosen = _settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> list[str]:
        shelf = open_shelf(chosen.media, chosen.media_options, chosen.data)
        return await audited(store, shelf, Clock())

    breaches = _with_store(chosen, work)
    for breach in breaches:
        typer.echo(breach, err=True)
    typer.echo(f"{len(breaches)} breaches" if breaches else "audit clean")
    if breaches:
        raise typer.Exit(1)
