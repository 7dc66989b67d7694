"""Add, list, rotate and delete accounts at vendors."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock import providers
from penstock.clock import Clock
from penstock.commands.data_folder import Config, Data, load_settings, with_store
from penstock.commands.output import Json, report
from penstock.commands.tables import show_table
from penstock.errors import InvalidRequest
from penstock.models.catalog import Catalog
from penstock.models.vendor_accounts import VendorAccounts
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.values import OrgId
from penstock.vault import Vault

FromFile = Annotated[
    Path, typer.Option("--from-file", help="File with the credential, or `-` for stdin: not visible to other users.")
]
AccountId = Annotated[str, typer.Argument(help="Id of the account.")]

app = typer.Typer(no_args_is_help=True, help="Add, list, rotate and delete accounts: several credentials per vendor.")


@app.command("add")
def add_account(
    provider: Annotated[str, typer.Argument(help="Id of the provider, such as fal.")],
    from_file: FromFile,
    name: Annotated[str, typer.Option(help="Name of the account.")] = "",
    weight: Annotated[int, typer.Option(help="How often it is chosen among equals, from 1 to 100.")] = 1,
    priority: Annotated[int, typer.Option(help="Accounts with a lower number are tried first.")] = 0,
    model: Annotated[list[str] | None, typer.Option(help="A model that it serves; may end with `*`.")] = None,
    concurrent: Annotated[int | None, typer.Option(help="Calls and jobs at a time.")] = None,
    per_minute: Annotated[int | None, typer.Option(help="Calls in a minute.")] = None,
    usd_per_month: Annotated[float | None, typer.Option(help="Dollars in a month, in UTC.")] = None,
    org: Annotated[str, typer.Option(help="Organization whose account it is: its bill at the vendor.")] = "",
    fee_percent: Annotated[int | None, typer.Option(help="What its calls cost, in percent of the price.")] = None,
    data: Data = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Add a credential of a provider; running gateways use it within two seconds."""
    limits = {"concurrent": concurrent, "requests_per_minute": per_minute, "usd_per_month": usd_per_month}
    options = {"name": name, "weight": weight, "priority": priority, "models": model or None, **limits}
    options["fee_percent"] = fee_percent
    owner = OrgId(org) if org else None
    credential = _read(from_file)
    account = _with_accounts(data, config, lambda accounts: accounts.add(provider, credential, options, owner))
    report(f"added {account['id']}", as_json, **account)


@app.command("list")
def list_accounts(data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """List the accounts of all providers."""

    async def work(accounts: VendorAccounts) -> list[dict[str, Any]]:
        return accounts.list_records()

    columns = ["id", "provider", "name", "status", "weight", "priority", "last_four", "spent_this_month"]
    rows = [[account[column] for column in columns] for account in _with_accounts(data, config, work)]
    show_table("Accounts", columns, rows, as_json)


@app.command("rotate")
def rotate_account(
    account_id: AccountId, from_file: FromFile, data: Data = None, config: Config = None, as_json: Json = False
) -> None:
    """Replace the credential, also for jobs that run: it must be of the same account at the vendor."""
    credential = _read(from_file)
    account = _with_accounts(data, config, lambda accounts: accounts.rotate(account_id, credential))
    report(f"rotated {account_id}", as_json, **account)


@app.command("delete")
def delete_account(
    account_id: AccountId,
    drain: Annotated[bool, typer.Option("--drain", help="Let it end the jobs that it has started first.")] = False,
    data: Data = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Delete an account. While jobs that it started are open, this is refused without --drain."""
    left = _with_accounts(data, config, lambda accounts: accounts.delete(account_id, drain=drain))
    status = "deleted" if left is None else "draining"
    report(f"{status} {account_id}", as_json, id=account_id, status=status)


def _with_accounts(data: Path | None, config: Path | None, work: Callable[[VendorAccounts], Awaitable[Any]]) -> Any:
    settings: Settings = load_settings(data=data, config=config)

    async def with_accounts(store: Store, vault: Vault) -> Any:
        accounts = VendorAccounts(store, vault, Clock(), Catalog(providers.discover(), settings, {}), settings)
        await accounts.refresh()
        return await work(accounts)

    return with_store(settings, with_accounts)


def _read(path: Path) -> str:
    text = sys.stdin.read() if path == Path("-") else path.expanduser().read_text()
    if not text.strip():
        raise InvalidRequest("There is no credential in the file.")
    return text
