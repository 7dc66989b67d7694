"""The data folder that a command works on: the options that name it, its settings, its store and its organizations."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from penstock.commands.owner import become_owner, caller_name
from penstock.commands.quick_imports import quick_imports
from penstock.environment import ENVIRONMENT
from penstock.settings import PREFIX, Settings
from penstock.settings.description import misspelt_variables
from penstock.settings.loading import load
from penstock.values import OrgId

if TYPE_CHECKING:
    from penstock.store.base import Store
    from penstock.vault import Vault

T = TypeVar("T")
URL_FILE = "gateway.url"  # in the data folder: where its gateway listens

Data = Annotated[Path | None, typer.Option(help="Data folder. Default: PENSTOCK_DATA, else ./data.")]
Config = Annotated[
    Path | None, typer.Option(help="Path to penstock.toml. Default: PENSTOCK_CONFIG, else in the data folder.")
]
Org = Annotated[str | None, typer.Option(help="Id of the organization; by default the first one.")]


def load_settings(**options: Any) -> Settings:
    """Return the settings; options of the command line come before the environment and penstock.toml. From then on a
    command of root acts as the owner of the data folder.

    Says so if the only penstock.toml is in the current folder, where it is not read, and if a variable of the
    environment has the name of no setting, but almost.
    """
    settings = load(options)
    for variable, near in misspelt_variables().items():
        typer.echo(f"penstock: the variable {variable} is not a setting; did you mean {near}?", err=True)
    is_named = options.get("config") or PREFIX + "CONFIG" in ENVIRONMENT
    if not is_named and Path("penstock.toml").is_file() and not (settings.data / "penstock.toml").is_file():
        message = f"penstock.toml in this folder is not read; move it to {settings.data}, or name it with --config"
        typer.echo(f"penstock: {message}", err=True)
    become_owner(settings.data)
    return settings


def with_store(settings: Settings, work: "Callable[[Store, Vault], Coroutine[Any, Any, T]]") -> T:
    """Open the store and the vault, run `work` with them, and return its result.

    Raises RuntimeError where no gateway has run yet: a database that a command creates by mistake would be a trap.
    """
    check_data(settings)
    with quick_imports():
        import asyncio  # all imported here because some commands need no store

        from penstock.app.opening import open_store_and_vault
        from penstock.audit_log import Actor, act_as

    async def run() -> T:
        act_as(Actor(f"command:{caller_name()}"))
        async with open_store_and_vault(settings) as (store, vault):
            return await work(store, vault)

    return asyncio.run(run())


def check_data(settings: Settings) -> None:
    """Raise RuntimeError if there is no database in the data folder."""
    if not settings.database and not settings.sqlite_file.exists():
        raise RuntimeError(
            f"there is no Penstock data in {settings.data.absolute()}: start the gateway there first (or run "
            "`penstock init`), or name another folder with --data"
        )


async def org_id(store: "Store", named: str | None, settings: Settings) -> OrgId:
    """Return the named organization, or the first one, which is created if the gateway never ran here.

    Raises NotFound if none has this name.
    """
    from penstock.app.first_start import ensure_first_org
    from penstock.clock import Clock

    return await known_org(store, named) if named else await ensure_first_org(store, settings, Clock())


async def known_org(store: "Store", named: str) -> OrgId:
    """The organization with this id. Raises NotFound."""
    from penstock.accounts.orgs import get_org

    return OrgId((await get_org(store, OrgId(named))).id)
