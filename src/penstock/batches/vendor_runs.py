"""Send the chats of a batch to providers as batches of theirs, follow these, and end the rows with the answers."""

import asyncio
from dataclasses import dataclass, field
from functools import partial

import msgspec
import structlog

from penstock.batches import vendor_rows
from penstock.batches.lines import CHATS
from penstock.batches.records import AUTO, CANCELLING, ONLY, BatchRecord, PendingRow, get_batch
from penstock.batches.row_checks import row_call
from penstock.batches.row_runs import RowEnd, record_refused_row, store_row_end
from penstock.batches.vendor_rows import BatchedRow, RowEnding, RowTaken, VendorRecord
from penstock.chat.batched import BatchedChat, admit, batched_chat
from penstock.errors import CallRefused, InsufficientBalance, InvalidRequest, Problem, RateLimited, StorageUnavailable
from penstock.gateway import Gateway
from penstock.schema import Caller
from penstock.store.waiting import retry_while_unavailable
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed
from penstock.upstream.vendor_batches import Answers, VendorBatch, VendorBatches, input_line, is_refusal

log = structlog.get_logger()
BUDGET = "max_cost"  # why no more rows are sent: the next one might cost more than is left
ROWS_MAX = 500  # of one batch at a provider
_BYTES_MAX = 20 * 1024**2
_ROWS_AT_ONCE = 100
_ENDED_AT_ONCE = 25
_FIRST_PAUSE_SECONDS = 5.0  # between looks at a batch; later ones are longer
_LONGEST_PAUSE_SECONDS = 60.0
_RETRY_SECONDS = 30.0
_TRIES_MAX = 20  # to send a batch
_GRACE_SECONDS = 2 * 3600  # for a provider to end a batch after its time
_ANSWERS_SECONDS = 3 * 24 * 3600  # for the answers to be read, from then on


@dataclass(slots=True)
class _Group:
    """Rows of one candidate that are to be sent together."""

    rows: list[BatchedRow] = field(default_factory=list)
    size_bytes: int = 0

    def add(self, row: BatchedRow) -> None:
        self.rows.append(row)
        self.size_bytes += len(row.row.body)

    @property
    def is_full(self) -> bool:
        return len(self.rows) >= ROWS_MAX or self.size_bytes >= _BYTES_MAX


@dataclass(slots=True)
class VendorRuns:
    """What one batch has at providers."""

    gateway: Gateway
    batch_id: str
    changed: asyncio.Event  # set when a batch at a provider has ended
    is_filled: bool = False  # all rows were looked at
    stuck_at: int = 0  # how many batches there were at providers when no more could be sent; 0: more can
    is_resumed: bool = False
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: dict[asyncio.Task[None], VendorRecord] = field(default_factory=dict)

    @property
    def held(self) -> int:
        """The most that the rows at providers may cost."""
        return sum(record.held for record in self.tasks.values())

    async def resume(self) -> None:
        """Go on with what was sent before a restart."""
        if not self.is_resumed:
            for record in await vendor_rows.open_batches(self.gateway.store, self.batch_id):
                self._start(record)
            self.is_resumed = True

    def cancel(self) -> None:
        """Ask providers to cancel what they have not begun."""
        self.cancelled.set()

    # ----------------------------------------------------------------------------------------------------- sending rows

    @property
    def may_send(self) -> bool:
        """Whether rows are left that might be sent now: after the budget or the balance was used up, when a batch at a
        provider has ended.
        """
        return not self.is_filled and (not self.tasks or not 0 < self.stuck_at <= len(self.tasks))

    async def fill(self, batch: BatchRecord, caller: Caller, held: int) -> str | None:
        """Send the next rows that can go with batches of providers; return why no more are sent, if some were not.

        `held` is the most that the rows which run alone may cost.
        """
        groups: dict[tuple[str, ...], _Group] = {}
        budget = None if batch.max_cost is None else batch.max_cost - batch.cost - held - self.held
        reason = None
        is_full = False
        after = 0
        while not (reason or is_full) and (rows := await self._page(after)):
            after = rows[-1].number
            for row in rows:
                if (chat := await self._batched(batch, caller, row)) is None:
                    continue
                if budget is not None and (budget := budget - row.hold) < 0:
                    reason = BUDGET
                    break
                group = groups.setdefault(_key(chat), _Group())
                group.add(BatchedRow(row, chat))
                if is_full := group.is_full:
                    break  # the batch may have been changed meanwhile, so it is read again before more is sent
        for group in groups.values():
            reason = await self._send(batch, group.rows) or reason
        self.is_filled = not reason and not is_full
        self.stuck_at = len(self.tasks) if reason else 0
        if is_full:
            self.changed.set()
        return reason

    async def _page(self, after: int) -> list[PendingRow]:
        page = {"batch_id": self.batch_id, "after": after, "limit": _ROWS_AT_ONCE}
        return [PendingRow(**row) for row in await self.gateway.store.slow("list_pending_batch_rows", **page)]

    async def _batched(self, batch: BatchRecord, caller: Caller, row: PendingRow) -> BatchedChat | None:
        """What the row is in a batch of its provider; None if it is made alone, or has ended because it cannot be."""
        gateway = self.gateway
        await asyncio.sleep(0)  # other calls have their turn
        chat = None
        is_recorded = False
        problem: Problem = InvalidRequest("This row cannot go with a batch of its provider any more.")
        call = row_call(gateway, caller, row.endpoint, msgspec.json.decode(row.body))
        try:
            if row.endpoint == CHATS:
                found = await batched_chat(gateway, call)
                chat = found and await admit(gateway, found)
        except StorageUnavailable:
            raise
        except CallRefused as refusal:
            await record_refused_row(gateway, call, refusal)
            problem = refusal
            is_recorded = True
        except Problem as refusal:  # made alone it fails for the same reason
            problem = refusal
        if is_recorded or (chat is None and batch.vendor_batch == ONLY):
            request_id = call.id if is_recorded else None
            end = RowEnd(status="failed", request_id=request_id, error_code=problem.code, error_message=problem.message)
            await store_row_end(gateway, self.batch_id, row.number, end)
        return chat

    async def _send(self, batch: BatchRecord, rows: list[BatchedRow]) -> str | None:
        """Hold for rows and begin to send them: for as many of them as can be held for. Returns why not for all."""
        reason = None
        while rows:
            try:
                self._start(await vendor_rows.hold_rows(self.gateway, batch, rows))
                return reason
            except (InsufficientBalance, RateLimited) as problem:
                reason = problem.code.lower()
                rows = rows[: len(rows) // 2]
            except RowTaken:
                return None
        return reason

    # ---------------------------------------------------------------------------------------------- following a batch

    def _start(self, record: VendorRecord) -> None:
        task = asyncio.create_task(self._run(record), name=f"follow {record.id}")
        self.tasks[task] = record
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self.tasks.pop(task, None)
        self.changed.set()

    async def _run(self, record: VendorRecord) -> None:
        """Bring a batch at a provider to its end, whatever fails on the way."""
        clock = self.gateway.clock
        while True:
            try:
                current = await vendor_rows.read_record(self.gateway.store, record.id)
                if current is None or await self._end(current):
                    return
            except StorageUnavailable:
                log.warning("batch at a provider waits: storage unavailable", vendor_batch_id=record.id)
            except Exception:
                log.exception("batch at a provider failed", vendor_batch_id=record.id)
            await clock.sleep(_FIRST_PAUSE_SECONDS)

    async def _end(self, record: VendorRecord) -> bool:
        """Follow a batch to its end, and end its rows; False if some have not ended."""
        gateway = self.gateway
        candidate = vendor_rows.find_candidate(gateway, record)
        if candidate is None and not self._is_late(record, _ANSWERS_SECONDS):
            log.warning("batch at a provider waits: nobody can ask for it", vendor_batch_id=record.id)
            await gateway.clock.sleep(_RETRY_SECONDS)
            return False
        answers = await self._answers(record, candidate) if candidate else {}
        batch = await get_batch(gateway.store, record.org_id, record.batch_id)
        caller = await vendor_rows.read_caller(gateway, record, batch.key_id)
        is_cancelled = batch.status == CANCELLING
        fails_over = batch.vendor_batch == AUTO and not is_cancelled
        ending = RowEnding(batch, caller, candidate, answers, is_cancelled, fails_over)
        rows = await vendor_rows.open_rows(gateway.store, record)
        places = asyncio.Semaphore(_ENDED_AT_ONCE)

        async def end_row(row: PendingRow) -> None:
            async with places:
                work = partial(vendor_rows.end_row, gateway, ending, row)
                await retry_while_unavailable(gateway.clock, work, vendor_batch_id=record.id)

        async with asyncio.TaskGroup() as group:
            for row in rows:
                group.create_task(end_row(row), name=f"end row {row.number} of {record.batch_id}")
        await vendor_rows.end_record(gateway, record)
        return True

    async def _answers(self, record: VendorRecord, candidate: Candidate) -> Answers:
        """The answers in a batch, once it has ended; none if it was refused, or cannot be found any more."""
        gateway = self.gateway
        api = VendorBatches(gateway.upstream, candidate)
        found = await self._sent(api, record, candidate)
        pause = _FIRST_PAUSE_SECONDS
        was_told = False
        while found is not None and not found.has_ended:
            if self._is_late(record, _window_seconds(candidate) + _GRACE_SECONDS):
                return {}
            try:
                if self.cancelled.is_set() and not was_told:
                    found = await api.cancel(found.id)
                    was_told = True
                    continue
                await self._pause(pause, until_cancelled=not was_told)
                found = await api.get(found.id)
            except AttemptFailed as problem:
                was_told = self.cancelled.is_set()
                if problem.failure.status == 404:
                    return {}
            pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
        return {} if found is None else await self._read_answers(api, record, found)

    async def _read_answers(self, api: VendorBatches, record: VendorRecord, found: VendorBatch) -> Answers:
        while True:
            try:
                return await api.answers(found)
            except AttemptFailed as problem:
                log.warning("answers of a batch not read", vendor_batch_id=record.id, why=problem.failure.message)
                if problem.failure.status == 404 or self._is_late(record, _ANSWERS_SECONDS):
                    return {}
            await self.gateway.clock.sleep(_RETRY_SECONDS)

    async def _sent(self, api: VendorBatches, record: VendorRecord, candidate: Candidate) -> VendorBatch | None:
        """The batch at the provider, which is sent if it was not; None if the provider refuses it.

        Before a batch is sent again, because what became of the first try is not known, the provider is asked for it.
        """
        for number in range(_TRIES_MAX):
            try:
                if record.upstream_id:
                    return await api.get(record.upstream_id)
                found = await api.find(record.id) if record.file_id else None
                if found is None and self.cancelled.is_set():
                    return None
                found = found or await self._create(api, record, candidate)
                await self._write("set_vendor_id", id=record.id, upstream_id=found.id)
                return found
            except AttemptFailed as problem:
                log.warning("batch not sent", vendor_batch_id=record.id, why=problem.failure.message)
                if is_refusal(problem.failure):
                    return None
            await self._pause(_RETRY_SECONDS, until_cancelled=number == 0)
            record = await vendor_rows.read_record(self.gateway.store, record.id) or record
        return None

    async def _create(self, api: VendorBatches, record: VendorRecord, candidate: Candidate) -> VendorBatch:
        """Upload the file of a batch and begin it. That it may exist is stored before."""
        file_id = record.file_id
        if file_id is None:
            file_id = await api.upload(await self._file(record, candidate))
            await self._write("set_vendor_file", id=record.id, file_id=file_id)
        return await api.create(file_id, record.id)

    async def _file(self, record: VendorRecord, candidate: Candidate) -> bytes:
        gateway = self.gateway
        batch = await get_batch(gateway.store, record.org_id, record.batch_id)
        caller = await vendor_rows.read_caller(gateway, record, batch.key_id)
        batches = candidate.model.op.batches
        assert batches is not None, "the candidate was chosen for it"
        lines = []
        for row in await vendor_rows.open_rows(gateway.store, record):
            body = vendor_rows.sent_fields(gateway, caller, row, candidate)
            lines.append(input_line(batches, str(row.number), body))
            await asyncio.sleep(0)
        return b"".join(lines)

    async def _pause(self, seconds: float, *, until_cancelled: bool) -> None:
        """Wait; not any longer once the batch is cancelled."""
        clock = self.gateway.clock
        waiting = asyncio.create_task(clock.sleep(seconds))
        ended = {waiting}
        if until_cancelled:
            ended.add(asyncio.create_task(_wait(self.cancelled)))
        try:
            await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in ended:
                task.cancel()

    def _is_late(self, record: VendorRecord, seconds: int) -> bool:
        return self.gateway.clock.now_ms() - record.created_at_ms > seconds * 1000

    async def _write(self, query: str, **values: str) -> None:
        await self.gateway.store.write(lambda tx: tx.run(query, **values))


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


def _key(chat: BatchedChat) -> tuple[str, ...]:
    return (*chat.candidate.health_key, chat.candidate.model.id)


def _window_seconds(candidate: Candidate) -> int:
    batches = candidate.model.op.batches
    return batches.window_seconds if batches else 0
