"""The audit log: who changed what, written in the transaction of the change, in a chain of hashes.

The hash of an event is the SHA-256 of the hash before it and its JSON. So an event that is changed, removed or inserted
later does not fit, and whoever has kept a hash knows that everything up to that event is as it was.
"""

import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from penstock.store.base import Row, Store, Transaction
from penstock.values import OrgId, iso

T = TypeVar("T")
EVERYTHING = OrgId("operator")  # stands for all organizations
HEAD_SECONDS = 86_400.0  # how often the end of the chain is written to the log
NO_HASH = "0" * 64  # before the first event
_log = logging.getLogger(__name__)
_HEAD = "head"
_PREFIX = "aud_"
_DIGITS = 32
_ROWS_AT_ONCE = 500
_encode = msgspec.json.Encoder(order="sorted").encode


class Actor(NamedTuple):
    """Who acts: a key, a command, or the gateway itself."""

    name: str
    address: str | None = None  # of a caller
    request_id: str | None = None


GATEWAY = Actor("gateway")
_ACTOR: ContextVar[Actor] = ContextVar("actor", default=GATEWAY)


def act_as(actor: Actor) -> None:
    """Say who acts from now on, in this task and those that it starts."""
    _ACTOR.set(actor)


class Once(Protocol):
    """A call that has an idempotency key: its changes are made once."""

    async def claim(self, tx: Transaction) -> None:
        """Give the key to this call; raise if another call has it."""

    async def note(self, tx: Transaction, target: str) -> None:
        """Note what the call has made or changed."""


_ONCE: ContextVar[Once | None] = ContextVar("once", default=None)


@contextmanager
def acting_once(once: Once) -> Iterator[None]:
    """Claim the key of this call in the transaction of the first change that is made meanwhile."""
    token = _ONCE.set(once)
    try:
        yield
    finally:
        _ONCE.reset(token)


class Act(NamedTuple):
    """What is done to what. `before` and `after` have the values that differ, and never a secret."""

    action: str
    target: str
    org_id: OrgId | None = None  # None: to the whole installation
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


def changed(action: str, target: str, org_id: OrgId | None, before: Mapping[str, Any], after: Mapping[str, Any]) -> Act:
    """An act that changes values, with those that differ."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return Act(
        action,
        target,
        org_id,
        {name: before.get(name) for name in names},
        {name: after.get(name) for name in names},
    )


Note = Callable[[Act], None]


async def write_audited(
    store: Store, at_ms: int, work: Callable[[Transaction, Note], Awaitable[T]], *, org_id: OrgId | None = None
) -> T:
    """Run `work` in a transaction, as `Store.write` does; what it notes is added to the audit log by the same one.

    All such transactions run one after another, because each locks the end of the chain first.
    """
    actor = _ACTOR.get()  # the work itself may run in another task
    once = _ONCE.get()

    async def write(tx: Transaction) -> T:
        if once is not None:
            await once.claim(tx)
        head = await tx.one("lock_audit_head", id=_HEAD, first_id=_event_id(0), first_hash=NO_HASH)
        assert head is not None, "the statement returns the row that it inserts or locks"
        acts: list[Act] = []
        result = await work(tx, acts.append)
        last_id, last_hash = head["last_id"], head["hash"]
        for act in acts:
            row = _event_row(act, actor, at_ms, last_id, last_hash)
            await tx.put("add_audit_event", **row)
            last_id, last_hash = row["id"], row["hash"]
        if acts:
            await tx.put("set_audit_head", id=_HEAD, last_id=last_id, hash=last_hash)
        if acts and once is not None:
            await once.note(tx, acts[0].target)
        return result

    return await store.write(write, org_id=org_id)


async def note_act(store: Store, at_ms: int, act: Act) -> None:
    """Add an act that changes nothing in the database, such as an export."""

    async def work(tx: Transaction, note: Note) -> None:
        note(act)

    await write_audited(store, at_ms, work)


def _event_id(number: int) -> str:
    return f"{_PREFIX}{number:0{_DIGITS}}"


def _event_row(act: Act, actor: Actor, at_ms: int, last_id: str, last_hash: str) -> Row:
    event_id = _event_id(int(last_id.removeprefix(_PREFIX)) + 1)
    event = {
        "id": event_id,
        "object": "audit_event",
        "created_at": iso(at_ms),
        "actor": actor.name,
        "address": actor.address,
        "request_id": actor.request_id,
        "action": act.action,
        "target": act.target,
        "org_id": act.org_id,
        "before": act.before,
        "after": act.after,
    }
    body = _encode(event).decode()
    return {
        "id": event_id,
        "org_id": act.org_id,
        "at_ms": at_ms,
        "actor": actor.name,
        "action": act.action,
        "target": act.target,
        "body": body,
        "previous": last_hash,
        "hash": _hash(last_hash, body),
    }


def _hash(previous: str, body: str) -> str:
    return hashlib.sha256((previous + body).encode()).hexdigest()


# ------------------------------------------------------------------------------------------------------------- reading


class EventRow(msgspec.Struct, frozen=True):
    """An event as it is stored."""

    id: str
    body: str
    previous: str
    hash: str

    def record(self) -> dict[str, Any]:
        """The event as the API shows it: what is hashed, and the two hashes."""
        return {**msgspec.json.decode(self.body), "previous": self.previous, "hash": self.hash}


async def read_head(store: Store) -> dict[str, str | None]:
    """The id and the hash of the last event; null and zeros before the first one."""
    row = await store.one("get_audit_head", id=_HEAD)
    return {"id": row["last_id"], "hash": row["hash"]} if row else {"id": None, "hash": NO_HASH}


async def log_head(store: Store) -> None:
    """Write the end of the chain to the log, whose copies then prove what was in it."""
    head = await read_head(store)
    _log.info("the audit log ends with %s, hash %s", head["id"], head["hash"])


async def read_events(store: Store, org_id: OrgId, **filters: Any) -> AsyncIterator[EventRow]:
    """All events of an organization, or of EVERYTHING, that match the filters, oldest first."""
    low = _event_id(0)
    while True:
        rows = await store.slow(
            "list_newer_audit_events", org_id=org_id, low=low, high=f"{_PREFIX}~", limit=_ROWS_AT_ONCE, **filters
        )
        for row in rows:
            yield EventRow(**row)
        if len(rows) < _ROWS_AT_ONCE:
            return
        low = rows[-1]["id"]


# ------------------------------------------------------------------------------------------------------------ checking


class Verdict(NamedTuple):
    """Whether the chain holds: how many events there are, the last hash, and the first problem."""

    events: int
    head: str
    problem: str | None


async def verify_chain(store: Store, known_head: str | None = None) -> Verdict:
    """Compute the chain again. With `known_head`, a hash that was kept elsewhere, check that it is in the chain too."""
    head = await read_head(store)  # before the events: further ones may come meanwhile
    head_id = head["id"] or _event_id(0)
    count, last, found_known = 0, NO_HASH, known_head in (None, NO_HASH)
    while rows := await store.slow("list_chained_events", low=_event_id(count), limit=_ROWS_AT_ONCE):
        for row in rows:
            problem = _problem(row, _event_id(count + 1), last)
            if problem is None and row["id"] == head_id and row["hash"] != head["hash"]:
                problem = f"{head_id} is not the event that was added last"
            if problem:
                return Verdict(count, last, problem)
            count, last = count + 1, row["hash"]
            found_known = found_known or last == known_head
    if _event_id(count) < head_id:
        return Verdict(count, last, f"the chain ends with {_event_id(count)}, but {head_id} was added")
    if not found_known:
        return Verdict(count, last, f"no event has the hash {str(known_head)[: len(NO_HASH)]}")
    return Verdict(count, last, None)


def _problem(row: Row, expected_id: str, previous: str) -> str | None:
    if row["id"] != expected_id:
        return f"{expected_id} is missing"
    if row["previous"] != previous or row["hash"] != _hash(row["previous"], row["body"]):
        return f"{row['id']} was changed"
    event = msgspec.json.decode(row["body"])
    columns = {name: row[name] for name in ("id", "org_id", "actor", "action", "target")}
    if columns != {name: event.get(name) for name in columns} or iso(row["at_ms"]) != event.get("created_at"):
        return f"{row['id']} was changed: a column differs from the event"
    return None
