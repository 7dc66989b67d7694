"""Files that callers upload to make batches of them: OpenAI's files of the purpose `batch`."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from penstock.errors import InvalidRequest, NotFound
from penstock.fields import UploadedFile
from penstock.gateway import Gateway
from penstock.long_bodies.buffers import Buffer, GrowingBuffer
from penstock.store.base import Transaction
from penstock.values import DAY_MS, OrgId, is_id, new_id

PREFIX = "file"
PURPOSE = "batch"
KEPT_DAYS = 30
_PIECE_BYTES = 512 * 1024
_EXPIRED_AT_ONCE = 20
_NAME_CHARS = 255


class UploadRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table `uploads`."""

    id: str
    org_id: OrgId
    filename: str
    purpose: str
    size_bytes: int
    created_at_ms: int
    expires_at_ms: int


async def store_upload(gateway: Gateway, org_id: OrgId, file: UploadedFile) -> UploadRow:
    """Store a file, in one transaction. Raises InvalidRequest for an empty one, and where no payloads are stored."""
    if gateway.settings.payloads == "none":
        raise InvalidRequest('This gateway stores no payloads (`payloads = "none"`), so it takes no files.')
    if not len(file.data):
        raise InvalidRequest("The file is empty.", param="file")
    now_ms = gateway.clock.now_ms()
    row = UploadRow(
        id=new_id(PREFIX, now_ms),
        org_id=org_id,
        filename=file.filename[:_NAME_CHARS] or "batch.jsonl",
        purpose=PURPOSE,
        size_bytes=len(file.data),
        created_at_ms=now_ms,
        expires_at_ms=now_ms + KEPT_DAYS * DAY_MS,
    )
    whole = memoryview(file.data)

    async def write(tx: Transaction) -> None:
        await tx.run("add_upload", **msgspec.structs.asdict(row))
        for number, start in enumerate(range(0, len(whole), _PIECE_BYTES)):
            data = bytes(whole[start : start + _PIECE_BYTES])
            await tx.run("add_upload_piece", upload_id=row.id, number=number, data=data)

    await gateway.store.write(write)
    return row


async def get_upload(gateway: Gateway, org_id: OrgId, upload_id: str) -> UploadRow:
    """One file of an organization. Raises NotFound."""
    found = await gateway.store.one("get_upload", id=upload_id, org_id=org_id) if is_id(upload_id, PREFIX) else None
    row = UploadRow(**found) if found else None
    if row is None or row.expires_at_ms <= gateway.clock.now_ms():
        raise NotFound(f"No such file: {upload_id[:64]}.")
    return row


async def read_pieces(gateway: Gateway, row: UploadRow) -> AsyncIterator[bytes]:
    """What is in a file. Raises NotFound if it is deleted meanwhile."""
    for number in range(-(-row.size_bytes // _PIECE_BYTES)):
        piece = await gateway.store.one("get_upload_piece", upload_id=row.id, number=number)
        if piece is None:
            raise NotFound(f"No such file: {row.id}.")
        yield bytes(piece["data"])


async def read_upload(gateway: Gateway, row: UploadRow) -> Buffer:
    """The whole file."""
    whole = GrowingBuffer(row.size_bytes)
    async for piece in read_pieces(gateway, row):
        whole.write(piece)
    return whole.finish()


async def delete_upload(gateway: Gateway, row: UploadRow) -> None:
    async def write(tx: Transaction) -> None:
        await tx.run("delete_upload", id=row.id)
        await tx.run("delete_upload_pieces", upload_id=row.id)

    await gateway.store.write(write)


async def delete_expired(gateway: Gateway) -> None:
    """Delete the files that have been kept for long enough."""
    now_ms = gateway.clock.now_ms()
    while rows := await gateway.store.all("list_expired_uploads", now_ms=now_ms, limit=_EXPIRED_AT_ONCE):
        for row in rows:
            await delete_upload(gateway, UploadRow(**row))


def file_object(row: UploadRow) -> dict[str, Any]:
    """A file as OpenAI's API shows it."""
    return {
        "id": row.id,
        "object": "file",
        "bytes": row.size_bytes,
        "created_at": row.created_at_ms // 1000,
        "expires_at": row.expires_at_ms // 1000,
        "filename": row.filename,
        "purpose": row.purpose,
        "status": "processed",
    }
