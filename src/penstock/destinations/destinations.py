"""The destinations of organizations: read from the store, changed by admins, and checked by a real file."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from penstock.audit_log import Act, Note, changed, write_audited
from penstock.clock import Clock
from penstock.destinations.bucket import BucketClient, BucketFailed, Probe
from penstock.destinations.places import DEFAULT_PATH, DEFAULT_REGION, Place, check_path, read_place
from penstock.destinations.signature import Keys
from penstock.errors import Conflict, InvalidRequest, NotFound
from penstock.net.checked_urls import EgressRules, egress_rules
from penstock.net.client import HttpClient
from penstock.settings import Settings
from penstock.store.base import Row, Store, Transaction
from penstock.values import OrgId, is_id, iso, new_id
from penstock.vault import Vault

MAX_PER_ORG = 20
MAX_NAME_CHARS = 100
MAX_KEY_CHARS = 256
_CHANGED = "destinations changed"  # the fact that each change sets anew
_COLUMNS = {"name": "name", "path": "path", "default": "is_default", "required": "is_required"}
_PREFIX = "dst"
_LAST = 4


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket of an organization, and how files are written into it."""

    id: str
    org_id: OrgId
    name: str
    place: Place
    keys: Keys
    path: str
    last_four: str
    is_default: bool
    is_required: bool
    version: int
    created_at_ms: int
    failure: str | None = None
    failed_at_ms: int | None = None

    @property
    def url(self) -> str:
        return self.place.shown_url("").rstrip("/")


class Destinations:
    """The destinations of this installation, as this process knows them."""

    def __init__(self, store: Store, vault: Vault, clock: Clock, client: HttpClient, egress: EgressRules) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self._egress = egress
        self.buckets = BucketClient(client, egress, clock)
        self._by_id: dict[str, Destination] = {}
        self._defaults: dict[OrgId, Destination] = {}
        self._seen: str | None = None

    # ----------------------------------------------------------------------------------------------------- reading

    async def refresh(self) -> None:
        """Read the destinations again if somebody has changed them."""
        row = await self._store.one("get_fact", name=_CHANGED)
        seen = row["value"] if row else None
        if seen == self._seen:
            return
        found = [self._opened(row) for row in await self._store.slow("list_destinations")]
        self._by_id = {destination.id: destination for destination in found}
        self._defaults = {destination.org_id: destination for destination in found if destination.is_default}
        self._seen = seen

    def get(self, org_id: OrgId, destination_id: str) -> Destination:
        """Raises NotFound, also for a destination of another organization."""
        found = self._by_id.get(destination_id)
        if found is None or found.org_id != org_id:
            raise _no_such(destination_id)
        return found

    def default_of(self, org_id: OrgId) -> Destination | None:
        """The destination of calls that name none."""
        return self._defaults.get(org_id)

    def list_records(self, org_id: OrgId) -> list[dict[str, Any]]:
        return [_record(destination) for destination in self._by_id.values() if destination.org_id == org_id]

    def _opened(self, row: Row) -> Destination:
        bucket, _, prefix = row["url"].removeprefix("s3://").partition("/")
        keys = self._vault.open(row["secret"], row["id"]).decode().split("\n")
        return Destination(
            id=row["id"],
            org_id=row["org_id"],
            name=row["name"],
            place=Place(bucket, prefix, row["region"], row["endpoint"]),
            keys=Keys(*keys),
            path=row["path"],
            last_four=row["last_four"],
            is_default=bool(row["is_default"]),
            is_required=bool(row["is_required"]),
            version=row["version"],
            created_at_ms=row["created_at_ms"],
            failure=row["failure"],
            failed_at_ms=row["failed_at_ms"],
        )

    # ---------------------------------------------------------------------------------------------------- changing

    async def add(self, org_id: OrgId, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Add a destination, after a file was written into it. Raises InvalidRequest or Conflict."""
        place = read_place(
            fields["url"], fields.get("region") or DEFAULT_REGION, fields.get("endpoint") or "", self._egress
        )
        values = {"name": "", "path": DEFAULT_PATH, "default": False, "required": False, **fields}
        columns = _columns({name: values[name] for name in _COLUMNS})
        destination_id = new_id(_PREFIX, at_ms := self._clock.now_ms())
        keys, secret = self._sealed(destination_id, fields)
        probe = await self._probe(place, keys, org_id, "url")
        url = f"s3://{place.bucket}/{place.prefix}".rstrip("/")
        row = {"url": url, "region": place.region, "endpoint": place.endpoint, **columns}

        async def write(tx: Transaction, note: Note) -> None:
            await self._touch(tx)
            others = await tx.all("lock_destinations", org_id=org_id)
            if len(others) >= MAX_PER_ORG:
                message = f"An organization has {MAX_PER_ORG} destinations at most."
                raise Conflict(message, should_retry=False)
            if row["is_default"]:
                await _end_default(tx, others)
            await tx.run("add_destination", id=destination_id, org_id=org_id, created_at_ms=at_ms, **row, **secret)
            facts = {**row, "last_four": secret["last_four"]}
            note(Act("destination.added", destination_id, org_id, after=facts))

        await write_audited(self._store, at_ms, write)
        await self.refresh()
        return {**_record(self.get(org_id, destination_id)), "check": _shown(probe)}

    async def change(self, org_id: OrgId, destination_id: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Change what is given; raise NotFound or InvalidRequest."""
        changes = _columns(fields)

        async def write(tx: Transaction, note: Note) -> None:
            await self._touch(tx)
            rows = {row["id"]: row for row in await tx.all("lock_destinations", org_id=org_id)}
            row = rows.pop(destination_id, None)
            if row is None:
                raise _no_such(destination_id)
            if changes.get("is_default"):
                await _end_default(tx, rows.values())
            before = {name: row[name] for name in _COLUMNS.values()}
            await tx.run("set_destination", id=destination_id, **{**before, **changes})
            note(changed("destination.changed", destination_id, org_id, before, {**before, **changes}))

        await write_audited(self._store, self._clock.now_ms(), write)
        await self.refresh()
        return _record(self.get(org_id, destination_id))

    async def rotate(self, org_id: OrgId, destination_id: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the keys, after a file was written with the new ones. Raises NotFound or InvalidRequest."""
        place = self.get(org_id, destination_id).place
        keys, secret = self._sealed(destination_id, fields)
        probe = await self._probe(place, keys, org_id, "secret_access_key")

        async def write(tx: Transaction, note: Note) -> None:
            await self._touch(tx)
            if not await tx.run("rotate_destination", id=destination_id, org_id=org_id, **secret):
                raise _no_such(destination_id)
            after = {"keys": "changed", "last_four": secret["last_four"]}
            note(Act("destination.rotated", destination_id, org_id, after=after))

        await write_audited(self._store, self._clock.now_ms(), write)
        await self.refresh()
        return {**_record(self.get(org_id, destination_id)), "check": _shown(probe)}

    async def delete(self, org_id: OrgId, destination_id: str) -> None:
        """Delete a destination with its keys; raise NotFound. What was copied stays."""

        async def write(tx: Transaction, note: Note) -> None:
            await self._touch(tx)
            if not await tx.run("delete_destination", id=destination_id, org_id=org_id):
                raise _no_such(destination_id)
            note(Act("destination.deleted", destination_id, org_id, after={"keys": "erased"}))

        await write_audited(self._store, self._clock.now_ms(), write)
        await self.refresh()

    # ---------------------------------------------------------------------------------------------------- checking

    async def check(self, org_id: OrgId, destination_id: str) -> dict[str, Any]:
        """Write a small file, read it and delete it; return the record with how that went. Raises NotFound."""
        destination = self.get(org_id, destination_id)
        try:
            result = _shown(await self.buckets.probe(destination.place, destination.keys, org_id))
            await self.note_result(destination, None)
        except BucketFailed as problem:
            result = {"works": False, "can_read": False, "can_delete": False, "message": f"{problem}."}
            await self.note_result(destination, str(problem))
        return {**_record(self.get(org_id, destination_id)), "check": result}

    async def note_result(self, destination: Destination, failure: str | None) -> None:
        """Note why a file could not be copied into a destination, or that one could."""
        if failure == self._by_id.get(destination.id, destination).failure:
            return
        failed_at_ms = None if failure is None else self._clock.now_ms()
        work = partial(self._set_failure, destination, failure, failed_at_ms)
        await self._store.write(work)
        await self.refresh()

    async def _set_failure(
        self, destination: Destination, failure: str | None, failed_at_ms: int | None, tx: Transaction
    ) -> None:
        await self._touch(tx)
        values = {"id": destination.id, "version": destination.version}
        await tx.run("set_destination_failure", **values, failure=failure, failed_at_ms=failed_at_ms)

    async def _probe(self, place: Place, keys: Keys, org_id: OrgId, param: str) -> Probe:
        try:
            return await self.buckets.probe(place, keys, org_id)
        except BucketFailed as problem:
            raise InvalidRequest(f"No file could be written into the bucket: {problem}.", param=param) from None

    async def _touch(self, tx: Transaction) -> None:
        """Let every process notice that something changes."""
        await tx.run("set_fact", name=_CHANGED, value=new_id("chg", self._clock.now_ms()))

    def _sealed(self, destination_id: str, fields: Mapping[str, Any]) -> tuple[Keys, Row]:
        """The keys, and the columns with them."""
        keys = Keys(fields["access_key_id"], fields["secret_access_key"])
        for name, value in keys._asdict().items():
            if not value.isascii() or not value.isprintable() or " " in value:
                raise InvalidRequest(f"`{name}` must be ASCII without spaces.", param=name)
        secret = self._vault.seal("\n".join(keys).encode(), destination_id)
        last_four = keys.access_key_id[-_LAST:] if len(keys.access_key_id) >= 4 * _LAST else ""
        return keys, {"secret": secret, "last_four": last_four}


async def open_destinations(
    store: Store, vault: Vault, clock: Clock, client: HttpClient, settings: Settings
) -> Destinations:
    """The destinations as they are stored now."""
    destinations = Destinations(store, vault, clock, client, egress_rules(settings))
    await destinations.refresh()
    return destinations


async def _end_default(tx: Transaction, rows: Any) -> None:
    """Another destination becomes that of calls that name none."""
    for row in rows:
        if row["is_default"]:
            columns = {name: row[name] for name in _COLUMNS.values()}
            await tx.run("set_destination", id=row["id"], **{**columns, "is_default": 0})


def _columns(fields: Mapping[str, Any]) -> Row:
    """The columns of the fields that are given, checked; null stands for the value of a new destination."""
    columns: Row = {}
    if "name" in fields:
        columns["name"] = name = fields["name"] or ""
        if not name.isprintable():
            raise InvalidRequest("`name` must be printable.", param="name")
    if "path" in fields:
        columns["path"] = check_path(fields["path"] or DEFAULT_PATH, "path")
    for field in ("default", "required"):
        if field in fields:
            columns[_COLUMNS[field]] = int(bool(fields[field]))
    return columns


def _record(destination: Destination) -> dict[str, Any]:
    place = destination.place
    return {
        "id": destination.id,
        "object": "destination",
        "name": destination.name,
        "url": destination.url,
        "region": place.region,
        "endpoint": place.endpoint or None,
        "path": destination.path,
        "default": destination.is_default,
        "required": destination.is_required,
        "last_four": destination.last_four,
        "version": destination.version,
        "failure": destination.failure,
        "failed_at": None if destination.failed_at_ms is None else iso(destination.failed_at_ms),
        "created_at": iso(destination.created_at_ms),
    }


def _shown(probe: Probe) -> dict[str, Any]:
    message = None
    if not probe.can_delete:
        message = "The file of the check could not be deleted: the keys may only write."
    return {"works": True, "can_read": probe.can_read, "can_delete": probe.can_delete, "message": message}


def _no_such(destination_id: str) -> NotFound:
    shown = destination_id[:64] if is_id(destination_id, _PREFIX) else "it is not an id"
    return NotFound(f"No such destination: {shown}.")
