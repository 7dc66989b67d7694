"""List people who sign in with the issuer, give them roles and keys, and deactivate them."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.accounts.keys import Keys, NewKey
from penstock.clock import Clock
from penstock.commands.data_folder import Config, Data, Org, load_settings, org_id, with_store
from penstock.commands.output import Json, report
from penstock.commands.tables import show_table
from penstock.people.configured import EVERYWHERE
from penstock.people.own_keys import OwnKeyLimits, OwnKeys, checked_limits
from penstock.people.users import ROLES, Users
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.values import OrgId
from penstock.vault import Vault

Who = Annotated[str, typer.Argument(help="The verified e-mail address of the person, or the id.")]
_NOTHING = "none"

app = typer.Typer(no_args_is_help=True, help="List people who sign in with the issuer, and change their roles.")


@app.command("list")
def list_users(data: Data = None, config: Config = None, org: Org = None, as_json: Json = False) -> None:
    """List people with their roles; with --org those of an organization, and those without a role."""
    people = _with_users(data, config, lambda users, _: users.list_records(OrgId(org) if org else None))
    rows = [[person["id"], person["email"], person["status"], person["roles"], person["seen_at"]] for person in people]
    if not as_json:
        for row in rows:
            row[3] = ", ".join(f"{each['role']} of {each['org_id']}" for each in row[3])
    show_table("People", ["id", "email", "status", "roles", "signed in"], rows, as_json)


@app.command("grant")
def grant(
    who: Who,
    role: Annotated[str, typer.Option(help="viewer, member, admin or operator; none takes the role away.")],
    data: Data = None,
    config: Config = None,
    org: Org = None,
    as_json: Json = False,
) -> None:
    """Give a person who has signed in once a role; running gateways follow at once."""
    if role not in (*ROLES, _NOTHING):
        raise ValueError(f"--role must be one of: {', '.join(ROLES)}, {_NOTHING}")

    async def work(users: Users, first: Callable[[], Awaitable[OrgId]]) -> str:
        user_id = await _find(users, who)
        place = EVERYWHERE if role == "operator" or org == EVERYWHERE else await first()
        await users.grant(user_id, place, None if role == _NOTHING else role)
        return user_id

    user_id = _with_users(data, config, work, org)
    report(f"{user_id}: {role}", as_json, id=user_id, role=None if role == _NOTHING else role)


@app.command("deactivate")
def deactivate(who: Who, data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """End all sessions of a person at once, revoke the person's keys, and let the person sign in no more."""
    _set_status(who, "deactivated", data, config, as_json)


@app.command("activate")
def activate(who: Who, data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """Let a deactivated person sign in again."""
    _set_status(who, "active", data, config, as_json)


def _set_status(who: str, status: str, data: Path | None, config: Path | None, as_json: bool) -> None:
    async def work(users: Users, first: Callable[[], Awaitable[OrgId]]) -> str:
        user_id = await _find(users, who)
        await users.set_status(user_id, status)
        return user_id

    user_id = _with_users(data, config, work)
    report(f"{user_id}: {status}", as_json, id=user_id, status=status)


@app.command("keys")
def list_keys(who: Who, data: Data = None, config: Config = None, org: Org = None, as_json: Json = False) -> None:
    """List the keys that a person has made."""

    async def work(keys: OwnKeys, user_id: str, owner: OrgId) -> list[dict[str, Any]]:
        return await keys.list_records(user_id, owner)

    records = _with_own_keys(who, data, config, work, org)
    columns = ["id", "name", "last_four", "expires_at", "usd_per_month", "spent_this_month"]
    show_table("Keys", columns, [[record[column] for column in columns] for record in records], as_json)


@app.command("make-key")
def make_key(
    who: Who,
    name: Annotated[str | None, typer.Option(help="Name of the key.")] = None,
    expires_at: Annotated[str | None, typer.Option(help="When the key stops working, such as 2027-01-31.")] = None,
    usd_per_month: Annotated[str | None, typer.Option(help="Maximum spend per UTC month, in USD.")] = None,
    data: Data = None,
    config: Config = None,
    org: Org = None,
    as_json: Json = False,
) -> None:
    """Make a key for a person, within the limits for these, and print it; it cannot be shown again."""
    wishes = {"name": name, "expires_at": expires_at, "usd_per_month": usd_per_month}
    options = {option: value for option, value in wishes.items() if value is not None}

    async def work(keys: OwnKeys, user_id: str, owner: OrgId) -> NewKey:
        return await keys.create(user_id, owner, options)

    new = _with_own_keys(who, data, config, work, org)
    report(new.key, as_json, id=new.id, key=new.key)


@app.command("key-limits")
def limit_keys(
    keys: Annotated[int | None, typer.Option(help="Most keys that a person may have; 0 for none.")] = None,
    days: Annotated[int | None, typer.Option(help="Most days that a key lasts.")] = None,
    requests_per_minute: Annotated[int | None, typer.Option(help="Maximum requests per minute of each key.")] = None,
    concurrent_requests: Annotated[int | None, typer.Option(help="Maximum requests at once of each key.")] = None,
    usd_per_day: Annotated[str | None, typer.Option(help="Maximum spend of each key per UTC day, in USD.")] = None,
    usd_per_month: Annotated[str | None, typer.Option(help="Maximum spend of each key per UTC month, in USD.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="A model that the keys may use. May be repeated.")] = None,
    data: Data = None,
    config: Config = None,
    org: Org = None,
    as_json: Json = False,
) -> None:
    """Show what limits the keys that people make, or replace it if any option is given."""
    given = {
        "keys": keys,
        "days": days,
        "requests_per_minute": requests_per_minute,
        "concurrent_requests": concurrent_requests,
        "usd_per_day": usd_per_day,
        "usd_per_month": usd_per_month,
        "models": model or None,
    }
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> OwnKeyLimits:
        own_keys = OwnKeys(store, Clock(), Keys(store, vault, Clock()))
        owner = await org_id(store, org, settings)
        if any(value is not None for value in given.values()):
            await own_keys.set_limits(owner, checked_limits(given))
        return await own_keys.limits(owner)

    limits = {name: value for name, value in with_store(settings, work).record().items() if name != "object"}
    show_table("Limits of people's keys", list(limits), [[*limits.values()]], as_json)


def _with_own_keys(
    who: str,
    data: Path | None,
    config: Path | None,
    work: Callable[[OwnKeys, str, OrgId], Awaitable[Any]],
    org: str | None,
) -> Any:
    """Run `work` with the keys of people, the person, and the organization that is named or the first."""
    settings: Settings = load_settings(data=data, config=config)

    async def with_own_keys(store: Store, vault: Vault) -> Any:
        user_id = await _find(Users(store, Clock()), who)
        owner = await org_id(store, org, settings)
        return await work(OwnKeys(store, Clock(), Keys(store, vault, Clock())), user_id, owner)

    return with_store(settings, with_own_keys)


async def _find(users: Users, who: str) -> str:
    return await users.find_by_email(who) if "@" in who else who


def _with_users(
    data: Path | None,
    config: Path | None,
    work: Callable[[Users, Callable[[], Awaitable[OrgId]]], Awaitable[Any]],
    org: str | None = None,
) -> Any:
    """Run `work` with the people of a data folder, and with what tells the organization that is named or the first."""
    settings: Settings = load_settings(data=data, config=config)

    async def with_users(store: Store, vault: Vault) -> Any:
        return await work(Users(store, Clock()), lambda: org_id(store, org, settings))

    return with_store(settings, with_users)
