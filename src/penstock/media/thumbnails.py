"""Make small copies of images and poster frames of videos, and keep them beside the files that they were made of."""

import re
from contextlib import suppress
from functools import partial

from penstock.errors import NotFound, StorageUnavailable
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.long_bodies.buffers import Buffer, GrowingBuffer
from penstock.media.rows import MediaRow
from penstock.media.storage import FileExists, FileMissing, Storage, storage_key
from penstock.package_extras import ExtraMissing, check_extra

THUMBNAIL_WIDTHS = (160, 480, 1280)
THUMBNAIL_TYPE = "image/webp"
_LARGEST_ORIGINAL = 256 * 1024**2
_LARGEST_THUMBNAIL = 8 * 1024**2
_SUFFIX = re.compile(r"_w\d+$")


def can_have_thumbnail(content_type: str) -> bool:
    """Whether files of this type have thumbnails. A vector image is small itself."""
    return content_type.startswith("video/") or (content_type.startswith("image/") and content_type != "image/svg+xml")


def original_key(key: str) -> str:
    """The key of the file that a thumbnail was made of; that of any other file is returned as it is."""
    return _SUFFIX.sub("", key)


class Thumbnails:
    """Makes each thumbnail when it is first asked for. It has no row: it is deleted with its file."""

    def __init__(self, storage: Storage, pool: WorkerPool) -> None:
        self._storage = storage
        self._pool = pool

    async def read(self, media_id: str, width: int) -> Buffer | None:
        """The thumbnail of a file, if it was made already."""
        try:
            return await self._read(_key(media_id, width), _LARGEST_THUMBNAIL)
        except FileMissing:
            return None

    async def make(self, file: MediaRow, width: int) -> Buffer:
        """Make and store the thumbnail of a file. Raises NotFound if it cannot, FileMissing if the file is gone."""
        if not can_have_thumbnail(file.content_type) or file.size_bytes > _LARGEST_ORIGINAL:
            raise NotFound("There are no thumbnails of this file.")
        try:
            data = await self._draw(file, width)
        except (WorkFailed, ExtraMissing) as problem:
            raise NotFound(f"The thumbnail cannot be made: {problem}") from None
        with suppress(FileExists, StorageUnavailable):  # another call was quicker; or it is made again the next time
            await self._storage.create(_key(file.id, width), data, THUMBNAIL_TYPE)
        return data

    async def delete(self, media_id: str) -> None:
        """Delete the thumbnails of a file."""
        for width in THUMBNAIL_WIDTHS:
            await self._storage.delete(_key(media_id, width))

    async def _draw(self, file: MediaRow, width: int) -> Buffer:
        load = partial(self._read, storage_key(file.id), file.size_bytes)
        if file.content_type.startswith("video/"):
            check_extra("media", "it")
            made = await self._pool.run(
                "video.preview", for_org=file.org_id, load=load, variant="thumbnail", width=width
            )
        else:
            made = await self._pool.run("image.thumbnail", for_org=file.org_id, load=load, width=width)
        data: Buffer = made["data"]
        return data

    async def _read(self, key: str, max_bytes: int) -> Buffer:
        whole = GrowingBuffer()
        async for chunk in self._storage.read(key, 0, max_bytes):
            whole.write(chunk)
        return whole.finish()


def _key(media_id: str, width: int) -> str:
    return f"{storage_key(media_id)}_w{width}"
