"""Check, price and store a batch; or refuse it whole, before anything is spent."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from penstock.accounts.aliases import aliased
from penstock.accounts.idempotency import Claim, claim_key_with
from penstock.batches.lines import BadLine, Line, RowFault
from penstock.batches.records import IN_PROGRESS, NEVER, PAUSED, PREFIX, BatchRecord, get_batch
from penstock.batches.row_checks import Price, check_row
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.schema import Caller
from penstock.store.base import Row, Transaction
from penstock.values import Nanos, Retention, dollars, new_id

NOT_STARTED = "not_started"
ROWS_MAX = 1_000_000
_NUMBER_DIGITS = 10
_SHOWN_FAULTS = 100
_ROWS_AT_ONCE = 500
_BATCHES_AT_ONCE = 20
_ROWS_PER_TURN = 20
_LEASE_MS = 120_000  # of a batch that is being checked, renewed with each page of rows


class BatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller asked for besides the rows."""

    name: str | None = None
    max_cost: Nanos | None = None
    concurrency: int = 8
    webhook_url: str | None = None
    skip_invalid: bool = False
    start: bool = True
    upload_id: str | None = None  # the file that the rows are from
    endpoint: str | None = None
    metadata: str | None = None  # as JSON
    vendor_batch: str = NEVER
    source: str = "file"  # the field of the call that has the rows


class RowsRefused(InvalidRequest, same_code=True):
    """Rows of a batch are wrong; the response lists them."""

    def __init__(self, message: str, faults: list[dict[str, Any]], param: str | None) -> None:
        super().__init__(message, param=param)
        self.faults = faults

    def body(self) -> dict[str, dict[str, Any]]:
        error: dict[str, Any] = super().body()["error"]
        return {"error": {**error, "rows": self.faults}}


@dataclass(slots=True)
class _Sums:
    """What is known of the rows that were read so far."""

    rows: int = 0
    skipped: int = 0
    estimate: int = 0
    most: int = 0
    at_vendors: int = 0  # rows that would go with a batch of a provider
    by_model: dict[str, list[int]] = field(default_factory=dict)  # rows and estimate
    faults: list[dict[str, Any]] = field(default_factory=list)  # the first ones
    own_ids: set[str] = field(default_factory=set)  # custom ids that are not the numbers of their rows
    numbered: bytearray = field(default_factory=bytearray)  # 1 for each row whose custom id is its number

    def add_fault(self, number: int, fault: RowFault) -> None:
        self.skipped += 1
        if len(self.faults) < _SHOWN_FAULTS:
            self.faults.append({"row": number, "column": fault.column, "message": fault.message})

    def add_row(self, line: Line, price: Price) -> None:
        estimate = price.estimate
        self.rows += 1
        self.estimate += estimate
        self.most += price.most
        self.at_vendors += price.in_batch
        model = self.by_model.setdefault(str(line.body.get("model")), [0, 0])
        model[0] += 1
        model[1] += estimate

    def check_custom_id(self, line: Line) -> None:
        """Raise RowFault if an earlier row has the same custom id, its own or that which its number gives it."""
        if line.custom_id == str(line.number):
            is_taken = line.custom_id in self.own_ids
            self.numbered += bytes(max(0, line.number - len(self.numbered)))
            self.numbered[line.number - 1] = 1
        else:
            is_taken = self.is_number_of_row(line.custom_id) or line.custom_id in self.own_ids
            self.own_ids.add(line.custom_id)
        if is_taken:
            raise RowFault(f"`custom_id` is that of an earlier row: {line.custom_id}.", "custom_id")

    def is_number_of_row(self, custom_id: str) -> bool:
        """Whether an earlier row has its number as its custom id, and that is this one."""
        if not (custom_id.isascii() and custom_id.isdecimal() and len(custom_id) < _NUMBER_DIGITS):
            return False
        number = int(custom_id)
        return str(number) == custom_id and 1 <= number <= len(self.numbered) and bool(self.numbered[number - 1])

    def refusal(self, source: str) -> RowsRefused:
        first = self.faults[0]
        where = f"Row {first['row']}" + (f", column `{first['column']}`" if first["column"] else "")
        more = f" {self.skipped - 1} more rows are wrong, too." if self.skipped > 1 else ""
        return RowsRefused(f"{where}: {first['message']}{more}", self.faults, first["column"] or source)


async def estimate_batch(
    gateway: Gateway, caller: Caller, lines: Iterator[Line | BadLine], options: BatchOptions
) -> dict[str, Any]:
    """Check and price the rows and store nothing. Raises RowsRefused as `create_batch` does."""
    sums = _Sums()
    await _check_rows(gateway, caller, lines, options, sums, None)
    models = [
        {"model": model, "rows": rows, "estimated_cost": dollars(Nanos(estimate))}
        for model, (rows, estimate) in sorted(sums.by_model.items())
    ]
    return {
        "object": "batch.estimate",
        "rows": sums.rows,
        "skipped": sums.skipped,
        "faults": sums.faults,
        "estimated_cost": dollars(Nanos(sums.estimate)),
        "highest_cost": dollars(Nanos(sums.most)),
        "vendor_batch_rows": sums.at_vendors,
        "currency": "usd",
        "models": models,
    }


async def create_batch(
    gateway: Gateway,
    caller: Caller,
    lines: Iterator[Line | BadLine],
    options: BatchOptions,
    batch_id: str,
    claim: Claim | None = None,
) -> BatchRecord:
    """Check, price and store the rows; then the batch runs, unless it is to be started later.

    Raises KeyTaken, before a row is read, if another call has the idempotency key that this one claims. Raises
    RowsRefused, which names rows and columns, if any row is wrong, or with `skip_invalid` if all are. Then nothing is
    kept, nor if this process ends meanwhile.
    """
    if gateway.settings.payloads == "none":
        message = 'This gateway stores no payloads (`payloads = "none"`), so it cannot store the rows of a batch.'
        raise InvalidRequest(message)
    retention = Retention.parse(gateway.settings.idempotency_retention)

    async def add(tx: Transaction) -> None:
        if claim:  # together: a key whose batch is not there is that of a batch that was deleted
            await claim_key_with(tx, claim, retention)
        await tx.run("add_batch", **_batch_columns(gateway, caller, options, batch_id))

    await gateway.store.write(add, org_id=caller.org_id)
    sums = _Sums()
    try:
        await _check_rows(gateway, caller, lines, options, sums, batch_id)
        values = {
            "id": batch_id,
            "status": IN_PROGRESS if options.start else PAUSED,
            "reason": None if options.start else NOT_STARTED,
            "rows_total": sums.rows,
            "rows_skipped": sums.skipped,
            "estimate": sums.estimate,
        }
        await gateway.store.write(lambda tx: tx.run("accept_batch", **values))
    except BaseException:
        await asyncio.shield(delete_refused(gateway, batch_id))
        raise
    return await get_batch(gateway.store, caller.org_id, batch_id)


def new_batch_id(gateway: Gateway) -> str:
    return new_id(PREFIX, gateway.clock.now_ms())


async def delete_refused(gateway: Gateway, batch_id: str) -> None:
    """Delete a batch that was not accepted, and its rows, a page at a time."""
    await delete_rows(gateway, batch_id)
    await gateway.store.write(lambda tx: tx.run("delete_refused_batch", id=batch_id))


async def delete_old(gateway: Gateway) -> None:
    """Delete batches that ended longer ago than texts are stored (`payload_retention`). Requests keep their records."""
    kept_ms = Retention.parse(gateway.settings.payload_retention).seconds * 1000
    before_ms = gateway.clock.now_ms() - kept_ms
    while rows := await gateway.store.all("list_old_batches", before_ms=before_ms, limit=_BATCHES_AT_ONCE):
        for row in rows:
            await delete_rows(gateway, row["id"])
            await gateway.store.write(partial(_change_page, "delete_vendor_batches", {"batch_id": row["id"]}))
            await gateway.store.write(partial(_change_page, "delete_old_batch", {"id": row["id"]}))


async def delete_rows(gateway: Gateway, batch_id: str) -> None:
    """Delete the rows of a batch, a page at a time."""
    await _change_pages(gateway, batch_id, "delete_batch_rows")


async def erase_bodies(gateway: Gateway, batch_id: str) -> None:
    """Remove the bodies of the rows of a batch that will not run, a page at a time."""
    await _change_pages(gateway, batch_id, "erase_batch_bodies")


async def _change_pages(gateway: Gateway, batch_id: str, query: str) -> None:
    """Run a query that changes rows for all rows of a batch, a page at a time."""
    after = 0
    while rows := await gateway.store.slow("list_batch_rows", batch_id=batch_id, after=after, limit=_ROWS_AT_ONCE):
        page = {"batch_id": batch_id, "after": after, "until": rows[-1]["number"]}
        await gateway.store.write(partial(_change_page, query, page))
        after = page["until"]


async def _change_page(query: str, page: Row, tx: Transaction) -> None:
    await tx.run(query, **page)


def _batch_columns(gateway: Gateway, caller: Caller, options: BatchOptions, batch_id: str) -> Row:
    return {
        "id": batch_id,
        "org_id": caller.org_id,
        "key_id": caller.key_id,
        "name": options.name,
        "max_cost": options.max_cost,
        "concurrency": options.concurrency,
        "webhook_url": options.webhook_url,
        "created_at_ms": gateway.clock.now_ms(),
        "upload_id": options.upload_id,
        "endpoint": options.endpoint,
        "metadata": options.metadata,
        "vendor_batch": None if options.vendor_batch == NEVER else options.vendor_batch,
        "lease_owner": batch_id,
        "lease_until_ms": gateway.clock.steady_ms() + _LEASE_MS,
    }


async def _check_rows(
    gateway: Gateway,
    caller: Caller,
    lines: Iterator[Line | BadLine],
    options: BatchOptions,
    sums: _Sums,
    batch_id: str | None,
) -> None:
    """Check all rows; store those that are right, if the batch has an id. Raises RowsRefused."""
    page: list[Row] = []
    for place, line in enumerate(lines):
        if place % _ROWS_PER_TURN == 0:
            await asyncio.sleep(0)  # other calls have their turn
        try:
            row = await _checked(gateway, caller, line, sums, options.vendor_batch)
        except RowFault as fault:
            sums.add_fault(line.number, fault)
            continue
        if sums.rows > ROWS_MAX:
            raise InvalidRequest(f"A batch may have at most {ROWS_MAX:,} rows.", param=options.source)
        if batch_id and (options.skip_invalid or not sums.skipped):
            page.append({"batch_id": batch_id, **row})
        if batch_id and len(page) >= _ROWS_AT_ONCE:
            await _store_page(gateway, batch_id, page)
            page = []
    if sums.skipped and not (options.skip_invalid and sums.rows):
        raise sums.refusal(options.source)
    if not sums.rows:
        raise InvalidRequest("The batch has no rows.", param=options.source)
    if batch_id and page:
        await _store_page(gateway, batch_id, page)


async def _checked(gateway: Gateway, caller: Caller, line: Line | BadLine, sums: _Sums, vendor_batch: str) -> Row:
    """The columns of a row that is right. Raises RowFault."""
    if isinstance(line, BadLine):
        raise line.fault
    sums.check_custom_id(line)
    line = msgspec.structs.replace(line, body=aliased(caller, line.body))
    price = await check_row(gateway, caller, line, vendor_batch)
    sums.add_row(line, price)
    return {
        "number": line.number,
        "custom_id": line.custom_id,
        "endpoint": line.endpoint,
        "body": msgspec.json.encode(line.body),
        "hold": price.most,
    }


async def _store_page(gateway: Gateway, batch_id: str, page: list[Row]) -> None:
    now_ms = gateway.clock.steady_ms()
    lease = {"id": batch_id, "owner": batch_id, "now_ms": now_ms, "until_ms": now_ms + _LEASE_MS}

    async def write(tx: Transaction) -> None:
        await tx.put_many("add_batch_row", page)
        if not await tx.run("claim_batch", **lease):
            raise InvalidRequest("The check of the batch took too long; send it again.")

    await gateway.store.write(write)
