"""List people who sign in with the issuer, give them roles, and deactivate them."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.clock import Clock
from penstock.commands.data_folder import Config, Data, Org, load_settings, org_id, with_store
from penstock.commands.output import Json, report
from penstock.commands.tables import show_table
from penstock.people.configured import EVERYWHERE
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
    """End all sessions of a person at once, and let the person sign in no more."""
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
