"""Authenticate callers by API key; create, list and revoke keys."""

import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterable
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
from penstock.values import REPLAY_MODES, is_id, iso, nanos, new_id
from penstock.vault import Vault

ADMIN = "admin"  # manages the keys of its own organization
OPERATOR = "operator"  # sees the figures of the whole installation; granted by the command line only
SCOPES = (ADMIN, OPERATOR)

# How long a key may still work after another process revoked it; the documentation promises 2 seconds.
_CACHE_SECONDS = 1.0
_MAX_CACHED = 10_000

_BEARER = "bearer "
_CHECKSUM_CHARS = 6
_KEY = re.compile(r"pk_[0-9a-z]{32}_[A-Za-z0-9_-]{43}[A-Za-z0-9_-]{6}")
_HEADER_CHARS = len(_BEARER) + len("pk_") + 32 + len("_") + 43 + _CHECKSUM_CHARS
_MAX_NAME_CHARS = 200
_TERMINAL_KEY_NAME = "command line"
_MAX_COUNT = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """The columns of the table `keys` that are shown."""

    id: str
    name: str | None
    last_four: str
    status: str
    created_at_ms: int
    revoked_at_ms: int | None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just created. The key itself is known only now; the store keeps a digest."""

    key: str = field(repr=False)  # so that it is not logged by accident
    row: KeyRow

    @property
    def id(self) -> str:
        return self.row.id


def key_record(row: KeyRow) -> dict[str, Any]:
    """Return a row as the key record of the interface."""
    return {
        "id": row.id,
        "object": "key",
        "name": row.name,
        "last_four": row.last_four,
        "status": row.status,
        "created_at": iso(row.created_at_ms),
        "revoked_at": None if row.revoked_at_ms is None else iso(row.revoked_at_ms),
    }


# ------------------------------------------------------------------------------------------------- the text of a key


def generate_key(key_id: str) -> str:
    """Return a new key with 256 random bits."""
    return key_text(key_id, secrets.token_urlsafe(32))


def key_text(key_id: str, secret: str) -> str:
    """Return a key: its id, its secret, and a checksum that reveals typing errors without a database read."""
    start = f"pk_{key_id.removeprefix('key_')}_{secret}"
    return start + _checksum(start)


def is_well_formed(key: str) -> bool:
    return _KEY.fullmatch(key) is not None and key.endswith(_checksum(key[:-_CHECKSUM_CHARS]))


def _checksum(start: str) -> str:
    return urlsafe_b64encode(crc32(start.encode()).to_bytes(4)).decode()[:_CHECKSUM_CHARS]


# ---------------------------------------------------------------------------------------------------------------- keys


class Keys:
    """Authenticates callers and manages keys."""

    def __init__(self, store: Store, vault: Vault, clock: Clock) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self._pager = Pager(store, "key", "key")
        # Recent callers and until when they may be used, by a keyed digest of the whole header: the key itself is not
        # kept in memory. This digest takes a third of the time of the stored one.
        self._cache: dict[bytes, tuple[float, Caller]] = {}
        self._cache_secret = secrets.token_bytes(32)

    async def authenticate(self, authorization: str | None) -> Caller:
        """Return the caller of an Authorization header; raise the same AuthenticationFailed for every fault in it."""
        if authorization is None or len(authorization) != _HEADER_CHARS or not authorization.isascii():
            raise AuthenticationFailed
        digest = blake2b(authorization.encode(), key=self._cache_secret, digest_size=32).digest()
        cached = self._cache.get(digest)
        if cached is not None and self._clock.monotonic() < cached[0]:
            return cached[1]
        return await self._read_caller(authorization, digest)

    async def _read_caller(self, authorization: str, digest: bytes) -> Caller:
        key = authorization[len(_BEARER) :]
        if authorization[: len(_BEARER)].lower() != _BEARER or not is_well_formed(key):
            raise AuthenticationFailed
        # From before the read: a slow read must not let a key that is revoked meanwhile work for longer.
        until = self._clock.monotonic() + _CACHE_SECONDS
        row = await self._store.one("get_caller", digest=self._vault.digest_key(key))
        if row is None:
            self._cache.pop(digest, None)
            raise AuthenticationFailed
        if len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
        caller = _caller(row)
        self._cache[digest] = (until, caller)
        return caller

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
        derived: bool = False,
    ) -> NewKey:
        """Create a key; raise InvalidRequest for a bad value and NotFound if there is no such organization.

        The secret of a `derived` key follows from its id and the master secret; that of any other key is random.
        """
        at_ms = self._clock.now_ms()
        key_id = new_id("key", at_ms)
        key = key_text(key_id, self._vault.derive_key_secret(key_id)) if derived else generate_key(key_id)
        row = KeyRow(
            id=key_id,
            name=_checked_name(name),
            last_four=key[-4:],
            status="active",
            created_at_ms=at_ms,
            revoked_at_ms=None,
        )
        columns = {
            "id": row.id,
            "org_id": org_id,
            "name": row.name,
            "last_four": row.last_four,
            "created_at_ms": row.created_at_ms,
            "scopes": _checked_scopes(scopes),
            "requests_per_minute": _checked_count("requests_per_minute", requests_per_minute),
            "concurrent_requests": _checked_count("concurrent_requests", concurrent_requests),
            "nanos_per_day": _checked_nanos_per_day(usd_per_day),
            "replay_mode": _checked_replay_mode(replay_mode),
            "digest": self._vault.digest_key(key),
        }

        async def write(tx: Transaction) -> None:
            if await tx.one("get_balance", org_id=org_id) is None:
                raise NotFound(f"No such organization: {org_id}.")
            await tx.run("add_key", **columns)

        await self._store.write(write, org_id=org_id)
        return NewKey(key, row)

    async def ensure_terminal_key(self, org_id: str) -> str:
        """Return the key that the owner of the data folder uses on the command line; create it if there is none.

        It is stored nowhere, but follows from the master secret. Once it is revoked, another one takes its place.
        """
        for row in await self.list_all(org_id):
            if row.name == _TERMINAL_KEY_NAME and row.status == "active":
                key = key_text(row.id, self._vault.derive_key_secret(row.id))
                if await self._store.one("get_caller", digest=self._vault.digest_key(key)) is not None:
                    return key
        return (await self.create_key(org_id, name=_TERMINAL_KEY_NAME, derived=True)).key

    async def revoke_key(self, org_id: str, key_id: str) -> KeyRow:
        """Revoke a key for good and return it; a key that is revoked already stays as it is.

        This process refuses the key at once, others when their cached entry is too old. Raises NotFound.
        """

        async def write(tx: Transaction) -> Row | None:
            await tx.run("revoke_key", id=key_id, org_id=org_id, at_ms=self._clock.now_ms())
            return await tx.one("get_key", id=key_id, org_id=org_id)

        row = await self._store.write(write) if is_id(key_id, "key") else None
        if row is None:
            raise NotFound(f"No such key: {key_id}.")
        self._cache = {digest: entry for digest, entry in self._cache.items() if entry[1].key_id != key_id}
        return KeyRow(**row)

    async def get_record(self, caller: Caller) -> dict[str, Any]:
        """Return the key record of the key that a call was made with, and its scopes."""
        row = await self._store.one("get_key", id=caller.key_id, org_id=caller.org_id)
        if row is None:
            raise AuthenticationFailed
        return {**key_record(KeyRow(**row)), "scopes": sorted(caller.scopes)}

    async def get_org_id(self, key_id: str) -> str:
        """Return the organization of any key, for operators; raise NotFound."""
        row = await self._store.one("get_key_org", id=key_id) if is_id(key_id, "key") else None
        if row is None:
            raise NotFound(f"No such key: {key_id}.")
        return str(row["org_id"])

    async def list_records(
        self,
        org_id: str,
        limit: int = DEFAULT_LIMIT,
        starting_after: str | None = None,
        ending_before: str | None = None,
        status: str | None = None,
    ) -> Page:
        """Return one page of key records, newest first; with `status`, only keys of that status."""
        if status is not None and status not in KEY:
            raise InvalidRequest(f"`status` must be one of: {', '.join(KEY)}.", param="status")
        page = await self._pager.page(org_id, limit, starting_after, ending_before, status=status)
        return replace(page, data=[key_record(KeyRow(**row)) for row in page.data])

    async def list_all(self, org_id: str) -> list[KeyRow]:
        """Return every key, newest first."""
        return [KeyRow(**row) for row in await self._pager.all(org_id, status=None)]


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


# -------------------------------------------------------------------------------------------------- values of a new key

# These take any type, because the values may come from a JSON body.


def _checked_name(name: Any) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or len(name) > _MAX_NAME_CHARS or not name.isprintable():
        raise InvalidRequest(f"`name` must be at most {_MAX_NAME_CHARS} printable characters.", param="name")
    return name


def _checked_scopes(scopes: Any) -> str:
    """Return the scopes as stored: sorted and separated by spaces."""
    if not isinstance(scopes, list | tuple | set | frozenset) or any(scope not in SCOPES for scope in scopes):
        raise InvalidRequest(f"`scopes` must be a list; allowed are: {', '.join(SCOPES)}.", param="scopes")
    return " ".join(sorted(set(scopes)))


def _checked_count(name: str, count: Any) -> int | None:
    if count is None:
        return None
    if type(count) is not int or not 1 <= count <= _MAX_COUNT:
        raise InvalidRequest(f"`{name}` must be a whole number from 1 to {_MAX_COUNT}.", param=name)
    return count


def _checked_nanos_per_day(usd: Any) -> int | None:
    if usd is None:
        return None
    try:
        amount = nanos(usd)
        if not 0 <= amount < 2**63:
            raise ValueError
    except (ValueError, TypeError, ArithmeticError):
        message = '`usd_per_day` must be an amount in dollars such as "2.50".'
        raise InvalidRequest(message, param="usd_per_day") from None
    return amount


def _checked_replay_mode(mode: Any) -> str | None:
    if mode is None:
        return None
    if mode not in REPLAY_MODES:
        raise InvalidRequest(f"`replay_mode` must be one of: {', '.join(REPLAY_MODES)}.", param="replay_mode")
    return str(mode)
