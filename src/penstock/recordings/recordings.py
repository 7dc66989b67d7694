"""Store recordings, and find the one that matches a call."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from penstock.audit_log import Act, Note, write_audited
from penstock.clock import Clock
from penstock.errors import NotFound
from penstock.event_loop import run_aside
from penstock.media.storage import RECORDING_FILE_PREFIX, FileMissing, Storage, storage_key
from penstock.recordings.replay_headers import ReplayOptions
from penstock.recordings.rows import (
    ListedRecording,
    RecordedResult,
    RecordingFileRow,
    RecordingRow,
    find_pinned_recording,
    find_recording,
    get_recording,
)
from penstock.schema import Fingerprint, GenerationResult, Output, StoredOutput
from penstock.store.base import Change, Row, Store, Transaction
from penstock.store.paging import DEFAULT_LIMIT, Page, Pager
from penstock.values import OrgId, is_id

SHOWN_REQUEST_BYTES = 64 * 1024  # longer requests are neither part of lists nor compared by the match `specific`
# What the match `specific` reads, newest first, in pages.
_SEARCHED_MAX = 1000
_SEARCHED_BYTES_MAX = 4 * 1024**2
_SEARCHED_PAGE = 50


class Recordings:
    """The recordings of all organizations: rows in the store, files in the storage."""

    def __init__(self, store: Store, storage: Storage, clock: Clock) -> None:
        self._store = store
        self._storage = storage
        self._clock = clock
        self._pager = Pager(store, "recording", "rec", ListedRecording)

    async def find(self, org_id: OrgId, options: ReplayOptions, fingerprint: Fingerprint) -> RecordingRow | None:
        """The newest recording that matches, or None."""
        if options.match == "pinned":
            assert options.recording is not None, "`replay_options` requires it"
            pinned = await find_pinned_recording(self._store, options.recording, org_id)
            return pinned if pinned and pinned.kind == fingerprint.kind else None
        if options.match == "specific":
            return await self._find_specific(org_id, options.fields, fingerprint)
        return await find_recording(self._store, org_id, fingerprint)

    async def _find_specific(
        self, org_id: OrgId, fields: Sequence[str], fingerprint: Fingerprint
    ) -> RecordingRow | None:
        high = "rec_~"
        rows_read = 0
        bytes_read = 0
        while rows_read < _SEARCHED_MAX and bytes_read < _SEARCHED_BYTES_MAX:
            rows = await self._store.slow(
                "list_requests_to_match",
                org_id=org_id,
                kind=fingerprint.kind,
                high=high,
                max_bytes=SHOWN_REQUEST_BYTES,
                limit=_SEARCHED_PAGE,
            )
            page_bytes = sum(len(row["request"]) for row in rows)
            wanted = {name: fingerprint.values.get(name) for name in fields}
            if found := await run_aside(page_bytes, _first_match, rows, wanted):
                return await get_recording(self._store, found, org_id)
            if len(rows) < _SEARCHED_PAGE:
                return None
            high = rows[-1]["id"]
            rows_read += len(rows)
            bytes_read += page_bytes
        return None

    async def get(self, org_id: OrgId, recording_id: str) -> RecordingRow:
        """One recording. Raises NotFound for an unknown id and for one of another organization."""
        recording = None
        if is_id(recording_id, "rec"):
            recording = await get_recording(self._store, recording_id, org_id)
        if recording is None:
            raise _not_found(recording_id)
        return recording

    async def pinned_id(self, recording: RecordingRow) -> str:
        """The id to pin a recording by: the id that it was imported with, unless that means another one."""
        if recording.imported_id is None:
            return recording.id
        pinned = await find_pinned_recording(self._store, recording.imported_id, recording.org_id)
        return recording.imported_id if pinned and pinned.id == recording.id else recording.id

    async def page(
        self,
        org_id: OrgId,
        limit: int = DEFAULT_LIMIT,
        starting_after: str | None = None,
        ending_before: str | None = None,
    ) -> Page[ListedRecording]:
        """Return rows, newest first, without results and without very long requests."""
        return await self._pager.page(org_id, limit, starting_after, ending_before, max_bytes=SHOWN_REQUEST_BYTES)

    async def all(self, org_id: OrgId) -> list[ListedRecording]:
        """Return every row, newest first, without results and without very long requests."""
        return await self._pager.all(org_id, max_bytes=SHOWN_REQUEST_BYTES)

    async def list_files(self, recording: RecordingRow) -> list[tuple[Output, RecordingFileRow]]:
        """The outputs of a recording and the rows of their files. Raises NotFound if it was deleted meanwhile."""
        outputs = recording.decode_result().files
        rows = await self._list_rows(recording.id)
        if len(rows) != len(outputs):
            raise _not_found(recording.id)
        return list(zip(outputs, rows, strict=True))

    async def _list_rows(self, recording_id: str) -> list[RecordingFileRow]:
        rows = await self._store.all("list_recording_files", recording_id=recording_id)
        return [RecordingFileRow(**row) for row in rows]

    async def read_file(self, file: RecordingFileRow) -> bytes:
        """The bytes of a recording's file. Raises NotFound if the recording was deleted meanwhile."""
        return b"".join([chunk async for chunk in self.read_chunks(file)])

    async def read_chunks(self, file: RecordingFileRow) -> AsyncIterator[bytes]:
        """The same as they are read."""
        try:
            async for chunk in self._storage.read(storage_key(file.media_id), 0, file.size_bytes):
                yield chunk
        except FileMissing:
            raise _not_found(file.recording_id) from None

    # ------------------------------------------------------------------------------------------------------ recording

    async def store_files(
        self, recording_id: str, files: Sequence[StoredOutput], *, is_imported: bool = False
    ) -> list[RecordingFileRow]:
        """Store copies of outputs, because a recording outlives the outputs of its request. Returns rows for `add`.

        A generation that is being recorded may have stored them before a crash; an import never has.
        """
        rows = []
        for position, file in enumerate(files):
            media_id = _file_id(recording_id, position)
            if file.data is None:
                await self._storage.copy(storage_key(file.output.media_id), storage_key(media_id))
            else:
                store_file = self._storage.create if is_imported else self._storage.replace
                await store_file(storage_key(media_id), file.data, file.output.content_type)
            rows.append(
                RecordingFileRow(
                    recording_id=recording_id,
                    position=position,
                    media_id=media_id,
                    content_type=file.output.content_type,
                    size_bytes=file.output.size_bytes,
                    sha256=file.sha256,
                )
            )
        return rows

    async def add(self, tx: Transaction, recording: RecordingRow, files: Sequence[RecordingFileRow]) -> None:
        """Add a recording and its files."""
        for name, values in new_recording(recording, files):
            await tx.put(name, **values)

    async def delete(self, org_id: OrgId, recording_id: str) -> int:
        """Delete a recording and its files. Returns the number of files. Raises NotFound as `get` does.

        The rows of the files are deleted first, so that no row promises a file that is gone. The recording is deleted
        last, so that repeating the call completes what was interrupted.
        """
        recording = await self.get(org_id, recording_id)
        count = len(recording.decode_result().files)

        async def delete_rows(tx: Transaction) -> None:
            await tx.one("lock_recording", id=recording.id)
            await tx.run("delete_recording_files", recording_id=recording.id)

        await self._store.write(delete_rows)
        deleted = await self.delete_files([_file_id(recording.id, position) for position in range(count)])

        async def delete_recording(tx: Transaction, note: Note) -> None:
            if await tx.run("delete_recording", id=recording.id, org_id=org_id):
                note(Act("recording.deleted", recording.id, org_id, after={"files": deleted}))

        await write_audited(self._store, self._clock.now_ms(), delete_recording)
        return deleted

    async def delete_files(self, media_ids: Sequence[str]) -> int:
        """Delete files from the storage; return how many there were."""
        return sum([await self._storage.delete(storage_key(media_id)) for media_id in media_ids])


def recording_id(request_id: str) -> str:
    """The id of the recording of a request.

    It is made from the request's, and those of its files from it, so that files without rows are known to be awaited
    while the request has not ended; see `find_strays`.
    """
    return f"rec_{request_id.removeprefix('req_')}"


def _file_id(recording_id: str, position: int) -> str:
    return f"{RECORDING_FILE_PREFIX}{recording_id.removeprefix('rec_')}{position:02}"


def _not_found(recording_id: str) -> NotFound:
    return NotFound(f"No such recording: {recording_id}.")


def _first_match(rows: Sequence[Row], wanted: Mapping[str, Any]) -> str | None:
    """The id of the first row whose request has these values; a field that neither has counts as equal."""
    for row in rows:
        values = msgspec.json.decode(row["request"])
        if all(values.get(name) == value for name, value in wanted.items()):
            return str(row["id"])
    return None


def new_recording(recording: RecordingRow, files: Sequence[RecordingFileRow]) -> list[Change]:
    """What adds a recording and its files, if they are not stored already."""
    added_files = [("add_recording_file", msgspec.structs.asdict(file)) for file in files]
    return [("add_recording", msgspec.structs.asdict(recording)), *added_files]


def encode_result(result: GenerationResult, files: Sequence[Output]) -> bytes:
    """The JSON of a generation's RecordedResult."""
    recorded = RecordedResult(
        provider=result.provider,
        provider_name=result.provider_name,
        executed_model=result.executed_model,
        upstream_id=result.upstream_id,
        seconds=result.seconds,
        files=tuple(map(_recorded, files)),
        cost=result.cost,
    )
    return msgspec.json.encode(recorded)


def _recorded(output: Output) -> Output:
    """An output without what belongs to its request alone."""
    return msgspec.structs.replace(output, media_id="", delivered=None, delivery_error=None)
