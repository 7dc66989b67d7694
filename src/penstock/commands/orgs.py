"""Create and list organizations, and add credit to them."""

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer

from penstock.accounts import transfers
from penstock.accounts.orgs import create_org, list_orgs
from penstock.clock import Clock
from penstock.commands.terminal import Config, Data, Org, load_settings, org_id, show, with_store
from penstock.store.base import Store
from penstock.values import Nanos, dollars, nanos
from penstock.vault import Vault

orgs = typer.Typer(no_args_is_help=True, help="Organizations.")
credit = typer.Typer(no_args_is_help=True, help="Credit of organizations.")


@orgs.command("create")
def create(
    name: Annotated[str, typer.Option(help="Name of the organization.")],
    data: Data = None,
    config: Config = None,
    billing_type: Annotated[str | None, typer.Option("--billing", help="Billing type: prepaid or postpaid.")] = None,
) -> None:
    """Create an organization and print its id."""
    settings = load_settings(data=data, config=config, billing=billing_type)

    async def work(store: Store, vault: Vault) -> str:
        made = await create_org(store, Clock(), name, settings.billing)
        return made.id

    typer.echo(with_store(settings, work))


@orgs.command("list")
def show_orgs(data: Data = None, config: Config = None) -> None:
    """List organizations with their balances."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> list[list[Any]]:
        return [
            [org.id, org.name, org.billing, dollars(org.available), dollars(org.held)] for org in await list_orgs(store)
        ]

    rows = with_store(settings, work)
    show("Organizations", ["id", "name", "billing", "available USD", "held USD"], rows)


@credit.command("add")
def add_credit(
    usd: Annotated[str, typer.Option(help="Amount in US dollars, such as 25.00.")],
    data: Data = None,
    config: Config = None,
    org: Org = None,
    note: Annotated[str, typer.Option(help="Note that is stored with the credit.")] = "added by an operator",
) -> None:
    """Add credit to an organization and print what it has available."""
    settings = load_settings(data=data, config=config)
    amount = _amount(usd)

    async def work(store: Store, vault: Vault) -> str:
        owner = await org_id(store, org, settings)
        if await store.one("get_balance", org_id=owner) is None:
            raise ValueError(f"no such organization: {owner}")
        await store.write(lambda tx: transfers.add_credit(tx, owner, amount, Clock().now_ms(), note))
        row = await store.one("get_balance", org_id=owner)
        return str(dollars(Nanos(row["available"] if row else 0)))

    typer.echo(f"available: {with_store(settings, work)} USD")


def _amount(usd: str) -> Nanos:
    try:
        amount = nanos(Decimal(usd))
    except (InvalidOperation, ValueError):
        amount = Nanos(0)
    if amount <= 0:
        raise ValueError("--usd must be an amount above 0, such as 25.00")
    return amount
