"""Record, sign, serve and delete the files of generations."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec

from penstock.clock import Clock
from penstock.errors import NotFound, PermissionDenied
from penstock.imaging.formats import disposition, extension
from penstock.imaging.workers import WorkerPool
from penstock.long_bodies.buffers import Buffer, GrowingBuffer
from penstock.media.rows import MediaRow, get_media
from penstock.media.storage import MAX_URL_SECONDS, RECORDING_FILE_PREFIX, FileMissing, Storage, storage_key
from penstock.media.thumbnails import THUMBNAIL_TYPE, THUMBNAIL_WIDTHS, Thumbnails, can_have_thumbnail, original_key
from penstock.schema import Input, Output, Response, StoredOutput
from penstock.store.base import Row, Store, Transaction
from penstock.values import OrgId
from penstock.vault import Vault

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_NAME = re.compile(r"[A-Za-z0-9-]{1,80}")
_EXPIRED_LEEWAY_MS = 60_000
_EXPIRED_PAGE_ROWS = 200
_STRAY_SECONDS = 3600.0
_SAFE_HEADERS = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; sandbox",
    "cross-origin-resource-policy": "cross-origin",
}


class MediaFiles:
    """The stored files: their rows, signed URLs and deletion."""

    def __init__(self, store: Store, storage: Storage, vault: Vault, clock: Clock, pool: WorkerPool) -> None:
        self._store = store
        self._thumbnails = Thumbnails(storage, pool)
        self._storage = storage
        self._vault = vault
        self._clock = clock

    # ----------------------------------------------------------------------------------------------------------- rows

    def output_rows(self, org_id: OrgId, request_id: str, outputs: Sequence[StoredOutput], until_ms: int) -> list[Row]:
        """The rows of outputs, for `add_media`."""
        return [
            self._row(org_id, request_id, "output", position, stored.output, stored.sha256, until_ms)
            for position, stored in enumerate(outputs)
        ]

    def seal_rows(self, org_id: OrgId, request_id: str, outputs: Sequence[StoredOutput]) -> list[Row]:
        """The rows by which outputs are found again when their files are gone, for `add_seal`."""
        return [
            {
                "org_id": org_id,
                "sha256": stored.sha256,
                "media_id": stored.output.media_id,
                "request_id": request_id,
                "manifest": stored.output.credentials.manifest,
                "status": stored.output.credentials.status,
                "credentials": msgspec.json.encode(stored.output.credentials).decode(),
                "created_at_ms": self._clock.now_ms(),
            }
            for stored in outputs
            if stored.output.credentials
        ]

    def input_rows(
        self, org_id: OrgId, request_id: str, inputs: Sequence[tuple[Input, bytes]], until_ms: int
    ) -> list[Row]:
        """The rows of inputs, which come with their SHA-256, for `add_media`."""
        rows = []
        for position, (stored, sha256) in enumerate(inputs):
            file = Output(stored.media_id, stored.content_type, stored.size_bytes, stored.width, stored.height)
            role = stored.role if stored.role in ("image", "mask") else "reference"
            rows.append(self._row(org_id, request_id, role, position, file, sha256, until_ms))
        return rows

    def _row(
        self, org_id: OrgId, request_id: str, role: str, position: int, file: Output, sha256: bytes, until_ms: int
    ) -> Row:
        return {
            "id": file.media_id,
            "org_id": org_id,
            "request_id": request_id,
            "role": role,
            "position": position,
            "content_type": file.content_type,
            "size_bytes": file.size_bytes,
            "sha256": sha256,
            "width": file.width,
            "height": file.height,
            "revised_prompt": file.revised_prompt,
            "delivered": msgspec.json.encode(file.copy_fields).decode() if file.copy_fields else None,
            "created_at_ms": self._clock.now_ms(),
            "expires_at_ms": until_ms,
        }

    # -------------------------------------------------------------------------------------------------------- serving

    async def read(self, media_id: str, size_bytes: int) -> Buffer:
        """Read a whole file; raise NotFound when it is gone."""
        whole = GrowingBuffer(size_bytes)
        async for chunk in self.read_chunks(media_id, 0, size_bytes):
            whole.write(chunk)
        return whole.finish()

    async def signed_url(self, media_id: str, until_ms: int, base_url: str) -> str:
        """Return a URL that works until then, but for seven days at most: anybody who sees it can use it.

        It is a URL of the object store if that signs URLs, otherwise of the gateway.
        """
        now_ms = self._clock.now_ms()
        until_ms = min(until_ms, now_ms + MAX_URL_SECONDS * 1000)
        seconds = max(1, (until_ms - now_ms) // 1000)
        if direct := await self._storage.signed_url(storage_key(media_id), seconds):
            return direct
        path = f"/m/{media_id}"
        expires = until_ms // 1000
        return f"{base_url}{path}?exp={expires}&sig={self._vault.sign(_signed_text(path, str(expires)))}"

    def thumbnail_url(self, media_id: str, content_type: str, until_ms: int, base_url: str) -> str | None:
        """Return the URL of a small copy, which does not open the file itself; None for a type that has none.

        Its width may be replaced by any of THUMBNAIL_WIDTHS.
        """
        if not can_have_thumbnail(content_type):
            return None
        path = f"/m/{media_id}"
        expires = until_ms // 1000
        signature = self._vault.sign(_thumbnail_text(path, str(expires)))
        return f"{base_url}{path}?exp={expires}&sig={signature}&w={THUMBNAIL_WIDTHS[1]}"

    def shared_url(self, media_id: str, version: int, until_ms: int, base_url: str) -> str:
        """Return a URL that works until then, unless the shares of the file are revoked or it is deleted before."""
        path = f"/m/{media_id}"
        expires = until_ms // 1000
        signature = self._vault.sign(_shared_text(path, str(expires), str(version)))
        return f"{base_url}{path}?exp={expires}&share={version}&sig={signature}"

    async def open(self, media_id: str, query: Mapping[str, str], range_header: str | None) -> Response:
        """Serve a file by its signed URL, or with `w` a small copy of it.

        Raises PermissionDenied when the signature is wrong or has expired, NotFound when the file is gone.
        """
        width = int(query.get("w") or 0)
        expires_ms = self._check_signature(f"/m/{media_id}", query, wants_thumbnail=bool(width))
        file = await get_media(self._store, media_id)
        if file is None or file.expires_at_ms <= self._clock.now_ms() - _EXPIRED_LEEWAY_MS:
            raise NotFound("No such file.")
        if query.get("share") not in (None, str(file.share_version)):
            raise PermissionDenied("This file is not shared any more.")
        if width:
            return await self.thumbnail_response(file, width, expires_ms // 1000)
        return self.file_response(file, range_header, expires_ms // 1000, query.get("name", ""))

    def _check_signature(self, path: str, query: Mapping[str, str], *, wants_thumbnail: bool) -> int:
        """Return when a URL expires. Raises PermissionDenied unless it is signed and valid now.

        A URL of a file opens its thumbnails too.
        """
        expires = query.get("exp", "")
        texts = [_signed_text(path, expires), *([_thumbnail_text(path, expires)] if wants_thumbnail else [])]
        if "share" in query:
            texts = [_shared_text(path, expires, query["share"])]
        is_number = expires.isdigit() and len(expires) < 14
        if not (is_number and any(self._vault.verify(text, query.get("sig", "")) for text in texts)):
            raise PermissionDenied("This URL is not signed by the gateway.")
        expires_ms = int(expires) * 1000
        if self._clock.now_ms() > expires_ms:
            raise PermissionDenied("This URL has expired.")
        return expires_ms

    async def thumbnail_response(self, file: MediaRow, width: int, expires: int) -> Response:
        """The response with a small copy of a file. Raises NotFound if there is none."""
        data = await self._thumbnails.read(file.id, width)
        if data is None:
            data = await self._make_thumbnail(file, width)
        headers = {**_SAFE_HEADERS, "cache-control": self._caching(expires)}
        return Response(body=bytes(data), media_type=THUMBNAIL_TYPE, headers=headers)

    async def _make_thumbnail(self, file: MediaRow, width: int) -> Buffer:
        try:
            data = await self._thumbnails.make(file, width)
        except FileMissing:
            raise NotFound("No such file.") from None
        if await get_media(self._store, file.id) is None:  # it was purged meanwhile
            await self._thumbnails.delete(file.id)
            raise NotFound("No such file.")
        return data

    def _caching(self, expires: int) -> str:
        return f"private, max-age={max(0, expires - self._clock.now_ms() // 1000)}"

    def file_response(self, file: MediaRow, range_header: str | None, expires: int, name: str = "") -> Response:
        """The response with the file of a row; `expires` is when caches drop it, in seconds since 1970. It is saved
        under its id, or a `name` of letters, digits and hyphens.
        """
        size = file.size_bytes
        start, end, status = _requested_range(range_header, size)
        saved_as = f"{name if _NAME.fullmatch(name) else file.id}.{extension(file.content_type)}"
        headers = {
            "content-type": file.content_type,
            "content-length": str(end - start),
            "accept-ranges": "bytes",
            "content-disposition": f'{disposition(file.content_type)}; filename="{saved_as}"',
            "cache-control": self._caching(expires),
            **_SAFE_HEADERS,
        }
        if file.credentials:
            headers["x-service-content-credentials"] = msgspec.json.decode(file.credentials)["status"]
        if status == 206:
            headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
        if status == 416:
            headers["content-range"] = f"bytes */{size}"
        return Response(status=status, headers=headers, chunks=self.read_chunks(file.id, start, end - start))

    async def read_chunks(self, media_id: str, start: int, length: int) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._storage.read(storage_key(media_id), start, length):
                yield chunk
        except FileMissing:
            raise NotFound("No such file.") from None

    # ------------------------------------------------------------------------------------------------------- deletion

    async def delete(self, media_ids: Sequence[str]) -> int:
        """Delete files and their rows; return how many files there were.

        They expire first. So whatever interrupts this, no row promises a file that is gone, and `delete_expired` does
        the rest.
        """
        await self._change_rows("expire_media", media_ids)
        return await self._delete_expired(media_ids)

    async def delete_expired(self) -> int:
        """Delete what has expired; return how many files there were."""
        deleted = 0
        while rows := await self._store.all(
            "list_expired_media", now_ms=self._clock.now_ms(), limit=_EXPIRED_PAGE_ROWS
        ):
            deleted += await self._delete_expired([row["id"] for row in rows])
        return deleted

    async def _delete_expired(self, media_ids: Sequence[str]) -> int:
        deleted = 0
        for media_id in media_ids:
            await self._thumbnails.delete(media_id)
            deleted += await self._storage.delete(storage_key(media_id))
        await self._change_rows("delete_media", media_ids)
        return deleted

    async def _change_rows(self, query: str, media_ids: Sequence[str]) -> None:
        async def write(tx: Transaction) -> None:
            for media_id in sorted(media_ids):
                await tx.run(query, id=media_id)

        if media_ids:
            await self._store.write(write)

    async def delete_strays(self) -> int:
        """Delete files that have no row; return how many there were."""
        return sum([await self._storage.delete(key) for key in await find_strays(self._store, self._storage)])


async def find_strays(store: Store, storage: Storage) -> list[str]:
    """Return the keys of files without a row, left by a crash or a refusal between storing and recording.

    Files younger than an hour, and those of a generation that is not finished, may still get their row.
    """
    known = {storage_key(row["id"]) for row in await store.slow("list_all_files")}
    old = [
        file.key
        for file in await storage.list_files()
        if file.age_seconds > _STRAY_SECONDS and original_key(file.key) not in known
    ]
    return [key for key in old if not await _is_awaited(store, original_key(key).rpartition("/")[2])]


async def _is_awaited(store: Store, media_id: str) -> bool:
    """Whether a file belongs to an unfinished generation, or has got its row meanwhile.

    The generation is looked up first, because at its end the rows are written in the same transaction.
    """
    origin = media_id.removeprefix("med_").removeprefix(RECORDING_FILE_PREFIX)[:-2]
    unfinished = await store.one("get_unfinished_generation", attempt_id=f"att_{origin}", request_id=f"req_{origin}")
    return unfinished is not None or await store.one("get_file_row", id=media_id) is not None


def _signed_text(path: str, expires: str) -> str:
    return f"GET\n{path}\n{expires}"


def _thumbnail_text(path: str, expires: str) -> str:
    return f"{_signed_text(path, expires)}\nthumbnail"


def _shared_text(path: str, expires: str, version: str) -> str:
    return f"{_signed_text(path, expires)}\nshared {version}"


def _requested_range(header: str | None, size: int) -> tuple[int, int, int]:
    """Return start, end and status for a Range header; several ranges, or a malformed one, mean the whole file."""
    match = _RANGE.fullmatch(header or "")
    if not match or match[0] == "bytes=-":
        return 0, size, 200
    first = match[1]
    last = match[2]
    if not first:
        start = max(0, size - int(last))
        end = size
    else:
        start = int(first)
        end = min(int(last) + 1 if last else size, size)
    if start >= size or start >= end:
        return 0, 0, 416
    return start, end, 206
