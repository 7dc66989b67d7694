"""Fetch, check, convert and store the images and videos that callers send and providers make."""

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import structlog

from penstock.errors import InvalidRequest, StorageUnavailable, Unavailable
from penstock.event_loop import LONG_FILE_BYTES, LoopTurns, run_aside
from penstock.failpoints import failpoint
from penstock.fields import UploadedFile
from penstock.imaging.formats import Polarity
from penstock.imaging.sniff import FileInfo, is_svg, is_unconverted, sniff
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.long_bodies.base64_pieces import (
    STEP,
    Base64Text,
    data_uri_start,
    is_data_uri,
    strict_pieces,
    tolerant_pieces,
)
from penstock.long_bodies.buffers import Buffer, GrowingBuffer
from penstock.media.download import Download
from penstock.media.provider_files import ProviderFiles, UnusableFile
from penstock.media.storage import Storage, storage_key
from penstock.media.storage_writes import StorageWrites
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent, ResponseTooLarge
from penstock.net.guard import egress_rules
from penstock.providers.row_names import input_row
from penstock.providers.spec import File
from penstock.schema import Input, Output, Request, StoredOutput
from penstock.settings import Settings
from penstock.telemetry.call_report import provider_wait
from penstock.telemetry.tracing import span
from penstock.upstream.client import DownloadSource
from penstock.values import INPUT_VIDEOS, InputFile, OrgId, new_id

log = structlog.get_logger()

_INPUT_SECONDS = 20.0
_IMAGE_SECONDS = 300.0
_VIDEO_SECONDS = 1800.0
_MAX_IMAGE_BYTES = 64 * 1024 * 1024
_MAX_REDIRECTS = 3


class OutputNotStored(Exception):
    """A provider's file was downloaded, but the storage failed."""


class Transfer:
    """Brings files from callers and providers into the storage."""

    def __init__(
        self,
        storage: Storage,
        writes: StorageWrites,
        pool: WorkerPool,
        http_client: HttpClient,
        settings: Settings,
        scratch: Path,
    ) -> None:
        self._storage = storage
        self._writes = writes
        self._pool = pool
        self._http_client = http_client
        self._settings = settings
        self._scratch = scratch
        self._turns = LoopTurns()
        self._egress = egress_rules(settings)
        self._files = ProviderFiles(http_client, self._egress)

    # --------------------------------------------------------------------------------------------------------- inputs

    async def load_input(
        self, role: str, source: UploadedFile | str | Base64Text, param: str, *, for_org: OrgId
    ) -> InputFile:
        """Read an uploaded file, a data URI or a URL, and return it as a clean image, or as a video that was measured.

        Raises InvalidRequest, which names the parameter, when it cannot be fetched or is not usable, and Unavailable
        when that is not the caller's fault.
        """
        max_bytes = self._settings.input_video_bytes if role in INPUT_VIDEOS else self._settings.image_bytes
        data = await self._read_source(source, param, max_bytes, for_org)
        if len(data) > max_bytes:
            raise InvalidRequest(f"`{param}` may have at most {max_bytes} bytes.", param=param)
        if role in INPUT_VIDEOS:
            return await self._measure_video(role, data, param, for_org)
        try:
            image = await self._pool.run("image.normalise_input", for_org=for_org, data=data)
            if role == "mask" and image["content_type"] == "image/png":
                image = await self._pool.run(
                    "image.convert_mask", for_org=for_org, data=image["data"], polarity="alpha"
                )
        except WorkFailed as error:
            reason = error.message if error.kind == "refused" else "it could not be read"
            raise InvalidRequest(f"`{param}` is not a usable image: {reason}", param=param) from None
        if role == "mask" and image["content_type"] != "image/png":
            raise InvalidRequest("`mask` must be a PNG.", param=param)
        return InputFile(image["data"], image["content_type"], image["width"], image["height"], role)

    async def _measure_video(self, role: str, data: Buffer, param: str, for_org: OrgId) -> InputFile:
        try:
            video = await self._pool.run("video.measure", for_org=for_org, data=data)
        except WorkFailed as error:
            reason = error.message if error.kind == "refused" else "it could not be read"
            raise InvalidRequest(f"`{param}` is not a usable video: {reason}", param=param) from None
        return InputFile(data, **video, role=role)

    async def _read_source(
        self, source: UploadedFile | str | Base64Text, param: str, max_bytes: int, for_org: OrgId
    ) -> Buffer:
        if isinstance(source, UploadedFile):
            return source.data
        if isinstance(source, Base64Text) or is_data_uri(source):
            try:
                return await self._decode(source, strict=True)
            except ValueError:
                raise InvalidRequest(f"`{param}` has a data URI that is not base64.", param=param) from None
        try:
            response = await self._http_client.fetch(
                source,
                egress=self._egress,
                max_bytes=max_bytes,
                timeout_seconds=_INPUT_SECONDS,
                max_redirects=_MAX_REDIRECTS,
                share=for_org,
            )
        except (NotSent, MaybeSent) as error:
            if isinstance(error, NotSent) and error.local:
                raise Unavailable(f"The URL of `{param}` cannot be fetched now: {error}.") from None
            size = f" in {max_bytes} bytes" if isinstance(error, ResponseTooLarge) else ""
            raise InvalidRequest(f"`{param}` has a URL that could not be fetched{size}.", param=param) from None
        if response.status != 200:
            raise InvalidRequest(f"`{param}` has a URL that was answered with HTTP {response.status}.", param=param)
        return response.body

    async def store_inputs(self, inputs: Sequence[InputFile], at_ms: int) -> list[tuple[Input, bytes]]:
        """Store input files before the request is accepted; return each as its record, with its SHA-256."""
        stored = []
        for file in inputs:
            media_id = new_id("med", at_ms)
            with self._writes.watching():
                await self._storage.create(storage_key(media_id), file.data, file.content_type)
            record = Input(
                role=file.role,
                media_id=media_id,
                content_type=file.content_type,
                width=file.width,
                height=file.height,
                size_bytes=len(file.data),
                seconds=file.seconds,
                frames=file.frames,
            )
            stored.append((record, await run_aside(len(file.data), _sha256, file.data)))
        return stored

    async def delete_inputs(self, stored: Sequence[Input]) -> None:
        """Delete the input files of a request that was not accepted. A file that cannot be deleted now has no row, so
        it is deleted with the stray files.
        """
        for file in stored:
            with suppress(StorageUnavailable):
                await self._storage.delete(storage_key(file.media_id))

    async def read_inputs(
        self,
        request: Request,
        polarity: Polarity = "alpha",
        max_bytes: int | None = None,
        *,
        for_org: OrgId,
        in_memory: Sequence[InputFile] = (),
        urls: Mapping[str, str] | None = None,
    ) -> dict[str, list[InputFile]]:
        """Return the request's input files by their names in tables, and convert images to what the provider takes: the
        mask to its polarity, and images with more than `max_bytes` to smaller files. They are read from the storage,
        unless they are in memory. Of files that have one of the `urls`, by media id, only the URL is returned.
        """
        files: dict[str, list[InputFile]] = {}
        for position, stored in enumerate(request.inputs):
            url = (urls or {}).get(stored.media_id, "")
            data = b"" if url else in_memory[position].data if in_memory else await self._read_stored(stored)
            if stored.role == "mask" and polarity != "alpha":
                mask = await self._pool.run("image.convert_mask", for_org=for_org, data=data, polarity=polarity)
                data = mask["data"]
            file = InputFile(
                data,
                stored.content_type,
                stored.width,
                stored.height,
                stored.role,
                seconds=stored.seconds,
                frames=stored.frames,
                url=url,
            )
            if max_bytes is not None and len(data) > max_bytes and stored.role not in ("mask", *INPUT_VIDEOS):
                small = await self._pool.run("image.limit_bytes", for_org=for_org, data=data, max_bytes=max_bytes)
                file = InputFile(**small, role=stored.role)
            files.setdefault(input_row(stored.role), []).append(file)
        return files

    async def _read_stored(self, stored: Input) -> Buffer:
        whole = GrowingBuffer(stored.size_bytes)
        async for chunk in self._storage.read(storage_key(stored.media_id), 0, stored.size_bytes):
            whole.write(chunk)
        return whole.finish()

    # -------------------------------------------------------------------------------------------------------- outputs

    async def store_output(
        self, media_id: str, file: File, source: DownloadSource | None, request: Request, *, for_org: OrgId
    ) -> StoredOutput:
        """Download a provider's file, check its type, convert it to the requested format, and store it.

        `source` is where to download it, for a file that has no bytes of its own. Raises UnusableFile, DownloadFailed
        or OutputNotStored.
        """
        if request.task == "video" and source is not None and not is_data_uri(file.url):
            return await self._store_video(media_id, source)
        original = await self._read_output(file, source)
        data: Buffer = original
        width: int | None = None
        height: int | None = None
        found = sniff(original)
        if found is None and request.task != "video" and is_svg(original):
            data, content_type, width, height = await self._clean_svg(original, for_org)
        elif found is None:
            raise UnusableFile("the file type is unknown", may_change=source is not None)
        elif found.content_type.startswith("image/") and request.task != "video":
            data, content_type, width, height = await self._convert_output(original, found, request, for_org)
        elif found.content_type.startswith("video/") and request.task == "video":
            content_type = found.content_type
        else:
            raise UnusableFile(f"the file type is {found.content_type}")
        sha256 = await self._put_and_digest(media_id, data, content_type)
        output = Output(
            media_id=media_id,
            content_type=content_type,
            size_bytes=len(data),
            width=width,
            height=height,
            revised_prompt=file.revised_prompt,
        )
        is_sent = request.values.get("response_format") == "b64_json"
        return StoredOutput(output=output, sha256=sha256, data=data if is_sent else None)

    async def store_file(self, output: Output, data: Buffer) -> None:
        """Store the bytes of an output that is already checked; raises OutputNotStored."""
        await self._put(output.media_id, data, output.content_type)

    async def copy_file(self, source_key: str, output: Output) -> None:
        """Store a copy of a stored file as an output; raises FileMissing or OutputNotStored."""
        try:
            with span("store"), self._writes.watching():
                await self._storage.copy(source_key, storage_key(output.media_id))
        except StorageUnavailable as error:
            raise _not_stored(output.media_id, error) from error

    async def _put_and_digest(self, media_id: str, data: Buffer, content_type: str) -> bytes:
        """Store a file and return its SHA-256, which for a large one is computed while the disk is waited for."""
        if len(data) <= LONG_FILE_BYTES:
            await self._put(media_id, data, content_type)
            return _sha256(data)
        storing = asyncio.ensure_future(self._put(media_id, data, content_type))
        try:
            return await run_aside(len(data), _sha256, data)
        finally:
            await storing

    async def _put(self, media_id: str, data: Buffer | Path, content_type: str) -> None:
        try:
            with span("store"), self._writes.watching():
                await self._storage.replace(storage_key(media_id), data, content_type)
        except StorageUnavailable as error:
            raise _not_stored(media_id, error) from error

    async def _clean_svg(self, data: Buffer, for_org: OrgId) -> tuple[Buffer, str, int, int]:
        """Return a vector image without scripts and references; never the original, whatever the reason."""
        try:
            with span("convert"):
                image = await self._pool.run("image.clean_svg", for_org=for_org, data=data)
        except WorkFailed as error:
            raise UnusableFile(error.message) from error
        return image["data"], image["content_type"], image["width"], image["height"]

    async def _convert_output(
        self, data: Buffer, found: FileInfo, request: Request, for_org: OrgId
    ) -> tuple[Buffer, str, int, int]:
        """Return data, content type, width and height in the requested format; the same bytes if they have it."""
        output_format = request.values.get("output_format", "png")
        compression = request.values.get("output_compression", 100)
        if is_unconverted(found, output_format, compression):
            return data, found.content_type, found.width, found.height
        try:
            with span("convert"):
                image = await self._pool.run(
                    "image.convert",
                    for_org=for_org,
                    data=data,
                    output_format=output_format,
                    output_compression=compression,
                )
        except WorkFailed as error:
            if error.kind == "refused" or not found.width:
                raise UnusableFile(error.message) from error
            # The limits of this gateway, not the provider, are the reason: what was paid for is delivered as it is.
            log.warning("output not converted", output_format=output_format, reason=error.message)
            return data, found.content_type, found.width, found.height
        return image["data"], image["content_type"], image["width"], image["height"]

    async def _read_output(self, file: File, source: DownloadSource | None) -> Buffer:
        """Return the bytes of a file."""
        data = file.data if file.data is not None or not is_data_uri(file.url) else file.url
        if isinstance(data, str | Base64Text):
            try:
                return await self._decode(data)
            except ValueError as error:
                raise UnusableFile("the file is not base64") from error
        if data is not None:
            return data
        assert source is not None, "a file has bytes or a URL"
        with provider_wait(), span("fetch", "client"):
            return await self._files.read(source, max_bytes=_MAX_IMAGE_BYTES, timeout_seconds=_IMAGE_SECONDS)

    async def _store_video(self, media_id: str, source: DownloadSource) -> StoredOutput:
        """Download a video, never a large one as a whole into memory, check its type, and store it."""
        with Download(self._scratch) as download:
            try:
                with provider_wait(), span("fetch", "client"):
                    await self._files.write(
                        source, download, max_bytes=self._settings.video_bytes, timeout_seconds=_VIDEO_SECONDS
                    )
            except OSError as error:  # most likely the disk is full
                log.warning("output not stored", media_id=media_id, reason=error.strerror)
                raise OutputNotStored from error
            failpoint("fetch.mid")
            video, data = await download.finish()
            if not video.content_type.startswith("video/"):
                raise UnusableFile("the file is not a video", may_change=not video.content_type)
            if not video.is_complete:
                raise UnusableFile("the video is not complete", may_change=True)
            await self._put(media_id, data, video.content_type)
        output = Output(media_id=media_id, content_type=video.content_type, size_bytes=video.size_bytes)
        return StoredOutput(output=output, sha256=video.sha256)

    # --------------------------------------------------------------------------------------------------------- base64

    async def _decode(self, text: str | Base64Text, *, strict: bool = False) -> Buffer:
        """Decode base64. Raises ValueError; unless `strict`, whatever else is in it is left out."""
        if isinstance(text, Base64Text):
            await self._do_steps(text.decode(), len(text))
            if strict and not text.is_clean:
                raise ValueError("not only base64")
            return text.file
        start = data_uri_start(text) if is_data_uri(text) else 0
        try:
            return await self._join_pieces(strict_pieces(text, start), len(text) // 4 * 3)
        except ValueError:
            if strict:
                raise
            return await self._join_pieces(tolerant_pieces(text, start), len(text) // 4 * 3)

    async def _join_pieces(self, pieces: Iterator[bytes], size_bytes: int) -> bytearray:
        """Return the pieces one after the other, about so many bytes; other tasks run before each is made."""
        whole = GrowingBuffer(size_bytes)
        await self._do_steps(map(whole.write, pieces), size_bytes)
        return whole.finish()

    async def _do_steps(self, steps: Iterator[None], size_bytes: int) -> None:
        """Do work on so many bytes step by step; other tasks run before each step."""
        await self._turns.wait_turn(min(size_bytes, STEP))
        for _ in steps:
            await self._turns.wait_turn(min(size_bytes, STEP))


def _sha256(data: Buffer) -> bytes:
    return hashlib.sha256(data).digest()


def _not_stored(media_id: str, error: StorageUnavailable) -> OutputNotStored:
    log.warning("output not stored", media_id=media_id, reason=str(error.__cause__ or error)[:200])
    return OutputNotStored()
