"""Keep, sign, serve and expire files."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.clock import Clock
from penstock.errors import NotFound, PermissionDenied
from penstock.imaging.formats import extension
from penstock.media.storage import FileMissing, Storage, key_of
from penstock.schema import Input, Output, StoredOutput
from penstock.store.base import Row, Store, Transaction
from penstock.vault import Vault

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_LEEWAY_MS = 60_000
_STRAY_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Opened:
    """A kept file on its way out."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Media:
    """Files that are ours: their rows, their addresses, their end."""

    def __init__(self, store: Store, shelf: Storage, vault: Vault, clock: Clock) -> None:
        self._store, self._shelf, self._vault, self._clock = store, shelf, vault, clock

    # ------------------------------------------------------------------------------------------------------- the rows

    async def record(
        self, tx: Transaction, org_id: str, request_id: str, shelved: Sequence[StoredOutput], first: int, until_ms: int
    ) -> None:
        for position, one in enumerate(shelved, first):
            await self._add(tx, org_id, request_id, "output", position, one.kept, one.sha256, until_ms)

    async def record_inputs(
        self, tx: Transaction, org_id: str, request_id: str, stored: Sequence[tuple[Input, bytes]], until_ms: int
    ) -> None:
        for position, (one, digest) in enumerate(stored):
            kept = Output(one.media_id, one.content_type, one.size_bytes, one.width, one.height)
            await self._add(tx, org_id, request_id, one.role, position, kept, digest, until_ms)

    async def _add(
        self,
        tx: Transaction,
        org_id: str,
        request_id: str,
        role: str,
        position: int,
        kept: Output,
        digest: bytes,
        until_ms: int,
    ) -> None:
        await tx.run(
            "add_media",
            id=kept.media_id,
            org_id=org_id,
            request_id=request_id,
            role=role,
            position=position,
            content_type=kept.content_type,
            size_bytes=kept.size_bytes,
            sha256=digest,
            width=kept.width,
            height=kept.height,
            revised_prompt=kept.revised_prompt,
            created_at_ms=self._clock.now_ms(),
            expires_at_ms=until_ms,
        )

    # ----------------------------------------------------------------------------------------------------- to callers

    async def read(self, media_id: str, size_bytes: int) -> bytes:
        return b"".join([chunk async for chunk in self._body(media_id, 0, size_bytes)])

    async def address(self, media_id: str, until_ms: int, base_url: str) -> str:
        """Signed, and good until it expires: the store's own address, or ours."""
        seconds = max(1, (until_ms - self._clock.now_ms()) // 1000)
        if direct := await self._shelf.address(key_of(media_id), seconds, {}):
            return direct
        path = f"/m/{media_id}"
        expires = until_ms // 1000
        return f"{base_url}{path}?exp={expires}&sig={self._vault.sign(_signed(path, str(expires)))}"

    async def open(self, media_id: str, query: Mapping[str, str], range_header: str | None) -> Opened:
        """What a signed address leads to."""
        path, expires = f"/m/{media_id}", query.get("exp", "")
        good = expires.isdigit() and len(expires) < 14
        if not (good and self._vault.verify(_signed(path, expires), query.get("sig", ""))):
            raise PermissionDenied("This address is not signed by the gateway.")
        if self._clock.now_ms() > int(expires) * 1000:
            raise PermissionDenied("This address has expired.")
        row = await self._store.one("get_media", id=media_id)
        if row is None or row["expires_at_ms"] <= self._clock.now_ms() - _LEEWAY_MS:
            raise NotFound("No such file.")
        return self.serve(row, range_header, int(expires))

    def serve(self, row: Row, range_header: str | None, expires: int) -> Opened:
        size = row["size_bytes"]
        start, end, status = _span(range_header, size)
        headers = {
            "content-type": row["content_type"],
            "content-length": str(end - start),
            "accept-ranges": "bytes",
            "content-disposition": f'inline; filename="{row["id"]}.{extension(row["content_type"])}"',
            "x-content-type-options": "nosniff",
            "content-security-policy": "default-src 'none'; sandbox",
            "cache-control": f"private, max-age={max(0, expires - self._clock.now_ms() // 1000)}",
            "cross-origin-resource-policy": "cross-origin",
        }
        if status == 206:
            headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
        if status == 416:
            headers["content-range"] = f"bytes */{size}"
        return Opened(status, headers, self._body(row["id"], start, end - start))

    async def _body(self, media_id: str, start: int, length: int) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._shelf.read(key_of(media_id), start, length):
                yield chunk
        except FileMissing:
            raise NotFound("No such file.") from None

    # ------------------------------------------------------------------------------------------------------ the end

    async def forget(self, rows: Sequence[Row]) -> int:
        """Remove files, then their rows: a crash between leaves rows whose repeated removal is harmless."""
        gone = 0
        for row in rows:
            gone += await self._shelf.delete(key_of(row["id"]))

        async def write(tx: Transaction) -> None:
            for row in rows:
                await tx.run("delete_media", id=row["id"])

        if rows:
            await self._store.write(write)
        return gone

    async def sweep(self) -> int:
        """Remove what has expired; called every minute."""
        removed = 0
        while rows := await self._store.all("list_expired_media", now_ms=self._clock.now_ms(), limit=200):
            removed += await self.forget(rows)
        return removed

    async def sweep_strays(self) -> int:
        """Remove what belongs to nothing; called every hour."""
        return sum([await self._shelf.delete(key) for key in await strays(self._store, self._shelf)])


async def strays(store: Store, shelf: Storage) -> list[str]:
    """Files without a row: a crash or a refusal came between the two. Young ones may still get theirs, and so may
    those of a generation that is not finished.
    """
    known = {key_of(row["id"]) for row in await store.slow("list_all_files")}
    old = [key for key, _, age in await shelf.keys() if age > _STRAY_SECONDS and key not in known]
    return [key for key in old if not await _is_awaited(store, key.rpartition("/")[2])]


async def _is_awaited(store: Store, media_id: str) -> bool:
    """Asked in this order, because a generation that ends writes its rows in the same moment."""
    maker = media_id.removeprefix("med_")[:-2]
    unfinished = await store.one("get_unfinished_generation", attempt_id=f"att_{maker}", request_id=f"req_{maker}")
    return unfinished is not None or await store.one("get_file_row", id=media_id) is not None


def _signed(path: str, expires: str) -> str:
    return f"GET\n{path}\n{expires}"


def _span(header: str | None, size: int) -> tuple[int, int, int]:
    """Start, end and status for a Range header; several ranges, or none we understand, give the whole file."""
    match = _RANGE.fullmatch(header or "")
    if not match or match[0] == "bytes=-":
        return 0, size, 200
    first, last = match[1], match[2]
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(int(last) + 1 if last else size, size)
    if start >= size or start >= end:
        return 0, 0, 416
    return start, end, 206
