"""Bring one row of a batch to its end, also after a crash: it is paid once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.accounts.refusals import record_refusal
from penstock.accounts.request_records import RequestRow
from penstock.batches.lines import CHATS, EDITS, IMAGES, MODEL_RESPONSES, VIDEOS
from penstock.batches.records import BatchRecord, PendingRow
from penstock.batches.row_checks import row_call
from penstock.chat import repeats
from penstock.errors import (
    AuthenticationFailed,
    BudgetReached,
    CallRefused,
    IdempotencyInProgress,
    InsufficientBalance,
    Problem,
    RateLimited,
    StorageUnavailable,
    UpstreamOutcomeUnknown,
)
from penstock.gateway import Gateway
from penstock.generation_jobs.rows import get_generation_by_key
from penstock.generations import endpoints
from penstock.schema import MODALITY, Call, Caller
from penstock.store.base import Row, Transaction
from penstock.values import Nanos

_TASKS = {IMAGES: "image", EDITS: "edit", VIDEOS: "video"}
_ENDPOINTS = {
    IMAGES: endpoints.make_images,
    EDITS: endpoints.edit_images,
    VIDEOS: endpoints.start_video,
    CHATS: repeats.complete_chat,
    MODEL_RESPONSES: repeats.create_response,
}
_TRIES_MAX = 3  # of a chat whose outcome a crash made unknown
_LOOK_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 60.0


class RowEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a row ended."""

    status: str
    request_id: str | None = None
    cost: Nanos = Nanos(0)
    error_code: str | None = None
    error_message: str | None = None


class PauseBatch(Exception):
    """The batch cannot go on until somebody does something, such as adding credit."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def run_row(
    gateway: Gateway, caller: Caller, batch: BatchRecord, row: PendingRow, request_ids: set[str]
) -> RowEnd:
    """Make the call of a row, or find what became of it before a crash, and wait for its end.

    `request_ids` has the id of a generation while this waits for it. A chat whose outcome a crash made unknown was not
    charged, and is made again with another key. Raises PauseBatch, or StorageUnavailable if the row is to be tried
    later.
    """
    run = _RowRun(gateway, caller, row, msgspec.json.decode(row.body), request_ids)
    number = 1
    while True:
        end = await run.with_key(f"{batch.id}/{row.number}/{number}")
        is_unknown = end.error_code == UpstreamOutcomeUnknown.code and not end.cost
        if not is_unknown or row.is_generation or number == _TRIES_MAX:
            return end
        number += 1


def _pause_seconds(problem: Problem) -> float:
    text = problem.headers.get("retry-after", "1")
    return min(float(text), _LONGEST_WAIT_SECONDS) if text.isdigit() else 1.0


@dataclass(frozen=True, slots=True)
class _RowRun:
    """One row, and what is needed to run it."""

    gateway: Gateway
    caller: Caller
    row: PendingRow
    body: dict[str, Any]
    request_ids: set[str]

    async def with_key(self, key: str) -> RowEnd:
        """Run the row with this idempotency key; while a limit of the caller's key is reached, wait."""
        while True:
            try:
                if task := _TASKS.get(self.row.endpoint):
                    return await self._end(await self._run_generation(key, task))
                return await self._end(await self._run_chat(key))
            except (InsufficientBalance, BudgetReached, AuthenticationFailed) as problem:
                raise PauseBatch(problem.code.lower()) from None
            except (RateLimited, IdempotencyInProgress) as problem:
                if problem.should_retry is False:
                    raise PauseBatch(problem.code.lower()) from None
                await self.gateway.clock.sleep(_pause_seconds(problem))
            except StorageUnavailable:
                raise
            except Problem as problem:
                return RowEnd(status="failed", error_code=problem.code, error_message=problem.message)

    async def _run_generation(self, key: str, task: str) -> str:
        """The id of the generation of the row, once it has ended."""
        stored_key = key if task == "video" else f"{task}\n{key}"
        found = await get_generation_by_key(self.gateway.store, self.caller.org_id, stored_key)
        call = self._call({"idempotency-key": key, "prefer": "respond-async"})
        request_id = found.id if found else call.id
        self.request_ids.add(request_id)
        try:
            if found is None:
                await _ENDPOINTS[self.row.endpoint](self.gateway, call)
            while not await self._has_ended(request_id, task):
                await self.gateway.clock.sleep(_LOOK_SECONDS)
        except CallRefused as problem:
            await record_refused_row(self.gateway, call, problem)
        finally:
            self.request_ids.discard(request_id)
        return request_id

    async def _has_ended(self, request_id: str, task: str) -> bool:
        """Wait for a generation that this process may run; of one in the queue of a cluster, look at its state."""
        if self.gateway.jobs.runs_here(task):
            return await self.gateway.jobs.run_until_ended(request_id)
        row = await self.gateway.store.one("get_generation_status", id=request_id)
        return row is None or row["status"] in ("completed", "failed")

    async def _run_chat(self, key: str) -> str:
        """The id of the chat call of the row, once it has ended."""
        call = self._call({"idempotency-key": key})
        try:
            response = await _ENDPOINTS[self.row.endpoint](self.gateway, call)
        except CallRefused as problem:
            await record_refused_row(self.gateway, call, problem)
            return call.id
        except Problem as problem:
            if problem.recorded:
                return call.id
            raise
        return response.headers.get("x-request-id", call.id)

    def _call(self, headers: Mapping[str, str]) -> Call:
        return row_call(self.gateway, self.caller, self.row.endpoint, self.body, headers=headers)

    async def _end(self, request_id: str) -> RowEnd:
        """How the row ended, by the record of its request, which is charged by then."""
        record = await self.gateway.requests.get(self.caller.org_id, request_id)
        if record is None or record.is_open:
            raise StorageUnavailable("The end of the request is not stored yet.")
        return row_end(record)


async def record_refused_row(gateway: Gateway, call: Call, problem: CallRefused) -> None:
    """Record the call of a row that a guard refused, as any refused call is."""
    task = _TASKS.get(call.endpoint, "chat")
    await record_refusal(gateway.requests, call, problem, task, MODALITY.get(task))


def row_end(record: RequestRow) -> RowEnd:
    """How a row ended whose request has; its message stays in the record."""
    return RowEnd(
        status="completed" if record.status == "completed" else "failed",
        request_id=record.id,
        cost=Nanos(record.cost),
        error_code=record.error_code,
    )


async def store_row_end(gateway: Gateway, batch_id: str, number: int, end: RowEnd) -> bool:
    """Store how a row ended and add it to the sums of its batch; False if that was done before."""
    values: Row = {
        "batch_id": batch_id,
        "number": number,
        "status": end.status,
        "request_id": end.request_id,
        "cost": end.cost,
        "error_code": end.error_code,
        "error_message": end.error_message,
    }
    is_completed = end.status == "completed"
    sums = {"id": batch_id, "completed": int(is_completed), "failed": int(not is_completed), "cost": end.cost}

    async def write(tx: Transaction) -> bool:
        if not await tx.run("end_batch_row", **values):
            return False
        await tx.put("count_batch_row", **sums)
        return True

    return await gateway.store.write(write)
