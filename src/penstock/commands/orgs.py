"""Create and list organizations, and add to what they may spend."""

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer

from penstock.accounts import transfers
from penstock.accounts.keys import Keys
from penstock.clock import Clock
from penstock.commands.terminal import Config, Data, Org, chosen, org_id, show, with_store
from penstock.store.base import Store
from penstock.values import Nanos, dollars, nanos
from penstock.vault import Vault

orgs = typer.Typer(no_args_is_help=True, help="Organizations.")
credit = typer.Typer(no_args_is_help=True, help="What organizations may spend.")


@orgs.command("create")
def create_org(
    name: Annotated[str, typer.Option(help="Its name.")],
    data: Data = None,
    config: Config = None,
    billing_type: Annotated[str | None, typer.Option("--billing", help="prepaid or postpaid.")] = None,
) -> None:
    """Create an organization and print its id."""
    these = chosen(data=data, config=config, billing=billing_type)

    async def work(store: Store, vault: Vault) -> str:
        made = await Keys(store, vault, Clock()).create_org(name, these.billing)
        return made.id

    typer.echo(with_store(these, work))


@orgs.command("list")
def list_orgs(data: Data = None, config: Config = None) -> None:
    """List organizations with their balances."""
    these = chosen(data=data, config=config)

    async def work(store: Store, vault: Vault) -> list[list[Any]]:
        found = await store.all("list_orgs")
        return [
            [one["id"], one["name"], one["billing"], dollars(Nanos(one["available"])), dollars(Nanos(one["held"]))]
            for one in found
        ]

    rows = with_store(these, work)
    show("Organizations", ["id", "name", "billing", "available USD", "held USD"], rows)


@credit.command("add")
def add_credit(
    usd: Annotated[str, typer.Option(help="Amount, such as 25.00.")],
    data: Data = None,
    config: Config = None,
    org: Org = None,
    note: Annotated[str, typer.Option(help="Why.")] = "added by an operator",
) -> None:
    """Add to what an organization may spend."""
    these = chosen(data=data, config=config)
    amount = _amount(usd)

    async def work(store: Store, vault: Vault) -> str:
        org_named = await org_id(store, org, these)
        if await store.one("get_balance", org_id=org_named) is None:
            raise ValueError(f"no such organization: {org_named}")
        await store.write(lambda tx: transfers.add_credit(tx, org_named, amount, Clock().now_ms(), note))
        row = await store.one("get_balance", org_id=org_named)
        return str(dollars(Nanos(row["available"] if row else 0)))

    typer.echo(f"available: {with_store(these, work)} USD")


def _amount(usd: str) -> Nanos:
    try:
        amount = nanos(Decimal(usd))
    except (InvalidOperation, ValueError):
        amount = Nanos(0)
    if amount <= 0:
        raise ValueError("--usd must be an amount above 0, such as 25.00")
    return amount
