"""A gateway of real parts in its own folder, and accounts to call it with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.accounts.key_records import ADMIN
from penstock.accounts.keys import NewKey
from penstock.accounts.orgs import create_org
from penstock.app.background import run_background_work
from penstock.app.build import build_gateway
from penstock.app.first_start import ensure_first_key
from penstock.clock import Clock
from penstock.gateway import Gateway
from penstock.settings import Settings
from penstock.values import OrgId
from tests.child_tasks import run_tasks_in_threads
from tests.databases import put_migrated_file
from tests.manual_clock import ManualClock

MASTER = "m" * 43


@dataclass(frozen=True, slots=True)
class Account:
    """An organization with two keys, one of them with the admin scope."""

    org_id: OrgId
    admin: NewKey
    plain: NewKey


@asynccontextmanager
async def opened(
    folder: Path, *, clock: Clock | None = None, works: bool = False, child_processes: bool = False, **options: Any
) -> AsyncIterator[Gateway]:
    """Open a gateway without credentials in its environment, so that only the built-in provider is on."""
    settings = Settings(**{"data": folder, "secret": MASTER, "provenance": "off", **options})
    if not settings.database and not settings.sqlite_file.exists():
        put_migrated_file(settings.sqlite_file)
    async with build_gateway(settings, clock, {}) as gateway:
        if not child_processes:
            run_tasks_in_threads(gateway.worker_pool)
        if not works:
            yield gateway
            return
        async with run_background_work(gateway):
            yield gateway


async def first_account(gateway: Gateway) -> Account:
    """Create what the first start of an installation creates, and a key without scopes."""
    welcome = await ensure_first_key(gateway)
    assert welcome.key is not None, "a fresh installation"
    (row,) = await gateway.keys.list_all(welcome.org_id)
    _pass_time(gateway.clock)
    plain = await gateway.keys.create_key(welcome.org_id, name="plain")
    return Account(welcome.org_id, NewKey(welcome.key, row), plain)


async def another_account(gateway: Gateway, name: str = "Other") -> Account:
    org = await create_org(gateway.store, gateway.clock, name, "prepaid")
    admin = await gateway.keys.create_key(org.id, name="admin", scopes=[ADMIN])
    _pass_time(gateway.clock)
    return Account(org.id, admin, await gateway.keys.create_key(org.id, name="plain"))


def _pass_time(clock: Clock) -> None:
    """Advance a manual clock, so that two keys have different times."""
    if isinstance(clock, ManualClock):
        clock.advance(1)
