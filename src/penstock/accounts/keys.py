"""Who is calling: bearer key to account."""

import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import blake2b
from typing import Any
from zlib import crc32

from penstock.clock import Clock
from penstock.errors import AuthenticationFailed, InvalidRequest, NotFound
from penstock.schema import Caller
from penstock.states import KEY
from penstock.store.base import Row, Store, Transaction
from penstock.store.paging import DEFAULT_LIMIT, Page, Pager
from penstock.values import REPLAY_MODES, ZERO, Nanos, is_id, iso, nanos, new_id
from penstock.vault import SecretRefused, Vault

ADMIN = "admin"
SCOPES = (ADMIN,)

# How long a key may go on working after another process revoked it; the promise is 2 seconds.
_TRUST_SECONDS = 1.0
_MOST_KNOWN = 10_000

_BEARER = "bearer "
_CHECK_CHARS = 6
_KEY = re.compile(r"pk_[0-9a-z]{32}_[A-Za-z0-9_-]{43}[A-Za-z0-9_-]{6}")
_HEADER_CHARS = len(_BEARER) + len("pk_") + 32 + len("_") + 43 + _CHECK_CHARS
_MOST_NAME_CHARS = 200
_MOST_COUNT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key at its creation: the only time that the key itself is known."""

    key: str = field(repr=False)  # so that it cannot slip into a log
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Org:
    id: str
    name: str
    billing: str
    available: Nanos
    held: Nanos
    created_at_ms: int


def key_record(row: Row) -> dict[str, Any]:
    """A row as the interface shows it."""
    return {
        "id": row["id"],
        "object": "key",
        "name": row["name"],
        "last_four": row["last_four"],
        "status": row["status"],
        "created_at": iso(row["created_at_ms"]),
        "revoked_at": None if row["revoked_at_ms"] is None else iso(row["revoked_at_ms"]),
    }


# ------------------------------------------------------------------------------------------------------------ the text


def write_key(key_id: str) -> str:
    """A new key: its id, 256 random bits and a checksum, so that typing errors and fakes never reach the database."""
    start = f"pk_{key_id.removeprefix('key_')}_{secrets.token_urlsafe(32)}"
    return start + _check(start)


def is_well_formed(key: str) -> bool:
    return _KEY.fullmatch(key) is not None and key.endswith(_check(key[:-_CHECK_CHARS]))


def _check(start: str) -> str:
    return urlsafe_b64encode(crc32(start.encode()).to_bytes(4)).decode()[:_CHECK_CHARS]


# ------------------------------------------------------------------------------------------------------------- callers


class Keys:
    """Keys and organizations."""

    def __init__(self, store: Store, vault: Vault, clock: Clock) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self._pager = Pager(store, "key", "key")
        # Callers seen just now, under a keyed digest of the whole header: the key itself stays in no table, and no part
        # of it can stand for the whole. This digest costs a third of the one that is stored.
        self._known: dict[bytes, tuple[float, Caller]] = {}
        self._blind = secrets.token_bytes(32)

    async def caller(self, authorization: str | None) -> Caller:
        """Whoever sends this header; every fault in it is answered alike."""
        if authorization is None or len(authorization) != _HEADER_CHARS or not authorization.isascii():
            raise AuthenticationFailed
        seen = blake2b(authorization.encode(), key=self._blind, digest_size=32).digest()
        known = self._known.get(seen)
        if known is not None and self._clock.monotonic() < known[0]:
            return known[1]
        return await self._look_up(authorization, seen)

    async def _look_up(self, authorization: str, seen: bytes) -> Caller:
        key = authorization[len(_BEARER) :]
        if authorization[: len(_BEARER)].lower() != _BEARER or not is_well_formed(key):
            raise AuthenticationFailed
        # Counted from before the read: a revocation that the read just missed must not gain time from a slow database.
        until = self._clock.monotonic() + _TRUST_SECONDS
        row = await self._store.one("get_caller", digest=self._vault.digest_key(key))
        if row is None:
            self._known.pop(seen, None)
            raise AuthenticationFailed
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        caller = _caller(row)
        self._known[seen] = (until, caller)
        return caller

    async def check_secret(self) -> None:
        """Refuse to go on with another master secret than the one that the stored digests and seals were made with."""

        async def work(tx: Transaction) -> Row | None:
            await tx.run("add_fact", name="secret_fingerprint", value=self._vault.fingerprint)
            return await tx.one("get_fact", name="secret_fingerprint")

        fact = await self._store.one("get_fact", name="secret_fingerprint") or await self._store.write(work)
        if fact is None or fact["value"] != self._vault.fingerprint:
            raise SecretRefused(
                "The database was written with another master secret. Put secret.key back into the data folder, or "
                "give every process that shares the database the same PENSTOCK_SECRET."
            )

    # ----------------------------------------------------------------------------------------------------------- keys

    async def create_key(
        self,
        org_id: str,
        *,
        name: str | None = None,
        scopes: Iterable[str] = (),
        requests_per_minute: int | None = None,
        concurrent_requests: int | None = None,
        usd_per_day: Decimal | str | int | None = None,
        replay_mode: str | None = None,
    ) -> NewKey:
        row = {
            "org_id": org_id,
            "name": _name(name),
            "scopes": _scopes(scopes),
            "requests_per_minute": _count("requests_per_minute", requests_per_minute),
            "concurrent_requests": _count("concurrent_requests", concurrent_requests),
            "nanos_per_day": _nanos_per_day(usd_per_day),
            "replay_mode": _replay_mode(replay_mode),
        }
        key, row = self._draft(row)

        async def work(tx: Transaction) -> None:
            if await tx.one("get_balance", org_id=org_id) is None:
                raise NotFound(f"No such organization: {org_id}.")
            await tx.run("add_key", **row)

        await self._store.write(work)
        return NewKey(key, key_record({**row, "status": "active", "revoked_at_ms": None}))

    def _draft(self, row: Row) -> tuple[str, Row]:
        at_ms = self._clock.now_ms()
        key_id = new_id("key", at_ms)
        key = write_key(key_id)
        digest = self._vault.digest_key(key)
        return key, {**row, "id": key_id, "last_four": key[-4:], "digest": digest, "created_at_ms": at_ms}

    async def revoke_key(self, org_id: str, key_id: str) -> dict[str, Any]:
        """Final, and in this process at once. Revoking again changes nothing."""

        async def work(tx: Transaction) -> Row | None:
            await tx.run("revoke_key", id=key_id, org_id=org_id, at_ms=self._clock.now_ms())
            return await tx.one("get_key", id=key_id, org_id=org_id)

        row = await self._store.write(work) if is_id(key_id, "key") else None
        if row is None:
            raise NotFound(f"No such key: {key_id}.")
        self._known = {seen: known for seen, known in self._known.items() if known[1].key_id != key_id}
        return key_record(row)

    async def org_of_key(self, key_id: str) -> str:
        """For operators, who may name any key."""
        row = await self._store.one("get_key_org", id=key_id) if is_id(key_id, "key") else None
        if row is None:
            raise NotFound(f"No such key: {key_id}.")
        return str(row["org_id"])

    async def keys_page(
        self,
        org_id: str,
        limit: int = DEFAULT_LIMIT,
        starting_after: str | None = None,
        ending_before: str | None = None,
        status: str | None = None,
    ) -> Page:
        """Return records of keys, newest first; `status` leaves out the others."""
        if status is not None and status not in KEY:
            raise InvalidRequest(f"status must be one of: {', '.join(KEY)}.", param="status")
        page = await self._pager.page(org_id, limit, starting_after, ending_before, status=status)
        return replace(page, data=[key_record(row) for row in page.data])

    async def all_keys(self, org_id: str) -> list[dict[str, Any]]:
        """Return the record of every key, newest first."""
        return [key_record(row) for row in await self._pager.all(org_id, status=None)]

    # -------------------------------------------------------------------------------------------------- organizations

    async def create_org(self, name: str, billing: str) -> Org:
        """An organization with nothing on its account and no keys."""
        if (name := _name(name) or "") == "":
            raise InvalidRequest("An organization needs a name.", param="name")
        if billing not in ("prepaid", "postpaid"):
            raise InvalidRequest("billing must be prepaid or postpaid.", param="billing")
        at_ms = self._clock.now_ms()
        org = Org(new_id("org", at_ms), name, billing, ZERO, ZERO, at_ms)
        await self._store.write(lambda tx: _add_org(tx, org))
        return org

    async def list_orgs(self) -> list[Org]:
        return [Org(**row) for row in await self._store.slow("list_orgs")]

    async def begin(self, billing: str, give: Callable[[Transaction, str], Awaitable[object]]) -> NewKey | None:
        """On the first start of all, make an organization with an admin key, and `give` it its credit.

        One transaction, and the first of several processes wins; all others, and every later start, get None.
        """
        at_ms = self._clock.now_ms()
        org = Org(new_id("org", at_ms), "First organization", billing, ZERO, ZERO, at_ms)
        limits = dict.fromkeys(("requests_per_minute", "concurrent_requests", "nanos_per_day", "replay_mode"))
        key, row = self._draft({"org_id": org.id, "name": "First key", "scopes": ADMIN, **limits})

        async def work(tx: Transaction) -> bool:
            if not await tx.run("add_fact", name="first_org", value=org.id):
                return False
            await _add_org(tx, org)
            await give(tx, org.id)
            await tx.run("add_key", **row)
            return True

        if await self._store.one("get_fact", name="first_org") or not await self._store.write(work):
            return None
        return NewKey(key, key_record({**row, "status": "active", "revoked_at_ms": None}))


async def _add_org(tx: Transaction, org: Org) -> None:
    await tx.run("add_org", id=org.id, name=org.name, billing=org.billing, created_at_ms=org.created_at_ms)


def _caller(row: Row) -> Caller:
    return Caller(
        org_id=row["org_id"],
        key_id=row["key_id"],
        scopes=frozenset(row["scopes"].split()),
        prepaid=row["billing"] == "prepaid",
        requests_per_minute=row["requests_per_minute"],
        concurrent_requests=row["concurrent_requests"],
        nanos_per_day=row["nanos_per_day"],
        replay_mode=row["replay_mode"],
    )


# --------------------------------------------------------------------------------------------------- what a key may be


# Values come from a JSON body as they are, so each is taken for anything until it has been looked at.


def _name(name: Any) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or len(name) > _MOST_NAME_CHARS or not name.isprintable():
        raise InvalidRequest(f"name must be at most {_MOST_NAME_CHARS} printable characters.", param="name")
    return name


def _scopes(scopes: Any) -> str:
    if not isinstance(scopes, list | tuple | set | frozenset) or any(scope not in SCOPES for scope in scopes):
        raise InvalidRequest(f"scopes must be a list that may hold: {', '.join(SCOPES)}.", param="scopes")
    return " ".join(sorted(set(scopes)))


def _count(field: str, count: Any) -> int | None:
    if count is None:
        return None
    if type(count) is not int or not 1 <= count <= _MOST_COUNT:
        raise InvalidRequest(f"{field} must be a whole number from 1 to {_MOST_COUNT}.", param=field)
    return count


def _nanos_per_day(usd: Any) -> int | None:
    if usd is None:
        return None
    try:
        amount = nanos(usd)
        if not 0 <= amount < 2**63:
            raise ValueError
    except (ValueError, TypeError, ArithmeticError):
        raise InvalidRequest('usd_per_day must be an amount in dollars such as "2.50".', param="usd_per_day") from None
    return amount


def _replay_mode(mode: Any) -> str | None:
    if mode is None:
        return None
    if mode not in REPLAY_MODES:
        raise InvalidRequest(f"replay_mode must be one of: {', '.join(REPLAY_MODES)}.", param="replay_mode")
    return str(mode)
