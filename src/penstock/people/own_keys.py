"""Keys that people make for themselves: within limits that an admin sets, and gone with the person."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from penstock.accounts.key_records import KeyRow, key_columns
from penstock.accounts.keys import Keys, NewKey
from penstock.audit_log import Act, Note, changed, write_audited
from penstock.clock import Clock
from penstock.errors import Conflict, InvalidRequest, NotFound, PermissionDenied, quoted
from penstock.people.configured import EVERYWHERE
from penstock.store.base import Row, Store, Transaction
from penstock.values import DAY_MS, Nanos, OrgId, dollars, iso

OPTIONS = (
    "name", "requests_per_minute", "concurrent_requests", "usd_per_day", "usd_per_month", "models", "expires_at",
    "replay_mode", "image_response_format",
)  # fmt: skip
MAKERS = ("member", "admin", "operator")  # roles that may make keys
MAX_KEYS = 100
MAX_DAYS = 3650
_MAX_SHOWN = 10
_AMOUNTS = {"usd_per_day": "nanos_per_day", "usd_per_month": "nanos_per_month"}
_COUNTS = ("requests_per_minute", "concurrent_requests")


class OwnKeyLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many keys each person may have in an organization, for how long, and what each of them may do at most."""

    keys: int = 10  # 0: people make no keys
    days: int = 90
    requests_per_minute: int | None = None
    concurrent_requests: int | None = None
    nanos_per_day: Nanos | None = None
    nanos_per_month: Nanos | None = None
    models: tuple[str, ...] | None = None

    def record(self) -> dict[str, Any]:
        amounts = {name: getattr(self, column) for name, column in _AMOUNTS.items()}
        return {
            "object": "own_key_limits",
            "keys": self.keys,
            "days": self.days,
            **{name: getattr(self, name) for name in _COUNTS},
            **{name: None if amount is None else dollars(amount) for name, amount in amounts.items()},
            "models": self.models,
        }

    def bounded(self, options: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
        """The options of a new key: where the person names no limit, this one counts.

        Raises InvalidRequest for a higher limit, a later end, and models that are not allowed.
        """
        columns = key_columns(options)
        for name in (*_COUNTS, *_AMOUNTS):
            limit, wish = getattr(self, _AMOUNTS.get(name, name)), columns.get(_AMOUNTS.get(name, name))
            if limit is not None and wish is not None and wish > limit:
                most = f"{dollars(limit):f} USD" if name in _AMOUNTS else str(limit)
                raise _above(name, f"at most {most}")
        until_ms = now_ms + self.days * DAY_MS
        if (columns.get("expires_at_ms") or 0) > until_ms:
            raise _above("expires_at", f"{iso(until_ms)} or earlier")
        for model in options.get("models") or ():
            if self.models is not None and not any(_covers(allowed, model) for allowed in self.models):
                raise _above("models", f"some of {quoted(self.models[:_MAX_SHOWN])}")
        mine = {name: getattr(self, name) for name in (*_COUNTS, "models")}
        mine |= {
            name: None if (limit := getattr(self, column)) is None else dollars(limit)
            for name, column in _AMOUNTS.items()
        }
        mine["expires_at"] = iso(until_ms)
        return {**mine, **{name: value for name, value in options.items() if value is not None}}


def checked_limits(fields: Mapping[str, Any]) -> OwnKeyLimits:
    """Limits from the values of a body or a command; raise InvalidRequest for a bad one. Keys are limited as before
    where a value is absent, and not at all where it is null.
    """
    values = {name: value for name, value in fields.items() if value is not None}
    for name, low, high in (("keys", 0, MAX_KEYS), ("days", 1, MAX_DAYS)):
        if name in values and not (type(values[name]) is int and low <= values[name] <= high):
            raise InvalidRequest(f"`{name}` must be a whole number from {low} to {high}.", param=name)
    columns = key_columns({name: values[name] for name in (*_COUNTS, *_AMOUNTS, "models") if name in values})
    models = columns.pop("models", None)
    return OwnKeyLimits(
        **{name: values[name] for name in ("keys", "days") if name in values},
        **columns,
        models=None if models is None else msgspec.json.decode(models, type=tuple[str, ...]),
    )


def _above(name: str, allowed: str) -> InvalidRequest:
    return InvalidRequest(f"`{name}` must be {allowed}: so your organization limits keys of people.", param=name)


def _covers(allowed: str, model: str) -> bool:
    """Whether a model, or all models whose ids begin so, are among those that are allowed."""
    return model == allowed or (allowed.endswith("*") and model.removesuffix("*").startswith(allowed[:-1]))


class OwnKeys:
    """Makes, lists and ends keys of people, and keeps their limits."""

    def __init__(self, store: Store, clock: Clock, keys: Keys) -> None:
        self._store = store
        self._clock = clock
        self._keys = keys

    async def limits(self, org_id: OrgId) -> OwnKeyLimits:
        """The limits of an organization, or those that it has unless it sets others. Raises NotFound."""
        return await _read_limits(self._store, org_id)

    async def set_limits(self, org_id: OrgId, limits: OwnKeyLimits) -> None:
        """Limit the keys that people make from now on; those that there are stay as they are."""

        async def work(tx: Transaction, note: Note) -> None:
            former = await _read_limits(tx, org_id)
            await tx.run("set_own_key_limits", id=org_id, limits=msgspec.json.encode(limits).decode())
            note(changed("own_key_limits.set", org_id, org_id, _facts(former), _facts(limits)))

        await write_audited(self._store, self._clock.now_ms(), work)

    async def create(self, user_id: str, org_id: OrgId, options: Mapping[str, Any]) -> NewKey:
        """Make a key of a person, without scopes.

        Raises InvalidRequest for a value that is above the limits, PermissionDenied if the person's role allows none,
        and Conflict if the person has as many as allowed.
        """
        limits = await self.limits(org_id)
        bounded = limits.bounded(options, self._clock.now_ms())

        async def check(tx: Transaction) -> None:
            person = await tx.one("lock_user_by_id", id=user_id)
            roles = {row["org_id"]: row["role"] for row in await tx.all("list_memberships", user_id=user_id)}
            if person is None or person["status"] != "active" or _role(roles, org_id) not in MAKERS or not limits.keys:
                raise PermissionDenied("Your role does not allow keys of your own, or your organization has none.")
            row = await tx.one("count_own_keys", user_id=user_id, org_id=org_id, now_ms=self._clock.now_ms())
            if row and row["count"] >= limits.keys:
                message = f"You have {row['count']} keys, as many as your organization allows. Revoke one first."
                raise Conflict(message, should_retry=False)

        return await self._keys.create_key(org_id, owner_id=user_id, check=check, **bounded)

    async def list_records(self, user_id: str, org_id: OrgId) -> list[dict[str, Any]]:
        """A person's active keys in an organization, newest first."""
        rows = await self._store.all("list_own_keys", user_id=user_id, org_id=org_id, limit=MAX_KEYS)
        return await self._keys.records(org_id, [KeyRow(**row) for row in rows])

    async def revoke(self, user_id: str, org_id: OrgId, key_id: str) -> dict[str, Any]:
        """Revoke a key of a person and return its record; raise NotFound for any other key."""
        rows = await self._store.all("list_own_keys", user_id=user_id, org_id=org_id, limit=MAX_KEYS)
        if key_id not in {row["id"] for row in rows}:
            raise NotFound(f"No such key of yours: {key_id}.")
        row = await self._keys.revoke_key(org_id, key_id)
        return (await self._keys.records(org_id, [row]))[0]


async def revoke_own_keys(tx: Transaction, note: Note, keys: Iterable[Row], at_ms: int) -> None:
    """Revoke keys of people, in the transaction in which the reason is written."""
    for key in sorted(keys, key=lambda key: str(key["id"])):
        if await tx.run("revoke_key", id=key["id"], org_id=key["org_id"], at_ms=at_ms):
            note(Act("key.revoked", key["id"], key["org_id"], after={"owner": key["user_id"]}))


async def _read_limits(store: Store | Transaction, org_id: OrgId) -> OwnKeyLimits:
    row = await store.one("get_own_key_limits", id=org_id)
    if row is None:
        raise NotFound(f"No such organization: {org_id}.")
    stored = row["own_key_limits"]
    return OwnKeyLimits() if stored is None else msgspec.json.decode(stored, type=OwnKeyLimits)


def _role(roles: Mapping[str, str], org_id: OrgId) -> str | None:
    return roles.get(EVERYWHERE) or roles.get(org_id)


def _facts(limits: OwnKeyLimits) -> dict[str, Any]:
    """The limits for the audit log, where amounts are texts."""
    facts = {name: value for name, value in limits.record().items() if name != "object"}
    return facts | {name: None if facts[name] is None else f"{facts[name]:f}" for name in _AMOUNTS}
