"""The rows of recordings, as they are read back on each database."""

import msgspec

from penstock.accounts.orgs import create_org
from penstock.recordings.recordings import new_recording
from penstock.recordings.rows import (
    RecordedResult,
    RecordingFileRow,
    RecordingRow,
    find_pinned_recording,
    find_recording,
    get_recording,
)
from penstock.schema import Fingerprint
from penstock.store.base import Transaction
from penstock.values import OrgId, new_id
from tests.databases import Database
from tests.manual_clock import ManualClock

RESULT = RecordedResult("lab", "Lab", "lab/m", "job-1", None, ())


def recording(org_id: OrgId, at_ms: int, imported_id: str | None = None) -> RecordingRow:
    return RecordingRow(
        id=new_id("rec", at_ms),
        org_id=org_id,
        request_id=None,
        imported_id=imported_id,
        import_digest=None if imported_id is None else imported_id.encode(),
        kind="image",
        task="image",
        model="m",
        standard=b"standard",
        strict=b"strict",
        request=b'{"prompt":"a fox"}',
        result=msgspec.json.encode(RESULT),
        duration_ms=5,
        created_at_ms=at_ms,
    )


async def test_a_recording_is_read_as_it_was_written(database: Database) -> None:
    async with database.open() as store:
        org_id = (await create_org(store, ManualClock(), "Acme", "prepaid")).id
        older = recording(org_id, 1)
        newer = recording(org_id, 2, "rec_elsewhere")
        file = RecordingFileRow(
            recording_id=older.id, position=0, media_id="med_1", content_type="image/png", size_bytes=3, sha256=b"abc"
        )

        async def write(tx: Transaction) -> None:
            for name, values in [*new_recording(older, [file]), *new_recording(newer, [])]:
                await tx.run(name, **values)

        await store.write(write)
        assert await get_recording(store, older.id, org_id) == older
        assert await get_recording(store, older.id, OrgId("org_other")) is None
        assert [RecordingFileRow(**row) for row in await store.all("list_recording_files", recording_id=older.id)] == [
            file
        ]
        assert await find_pinned_recording(store, older.id, org_id) == older
        assert await find_pinned_recording(store, "rec_elsewhere", org_id) == newer
        strict = Fingerprint("image", "m", {}, b"standard", b"strict", "strict")
        for fingerprint in (strict, msgspec.structs.replace(strict, by="standard")):
            assert await find_recording(store, org_id, fingerprint) == newer
        assert await find_recording(store, org_id, msgspec.structs.replace(strict, strict=b"other")) is None


def test_a_recording_has_its_request_and_its_result() -> None:
    stored = recording(OrgId("org_1"), 1)
    assert (stored.decode_request(), stored.decode_result()) == ({"prompt": "a fox"}, RESULT)
