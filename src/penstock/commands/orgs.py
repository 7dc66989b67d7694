"""Create, change and list organizations, and add credit to them."""

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer

from penstock.accounts.orgs import MAX_USD_PER_MONTH, change_org, create_org, credit_org, list_orgs
from penstock.accounts.orgs import Org as Organization
from penstock.clock import Clock
from penstock.commands import output
from penstock.commands.data_folder import Config, Data, Org, load_settings, org_id, with_store
from penstock.commands.output import Json, report
from penstock.commands.tables import show_table
from penstock.store.base import Store
from penstock.values import Nanos, OrgId, dollars, nanos
from penstock.vault import Vault

_NONE = "none"
orgs = typer.Typer(no_args_is_help=True, help="Create, change and list organizations.")
credit = typer.Typer(no_args_is_help=True, help="Add credit to an organization.")


@orgs.command("create")
def create(
    name: Annotated[str, typer.Option(help="Name of the organization.")],
    data: Data = None,
    config: Config = None,
    billing_type: Annotated[str | None, typer.Option("--billing", help="Billing type: prepaid or postpaid.")] = None,
    as_json: Json = False,
) -> None:
    """Create an organization and print its id."""
    settings = load_settings(data=data, config=config, billing=billing_type)

    async def work(store: Store, vault: Vault) -> str:
        made = await create_org(store, Clock(), name, settings.billing)
        return made.id

    created = with_store(settings, work)
    report(created, as_json, id=created)


@orgs.command("set")
def set_limits(
    org: Annotated[str, typer.Argument(help="Id of the organization.")],
    data: Data = None,
    config: Config = None,
    name: Annotated[str | None, typer.Option(help="New name.")] = None,
    usd_per_month: Annotated[
        str | None,
        typer.Option(help="Most USD that its keys together may spend per UTC month; `none` for no limit."),
    ] = None,
    storage_bytes: Annotated[
        str | None,
        typer.Option(
            help="Most bytes of its stored files; 0 for no limit, `none` for the setting storage_bytes_per_org."
        ),
    ] = None,
    provenance: Annotated[
        str | None,
        typer.Option(help="What is asked of Content Credentials, such as `sign; required`; `none` for the setting."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Change the name, the limits or the policy of an organization. Running gateways notice within seconds."""
    settings = load_settings(data=data, config=config)
    changes: dict[str, Any] = {}
    if name is not None:
        changes["name"] = name
    if usd_per_month is not None:
        changes["nanos_per_month"] = None if usd_per_month == _NONE else _budget_amount(usd_per_month)
    if storage_bytes is not None:
        changes["storage_bytes"] = None if storage_bytes == _NONE else _bytes(storage_bytes)
    if provenance is not None:
        changes["provenance"] = None if provenance == _NONE else provenance
    if not changes:
        raise ValueError("nothing to change: give --name, --usd-per-month, --storage-bytes or --provenance")
    with_store(settings, lambda store, _: change_org(store, Clock(), OrgId(org), changes))
    report(f"changed {org}", as_json, id=org)


@orgs.command("list")
def show_orgs(data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """List organizations with their balances."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> list[list[Any]]:
        return [
            [org.id, org.name, org.billing, dollars(org.available), dollars(org.held), _budget(org)]
            for org in await list_orgs(store)
        ]

    rows = with_store(settings, work)
    show_table("Organizations", ["id", "name", "billing", "available USD", "held USD", "USD per month"], rows, as_json)


def _budget(org: Organization) -> Any:
    return None if org.nanos_per_month is None else dollars(Nanos(org.nanos_per_month))


@credit.command("add")
def add_credit(
    usd: Annotated[str, typer.Option(help="Amount in US dollars, such as 25.00.")],
    data: Data = None,
    config: Config = None,
    org: Org = None,
    note: Annotated[str, typer.Option(help="Note that is stored with the credit.")] = "added by an operator",
    as_json: Json = False,
) -> None:
    """Add credit to an organization and print what it has available."""
    settings = load_settings(data=data, config=config)
    amount = _credit_amount(usd)

    async def work(store: Store, vault: Vault) -> str:
        owner = await org_id(store, org, settings)
        await credit_org(store, Clock(), owner, amount, note)
        row = await store.one("get_balance", org_id=owner)
        return str(dollars(Nanos(row["available"] if row else 0)))

    available = with_store(settings, work)
    report(f"available: {output.usd(Decimal(available))}", as_json, available=available, currency="usd")


def _bytes(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("--storage-bytes must be a whole number or `none`")
    return int(text)


def _credit_amount(usd: str) -> Nanos:
    amount = _amount(usd)
    if not amount:
        raise ValueError("--usd must be an amount above 0, such as 25.00")
    return amount


def _budget_amount(usd: str) -> Nanos:
    amount = _amount(usd)
    if amount is None or amount > nanos(MAX_USD_PER_MONTH):
        raise ValueError(f"--usd-per-month must be an amount from 0 to {MAX_USD_PER_MONTH}, such as 25.00, or `none`")
    return amount


def _amount(usd: str) -> Nanos | None:
    """The amount; None if it is not one, or negative."""
    try:
        amount = nanos(Decimal(usd))
    except (InvalidOperation, ValueError):
        return None
    return amount if amount >= 0 else None
