"""Rows that wait in batches at providers: held for together, found again after a crash, and ended one by one."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from penstock.accounts.chat_reservations import Reservation
from penstock.accounts.request_records import RequestRow
from penstock.batches.records import BatchRecord, PendingRow
from penstock.batches.row_checks import row_call
from penstock.batches.row_runs import row_end, store_row_end
from penstock.chat.batched import BatchedChat, end_batched, give_up_batched, provider_fields
from penstock.errors import AuthenticationFailed, Cancelled, StorageUnavailable, UpstreamOutcomeUnknown
from penstock.gateway import Gateway
from penstock.schema import Call, Caller, PlannedCandidate
from penstock.store.base import Row, Store, Transaction
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import Failure
from penstock.upstream.vendor_batches import Answers, unanswered
from penstock.values import DAY_MS, OrgId, new_id

PREFIX = "vbt"
_LEASE_MS = 30 * DAY_MS  # longer than providers keep answers: then the holds of rows that nobody ended are released


class VendorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table `vendor_batches` that has not ended."""

    id: str
    batch_id: str
    org_id: OrgId
    provider: str
    model: str
    upstream_model: str
    account_id: str | None
    fee_percent: int | None
    held: int
    rows_total: int
    created_at_ms: int
    file_id: str | None = None
    upstream_id: str | None = None


class BatchedRow(NamedTuple):
    """A row that is to go with a batch of a provider."""

    row: PendingRow
    chat: BatchedChat


class RowTaken(Exception):
    """Another process has begun a row."""


async def hold_rows(gateway: Gateway, batch: BatchRecord, rows: Sequence[BatchedRow]) -> VendorRecord:
    """Hold for rows of one candidate, and note in the same transaction that they go with a new batch at its provider.

    Raises InsufficientBalance, RateLimited and RowTaken, and then nothing has changed.
    """
    now_ms = gateway.clock.now_ms()
    candidate = rows[0].chat.candidate
    record = VendorRecord(
        id=new_id(PREFIX, now_ms),
        batch_id=batch.id,
        org_id=batch.org_id,
        provider=candidate.provider.slug,
        model=candidate.model.id,
        upstream_model=candidate.model.upstream,
        account_id=candidate.account_id or None,
        fee_percent=candidate.fee_percent,
        held=sum(row.row.hold for row in rows),
        rows_total=len(rows),
        created_at_ms=now_ms,
    )
    lease = {"id": record.id, "until_ms": gateway.clock.steady_ms() + _LEASE_MS}
    await gateway.store.write(lambda tx: tx.run("renew_process", **lease))
    reservations = [
        Reservation(chat.call, chat.request, chat.amount, None, in_store=True, lease_id=record.id) for _, chat in rows
    ]
    await gateway.unsettled_money.accept(
        batch.org_id,
        partial(gateway.chat_reservations.hold_together, reservations, partial(_take_rows, record, rows)),
    )
    return record


async def _take_rows(record: VendorRecord, rows: Sequence[BatchedRow], tx: Transaction) -> None:
    values = {name: value for name, value in msgspec.structs.asdict(record).items() if name not in _LATER}
    await tx.run("add_vendor_batch", **values)
    taken: list[Row] = [
        {
            "batch_id": record.batch_id,
            "number": row.number,
            "vendor_batch_id": record.id,
            "request_id": chat.call.id,
        }
        for row, chat in rows
    ]
    if await tx.run_many("hold_batch_row", taken) != len(taken):
        raise RowTaken


_LATER = ("file_id", "upstream_id")


async def open_batches(store: Store, batch_id: str) -> list[VendorRecord]:
    """What a batch of ours has at providers."""
    return [VendorRecord(**row) for row in await store.all("list_open_vendor_batches", batch_id=batch_id)]


async def read_record(store: Store, record_id: str) -> VendorRecord | None:
    """A batch at a provider; None once it has ended."""
    row = await store.one("get_vendor_batch", id=record_id)
    return VendorRecord(**row) if row else None


async def open_rows(store: Store, record: VendorRecord) -> list[PendingRow]:
    return [PendingRow(**row) for row in await store.slow("list_vendor_rows", id=record.id)]


async def end_record(gateway: Gateway, record: VendorRecord) -> None:
    """Note that all rows of a batch at a provider have ended, and give up the lease of their holds."""
    ended_at_ms = gateway.clock.now_ms()
    lease = {"id": record.id, "now_ms": gateway.clock.steady_ms() + 2 * _LEASE_MS}

    async def write(tx: Transaction) -> None:
        await tx.run("remove_process", **lease)
        await tx.run("end_vendor_batch", id=record.id, ended_at_ms=ended_at_ms)

    await gateway.store.write(write)


def find_candidate(gateway: Gateway, record: VendorRecord) -> Candidate | None:
    """Who has the batch; None if the gateway can no longer ask."""
    planned = PlannedCandidate(record.provider, record.model, record.upstream_model)
    found = gateway.catalog.find_candidate(planned, "chat")
    used = found and gateway.vendor_accounts.of_job(found, record.account_id or "", record.fee_percent)
    return used.batched if used else None


async def read_caller(gateway: Gateway, record: VendorRecord, key_id: str) -> Caller:
    """Who made the batch; if the key was revoked meanwhile, only who they were: what waits is answered all the same."""
    try:
        return await gateway.keys.caller_of(record.org_id, key_id)
    except AuthenticationFailed:
        return Caller(record.org_id, key_id)


class RowEnding(NamedTuple):
    """What decides how the rows of a batch at a provider end."""

    batch: BatchRecord
    caller: Caller
    candidate: Candidate | None  # None: it cannot be asked any more
    answers: Answers
    is_cancelled: bool
    fails_over: bool  # whether rows without an answer are made alone


async def end_row(gateway: Gateway, ending: RowEnding, row: PendingRow) -> None:
    """End a row with its answer, and settle its request. Raises StorageUnavailable if that is to be done again.

    A row whose request was given up because this process stopped begins anew.
    """
    assert row.request_id is not None, "it was held for"
    record = await gateway.requests.get(ending.batch.org_id, row.request_id)
    if record is not None and record.is_open:
        await _settle(gateway, ending, row, record)
        record = await gateway.requests.get(ending.batch.org_id, row.request_id)
    if record is None or record.is_open:
        raise StorageUnavailable("The end of the request is not stored yet.")
    if record.status == "cancelled" and not record.cost and not ending.is_cancelled:
        values = {"batch_id": ending.batch.id, "number": row.number}
        await gateway.store.write(lambda tx: tx.run("free_batch_row", **values))
        return
    await store_row_end(gateway, ending.batch.id, row.number, row_end(record))


async def _settle(gateway: Gateway, ending: RowEnding, row: PendingRow, record: RequestRow) -> None:
    call = _call(gateway, ending.caller, row)
    waited_ms = gateway.clock.now_ms() - record.created_at_ms
    call = msgspec.structs.replace(
        call, at_ms=record.created_at_ms, started=gateway.clock.monotonic() - waited_ms / 1000
    )
    candidate = ending.candidate
    if candidate is None:
        gone = UpstreamOutcomeUnknown("The provider that has the batch of this row cannot be asked any more.")
        give_up_batched(gateway, call, record, "upstream_failure", gone)
        return
    answer = ending.answers.get(str(row.number)) or unanswered(candidate)
    if ending.is_cancelled and isinstance(answer, Failure):
        cancelled = Cancelled("The batch was cancelled before this row was answered.")
        give_up_batched(gateway, call, record, "cancelled", cancelled)
        return
    await end_batched(gateway, call, record, candidate, answer, fails_over=ending.fails_over)


def sent_fields(gateway: Gateway, caller: Caller, row: PendingRow, candidate: Candidate) -> dict[str, Any]:
    """What the provider gets of a row."""
    return provider_fields(gateway, _call(gateway, caller, row), candidate)


def _call(gateway: Gateway, caller: Caller, row: PendingRow) -> Call:
    return row_call(gateway, caller, row.endpoint, msgspec.json.decode(row.body), request_id=row.request_id)
