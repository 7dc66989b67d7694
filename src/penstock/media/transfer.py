"""Fetch, check, convert and store the images, videos and sounds that callers send and providers make."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import structlog

from penstock.errors import InvalidRequest, StorageUnavailable
from penstock.event_loop import LONG_FILE_BYTES, run_aside
from penstock.failpoints import failpoint
from penstock.fields import UploadedFile
from penstock.imaging.formats import Polarity
from penstock.imaging.marks import VIDEO_HEAD_BYTES
from penstock.imaging.sniff import is_svg, sniff
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.long_bodies.base64_pieces import (
    Base64Text,
    is_data_uri,
)
from penstock.long_bodies.buffers import Buffer, GrowingBuffer
from penstock.media.download import Download
from penstock.media.finishing import Finisher
from penstock.media.provider_files import OutputNotStored as OutputNotStored
from penstock.media.provider_files import ProviderFiles, UnusableFile
from penstock.media.sound_outputs import SoundOutputs
from penstock.media.sources import Sources
from penstock.media.storage import Storage, storage_key
from penstock.media.storage_writes import StorageWrites
from penstock.net.checked_urls import egress_rules
from penstock.net.client import HttpClient
from penstock.provenance.sealer import NotSealed, Origin, SealedImage
from penstock.providers.row_names import input_row
from penstock.providers.spec import File
from penstock.schema import ContentCredentials, Input, Output, Request, StoredOutput
from penstock.settings import Settings
from penstock.telemetry.call_report import provider_wait
from penstock.telemetry.tracing import span
from penstock.upstream.urls import DownloadSource
from penstock.values import INPUT_VIDEOS, InputFile, OrgId, new_id

log = structlog.get_logger()

_IMAGE_SECONDS = 300.0
_VIDEO_SECONDS = 1800.0
_MAX_IMAGE_BYTES = 64 * 1024 * 1024


class OutputNotSealed(OutputNotStored):
    """An output could not get the Content Credentials that its caller requires."""

    def __init__(self, cause: NotSealed) -> None:
        super().__init__(str(cause))
        self.may_change = cause.may_change


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
        finisher: Finisher,
    ) -> None:
        self._storage = storage
        self._writes = writes
        self._finisher = finisher
        self._pool = pool
        self._settings = settings
        self._scratch = scratch
        egress = egress_rules(settings)
        self.sources = Sources(http_client, egress)
        self.provider_files = ProviderFiles(http_client, egress)
        unsealed = finisher.sealer.unsealed
        self.sounds = SoundOutputs(pool, self.provider_files, self.sources, scratch, self._put, unsealed)

    # --------------------------------------------------------------------------------------------------------- inputs

    async def load_input(
        self, role: str, source: UploadedFile | str | Base64Text, param: str, *, for_org: OrgId, number: int = 0
    ) -> InputFile:
        """Read an uploaded file, a data URI or a URL, and return it as a clean image, or as a video that was measured.

        With a `number`, what its Content Credentials say is kept beside it; cleaning removes them from the file.
        Raises InvalidRequest, which names the parameter, when it cannot be fetched or is not usable, and Unavailable
        when that is not the caller's fault.
        """
        max_bytes = self._settings.input_video_bytes if role in INPUT_VIDEOS else self._settings.image_bytes
        data = await self.sources.read(source, param, max_bytes, for_org)
        if len(data) > max_bytes:
            raise InvalidRequest(f"`{param}` may have at most {max_bytes} bytes.", param=param)
        loaded = await self._clean(role, data, param, for_org)
        if number:
            credentials = await self._finisher.sealer.archive_input(data, number, for_org=for_org)
            loaded = replace(loaded, credentials=credentials)
        return replace(loaded, received=await run_aside(len(data), _sha256, data))

    async def _clean(self, role: str, data: Buffer, param: str, for_org: OrgId) -> InputFile:
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
                credentials=file.credentials,
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
        self,
        media_id: str,
        file: File,
        source: DownloadSource | None,
        request: Request,
        origin: Origin,
        *,
        for_org: OrgId,
    ) -> StoredOutput:
        """Download a provider's file, check its type, convert it to the requested format, seal it, and store it.

        `source` is where to download it, for a file that has no bytes of its own. Raises UnusableFile, DownloadFailed,
        OutputNotStored or OutputNotSealed.
        """
        if request.task == "sound":
            return await self.sounds.store_provider_sound(media_id, file, source, request, for_org)
        if request.task == "video" and source is not None and not is_data_uri(file.url):
            stored = await self._store_video(media_id, source, request, origin, for_org)
            return replace(stored, output=msgspec.structs.replace(stored.output, revised_prompt=file.revised_prompt))
        original = await self._read_output(file, source)
        try:
            image, credentials = await self._finish(original, request, origin, for_org, may_change=source is not None)
        except NotSealed as error:
            raise OutputNotSealed(error) from error
        sha256 = await self._put_and_digest(media_id, image.data, image.content_type)
        output = Output(
            media_id=media_id,
            content_type=image.content_type,
            size_bytes=len(image.data),
            width=image.width or None,
            height=image.height or None,
            revised_prompt=file.revised_prompt,
            credentials=credentials,
        )
        is_sent = request.values.get("response_format") == "b64_json"
        return StoredOutput(output=output, sha256=sha256, data=image.data if is_sent else None)

    async def _finish(
        self, data: Buffer, request: Request, origin: Origin, for_org: OrgId, *, may_change: bool
    ) -> tuple[SealedImage, ContentCredentials | None]:
        """Bring the bytes of an output into the form in which they are stored."""
        found = sniff(data)
        if found is None and request.task != "video" and is_svg(data):
            return await self._finisher.finish_svg(data, request, origin, for_org=for_org)
        if found is None:
            raise UnusableFile("the file type is unknown", may_change=may_change)
        if found.content_type.startswith("image/") and request.task != "video":
            return await self._finisher.finish_image(data, found, request, origin, for_org=for_org)
        if not (found.content_type.startswith("video/") and request.task == "video"):
            raise UnusableFile(f"the file type is {found.content_type}")

        async def load() -> Buffer:
            return data

        sealed, credentials = await self._finisher.sealer.seal_video(
            data, len(data), found.content_type, load, request, origin, for_org=for_org
        )
        return SealedImage(data if sealed is None else sealed, found.content_type, 0, 0), credentials

    async def store_file(self, output: Output, data: Buffer) -> None:
        """Store the bytes of an output that is already checked; raises OutputNotStored."""
        await self._put(output.media_id, data, output.content_type)

    async def store_text(self, output: Output, data: bytes) -> bytes:
        """Store a text that was written here, and return its SHA-256; raises OutputNotStored."""
        return await self._put_and_digest(output.media_id, data, output.content_type)

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

    async def _read_output(self, file: File, source: DownloadSource | None) -> Buffer:
        """Return the bytes of a file."""
        data = file.data if file.data is not None or not is_data_uri(file.url) else file.url
        if isinstance(data, str | Base64Text):
            try:
                return await self.sources.decode(data)
            except ValueError as error:
                raise UnusableFile("the file is not base64") from error
        if data is not None:
            return data
        assert source is not None, "a file has bytes or a URL"
        with provider_wait(), span("fetch", "client"):
            return await self.provider_files.read(source, max_bytes=_MAX_IMAGE_BYTES, timeout_seconds=_IMAGE_SECONDS)

    async def _store_video(
        self, media_id: str, source: DownloadSource, request: Request, origin: Origin, for_org: OrgId
    ) -> StoredOutput:
        """Download a video, check its type, seal it, and store it. One that is too large to be sealed is never as a
        whole in memory.
        """
        with Download(self._scratch) as download:
            try:
                with provider_wait(), span("fetch", "client"):
                    await self.provider_files.write(
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
            try:
                sealed, credentials = await self._finisher.sealer.seal_video(
                    await download.head(VIDEO_HEAD_BYTES),
                    video.size_bytes,
                    video.content_type,
                    download.read,
                    request,
                    origin,
                    for_org=for_org,
                )
            except NotSealed as error:
                raise OutputNotSealed(error) from error
            size_bytes = video.size_bytes
            sha256 = video.sha256
            if sealed is not None:
                size_bytes = len(sealed)
                sha256 = await self._put_and_digest(media_id, sealed, video.content_type)
            else:
                await self._put(media_id, data, video.content_type)
        output = Output(media_id, video.content_type, size_bytes, credentials=credentials)
        return StoredOutput(output=output, sha256=sha256)


def _sha256(data: Buffer) -> bytes:
    return hashlib.sha256(data).digest()


def _not_stored(media_id: str, error: StorageUnavailable) -> OutputNotStored:
    log.warning("output not stored", media_id=media_id, reason=str(error.__cause__ or error)[:200])
    return OutputNotStored()
