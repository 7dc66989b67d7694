"""A gateway of real parts, in a folder of its own, with accounts to call it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.accounts.keys import ADMIN, NewKey
from penstock.accounts.transfers import add_credit
from penstock.app import opened_gateway, working
from penstock.clock import Clock, ManualClock
from penstock.gateway import Gateway
from penstock.settings import Settings
from penstock.store.base import Transaction
from penstock.values import nanos

MASTER = "m" * 43


@dataclass(frozen=True, slots=True)
class Account:
    """An organization with two keys, one of which may administer."""

    org_id: str
    admin: NewKey
    plain: NewKey


@asynccontextmanager
async def opened(
    folder: Path, *, clock: Clock | None = None, works: bool = False, **said: Any
) -> AsyncIterator[Gateway]:
    """Without credentials in its environment, so that only the built-in provider is on."""
    settings = Settings(data=folder, secret=MASTER, **said)
    async with opened_gateway(settings, clock, {}) as gateway:
        if not works:
            yield gateway
            return
        async with working(gateway):
            yield gateway


async def first_account(gateway: Gateway, usd: str = "10.00") -> Account:
    """What the first start of an installation makes, and a key without scopes."""

    async def give(tx: Transaction, org_id: str) -> None:
        await add_credit(tx, org_id, nanos(usd), gateway.clock.now_ms(), "first credit")

    admin = await gateway.keys.begin("prepaid", give)
    assert admin is not None
    caller = await gateway.keys.caller(f"Bearer {admin.key}")
    _pass_time(gateway.clock)
    return Account(caller.org_id, admin, await gateway.keys.create_key(caller.org_id, name="plain"))


async def another_account(gateway: Gateway, name: str = "Other") -> Account:
    org = await gateway.keys.create_org(name, "prepaid")
    admin = await gateway.keys.create_key(org.id, name="admin", scopes=[ADMIN])
    _pass_time(gateway.clock)
    return Account(org.id, admin, await gateway.keys.create_key(org.id, name="plain"))


def _pass_time(clock: Clock) -> None:
    """Of two keys made in one instant, nobody can say which is the newer."""
    if isinstance(clock, ManualClock):
        clock.advance(1)
