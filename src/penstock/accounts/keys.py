"""Authenticate callers by API key; create, change, list and revoke keys."""

import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeGuard
from zlib import crc32

import msgspec

from penstock.accounts.aliases import decode_aliases
from penstock.accounts.key_records import (
    OPERATOR,
    KeyRow,
    KeyUsage,
    decode_models,
    granted_scopes,
    key_columns,
    key_facts,
    key_record,
)
from penstock.accounts.labels import budgeted_labels, decode_declared, decode_labels
from penstock.accounts.limits import day_start_ms, month_start_ms
from penstock.audit_log import Act, Note, changed, write_audited
from penstock.clock import Clock
from penstock.errors import AuthenticationFailed, Conflict, InvalidRequest, NotFound
from penstock.schema import SLOT_MS, Caller
from penstock.states import KEY
from penstock.store.base import Row, Store, Transaction
from penstock.store.paging import DEFAULT_LIMIT, Page, Pager
from penstock.store.related import read_related
from penstock.values import Nanos, OrgId, id_ms, is_id, new_id
from penstock.vault import Vault

# How long a key may still work after another process revoked it; the documentation promises 2 seconds.
_CACHE_SECONDS = 1.0
_MAX_CACHED = 10_000

_BEARER = "bearer "
_CHECKSUM_CHARS = 6
_KEY = re.compile(r"pk_[0-9a-z]{32}_[A-Za-z0-9_-]{43}[A-Za-z0-9_-]{6}")
_HEADER_CHARS = len(_BEARER) + len("pk_") + 32 + len("_") + 43 + _CHECKSUM_CHARS
_MORE_SPACES = 8
_TERMINAL_KEY_NAME = "command line"
_OPERATOR_KEY_NAME = "command line, operator"


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just created. The key itself is known only now; the store keeps a digest."""

    key: str = field(repr=False)  # so that it is not logged by accident
    row: KeyRow

    @property
    def id(self) -> str:
        return self.row.id


class CallerRow(msgspec.Struct, frozen=True, kw_only=True):
    """An active key, and the columns of its organization that its calls need."""

    key_id: str
    org_id: OrgId
    owner_id: str | None
    scopes: str
    requests_per_minute: int | None
    concurrent_requests: int | None
    nanos_per_day: int | None
    nanos_per_month: int | None
    models: str | None
    replay_mode: str | None
    image_response_format: str | None
    expires_at_ms: int | None
    billing: str
    org_nanos_per_month: int | None
    labels: str | None
    declared_labels: str | None
    label_budgets: str | None
    provenance: str | None
    model_aliases: str | None


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


def _may_have_key(authorization: str | None) -> TypeGuard[str]:
    """Whether an Authorization header has the length of one with a key; nothing else of a long one is looked at."""
    return authorization is not None and len(authorization) == _HEADER_CHARS and authorization.isascii()


def _with_one_space(authorization: str | None) -> str | None:
    """The header without the further spaces that HTTP allows between the scheme and the key; a long one as it is."""
    if authorization is None or not _HEADER_CHARS < len(authorization) <= _HEADER_CHARS + _MORE_SPACES:
        return authorization
    scheme, _, key = authorization.partition(" ")
    return f"{scheme} {key.strip(' ')}"


def _checksum(start: str) -> str:
    return urlsafe_b64encode(crc32(start.encode()).to_bytes(4)).decode()[:_CHECKSUM_CHARS]


# ---------------------------------------------------------------------------------------------------------------- keys


class Keys:
    """Authenticates callers and manages keys."""

    def __init__(self, store: Store, vault: Vault, clock: Clock) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self._pager = Pager(store, "key", "key", KeyRow)
        # Recent callers and until when they may be used, by a keyed digest of the whole header: the key itself is not
        # kept in memory. This digest takes a third of the time of the stored one.
        self._cache: dict[bytes, tuple[float, Caller]] = {}
        self._cache_secret = secrets.token_bytes(32)

    async def authenticate(self, authorization: str | None) -> Caller:
        """Return the caller of an Authorization header; raise the same AuthenticationFailed for every fault in it."""
        authorization = _with_one_space(authorization)
        if not _may_have_key(authorization):
            raise AuthenticationFailed
        digest, cached = self._find_cached(authorization)
        return cached or await self._read_caller(authorization, digest)

    def recent_caller(self, authorization: str | None) -> Caller | None:
        """Return the caller of an Authorization header if it was authenticated a moment ago, without waiting."""
        if not _may_have_key(authorization):
            authorization = _with_one_space(authorization)
        return self._find_cached(authorization)[1] if _may_have_key(authorization) else None

    def _find_cached(self, authorization: str) -> tuple[bytes, Caller | None]:
        """Return the digest of a header, and its caller if that may still be used."""
        digest = blake2b(authorization.encode(), key=self._cache_secret, digest_size=32).digest()
        cached = self._cache.get(digest)
        return digest, cached[1] if cached is not None and self._clock.monotonic() < cached[0] else None

    async def _read_caller(self, authorization: str, digest: bytes) -> Caller:
        key = authorization[len(_BEARER) :]
        if authorization[: len(_BEARER)].lower() != _BEARER or not is_well_formed(key):
            raise AuthenticationFailed
        # From before the read: a slow read must not let a key that is revoked meanwhile work for longer.
        until = self._clock.monotonic() + _CACHE_SECONDS
        found = await self._store.one("get_caller", digest=self._vault.digest_key(key))
        return self._remember(digest, None if found is None else CallerRow(**found), until)

    def _remember(self, digest: bytes, row: CallerRow | None, until: float) -> Caller:
        """The caller of a key, which is kept until then; raise AuthenticationFailed if it is not active."""
        now_ms = self._clock.now_ms()
        if row is None or (row.expires_at_ms is not None and row.expires_at_ms <= now_ms):
            self._cache.pop(digest, None)
            raise AuthenticationFailed
        if row.expires_at_ms is not None:
            until = min(until, self._clock.monotonic() + (row.expires_at_ms - now_ms) / 1000)
        if len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
        caller = caller_of(row)
        self._cache[digest] = (until, caller)
        return caller

    async def caller_of(self, org_id: OrgId, key_id: str) -> Caller:
        """Return the caller of a key for work that it ordered earlier; raise AuthenticationFailed if it is not active.

        It may have been read a second ago.
        """
        digest = key_id.encode()  # no header has this digest, which is longer or shorter
        until, cached = self._cache.get(digest, (0.0, None))
        if cached is None or self._clock.monotonic() >= until:
            until = self._clock.monotonic() + _CACHE_SECONDS
            found = await self._store.one("get_caller_of_key", id=key_id)
            cached = self._remember(digest, None if found is None else CallerRow(**found), until)
        if cached.org_id != org_id:
            raise AuthenticationFailed
        return cached

    async def create_key(
        self,
        org_id: OrgId,
        *,
        derived: bool = False,
        owner_id: str | None = None,
        check: Callable[[Transaction], Awaitable[None]] | None = None,
        **options: Any,
    ) -> NewKey:
        """Create a key with any of the options in `key_records.OPTIONS`; with `owner_id` it is that of a person.

        The secret of a `derived` key follows from its id and the master secret; that of any other key is random.
        `check` runs first in the transaction, and may raise. Raises InvalidRequest for a bad value and NotFound if
        there is no such organization.
        """
        at_ms = self._clock.now_ms()
        key_id = new_id("key", at_ms)
        key = key_text(key_id, self._vault.derive_key_secret(key_id)) if derived else generate_key(key_id)
        columns = {**_DEFAULT_COLUMNS, **key_columns(options)}
        row = KeyRow(id=key_id, last_four=key[-4:], status="active", created_at_ms=at_ms, revoked_at_ms=None, **columns)

        async def write(tx: Transaction, note: Note) -> None:
            if check is not None:
                await check(tx)
            if await tx.one("get_balance", org_id=org_id) is None:
                raise NotFound(f"No such organization: {org_id}.")
            await tx.run(
                "add_key",
                id=row.id,
                org_id=org_id,
                last_four=row.last_four,
                created_at_ms=row.created_at_ms,
                digest=self._vault.digest_key(key),
                user_id=owner_id,
                **columns,
            )
            owner = {"owner": owner_id} if owner_id else {}
            note(Act("key.created", row.id, org_id, after=key_facts(columns) | owner))

        await write_audited(self._store, at_ms, write, org_id=org_id)
        return NewKey(key, row)

    async def change_key(self, org_id: OrgId, key_id: str, options: Mapping[str, Any]) -> KeyRow:
        """Change the options that are given, and return the key. Other processes notice within two seconds.

        Raises InvalidRequest for a bad value, NotFound, and Conflict for a revoked key.
        """
        changes = key_columns(options)

        async def write(tx: Transaction, note: Note) -> KeyRow:
            await tx.one("lock_key", id=key_id)
            found = await tx.one("get_key", id=key_id, org_id=org_id)
            if found is None:
                raise NotFound(f"No such key: {key_id}.")
            row = KeyRow(**{**found, **changes})
            columns = {name: getattr(row, name) for name in _DEFAULT_COLUMNS if name != "scopes"}
            if not await tx.run("set_key", id=key_id, org_id=org_id, **columns):
                raise Conflict(f"{key_id} is revoked; it cannot be changed.", should_retry=False)
            note(changed("key.changed", key_id, org_id, key_facts(found), key_facts({**found, **changes})))
            return row

        row = await write_audited(self._store, self._clock.now_ms(), write)
        self._forget(key_id)
        return row

    async def ensure_terminal_key(self, org_id: OrgId, *, is_operator: bool = False) -> str:
        """Return the key that the owner of the data folder uses on the command line; create it if there is none.

        Commands about providers use another one, with the operator scope. Neither is stored: both follow from the
        master secret. Once one is revoked, another takes its place.
        """
        name = _OPERATOR_KEY_NAME if is_operator else _TERMINAL_KEY_NAME
        scopes = [OPERATOR] if is_operator else []
        for row in await self.list_all(org_id):
            if (row.name, row.scopes.split()) == (name, scopes) and row.status == "active":
                key = key_text(row.id, self._vault.derive_key_secret(row.id))
                if await self._store.one("get_caller", digest=self._vault.digest_key(key)) is not None:
                    return key
        return (await self.create_key(org_id, name=name, scopes=scopes, derived=True)).key

    async def revoke_key(self, org_id: OrgId, key_id: str) -> KeyRow:
        """Revoke a key for good and return it; a key that is revoked already stays as it is.

        This process refuses the key at once, others when their cached entry is too old. Raises NotFound.
        """

        at_ms = self._clock.now_ms()

        async def write(tx: Transaction, note: Note) -> Row | None:
            if await tx.run("revoke_key", id=key_id, org_id=org_id, at_ms=at_ms):
                note(Act("key.revoked", key_id, org_id))
            return await tx.one("get_key", id=key_id, org_id=org_id)

        row = await write_audited(self._store, at_ms, write) if is_id(key_id, "key") else None
        if row is None:
            raise NotFound(f"No such key: {key_id}.")
        self._forget(key_id)
        return KeyRow(**row)

    def _forget(self, key_id: str) -> None:
        """Read a key again when it is used next."""
        self._cache = {digest: entry for digest, entry in self._cache.items() if entry[1].key_id != key_id}

    def forget_owner(self, user_id: str) -> None:
        """Read the keys of a person again when they are used next."""
        self._cache = {digest: entry for digest, entry in self._cache.items() if entry[1].owner_id != user_id}

    def forget_org(self, org_id: OrgId) -> None:
        """Read the keys of an organization again when they are used next."""
        self._cache = {digest: entry for digest, entry in self._cache.items() if entry[1].org_id != org_id}

    async def get_record(self, caller: Caller) -> dict[str, Any]:
        """Return the record of the key that a call was made with; raise AuthenticationFailed if it is gone."""
        row = await self._store.one("get_key", id=caller.key_id, org_id=caller.org_id)
        if row is None:
            raise AuthenticationFailed
        return (await self.records(caller.org_id, [KeyRow(**row)]))[0]

    async def get_record_of(self, org_id: OrgId, key_id: str) -> dict[str, Any]:
        """Return the record of one key; raise NotFound."""
        row = await self._store.one("get_key", id=key_id, org_id=org_id)
        if row is None:
            raise NotFound(f"No such key: {key_id}.")
        return (await self.records(org_id, [KeyRow(**row)]))[0]

    async def records(self, org_id: OrgId, rows: Sequence[KeyRow]) -> list[dict[str, Any]]:
        """Return the records of keys of an organization, with what they have used of their limits."""
        now_ms = self._clock.now_ms()
        slots = {"day": day_start_ms(now_ms) // SLOT_MS, "month": month_start_ms(now_ms) // SLOT_MS}
        sums = await read_related(self._store, "sum_usage_of_keys", [row.id for row in rows], org_id=org_id, **slots)
        usage = {
            found["id"]: KeyUsage(
                None if found["last_id"] is None else id_ms(found["last_id"]),
                Nanos(int(found["today"])),
                Nanos(int(found["this_month"])),
            )
            for found in sums
        }
        return [key_record(row, usage[row.id]) for row in rows]

    async def get_org_id(self, key_id: str) -> OrgId:
        """Return the organization of any key, for operators; raise NotFound."""
        row = await self._store.one("get_key_org", id=key_id) if is_id(key_id, "key") else None
        if row is None:
            raise NotFound(f"No such key: {key_id}.")
        return OrgId(row["org_id"])

    async def list_records(
        self,
        org_id: OrgId,
        limit: int = DEFAULT_LIMIT,
        starting_after: str | None = None,
        ending_before: str | None = None,
        status: str | None = None,
    ) -> Page[dict[str, Any]]:
        """Return one page of key records, newest first; with `status`, only keys of that status."""
        if status is not None and status not in KEY:
            raise InvalidRequest(f"`status` must be one of: {', '.join(KEY)}.", param="status")
        page = await self._pager.page(org_id, limit, starting_after, ending_before, status=status)
        return page.with_data(await self.records(org_id, page.data))

    async def list_all(self, org_id: OrgId) -> list[KeyRow]:
        """Return every key, newest first."""
        return await self._pager.all(org_id, status=None)


def caller_of(row: CallerRow) -> Caller:
    declared = decode_declared(row.declared_labels)
    return Caller(
        org_id=row.org_id,
        key_id=row.key_id,
        owner_id=row.owner_id,
        scopes=granted_scopes(row.scopes),
        prepaid=row.billing == "prepaid",
        requests_per_minute=row.requests_per_minute,
        concurrent_requests=row.concurrent_requests,
        nanos_per_day=row.nanos_per_day,
        nanos_per_month=row.nanos_per_month,
        org_nanos_per_month=row.org_nanos_per_month,
        models=None if (models := decode_models(row.models)) is None else tuple(models),
        replay_mode=row.replay_mode,
        image_response_format=row.image_response_format,
        labels=decode_labels(row.labels),
        declared_labels=declared,
        budgeted_labels=budgeted_labels(declared, row.label_budgets),
        provenance=row.provenance,
        model_aliases=decode_aliases(row.model_aliases),
    )


_DEFAULT_COLUMNS: Row = {
    "name": None,
    "scopes": "",
    "requests_per_minute": None,
    "concurrent_requests": None,
    "nanos_per_day": None,
    "nanos_per_month": None,
    "models": None,
    "replay_mode": None,
    "image_response_format": None,
    "expires_at_ms": None,
    "labels": None,
}
