"""Fetch the sounds that providers made, bring them into the format that the caller wants, and store them."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

import structlog

from penstock.failpoints import failpoint
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.long_bodies.base64_pieces import Base64Text, is_data_uri
from penstock.long_bodies.buffers import Buffer
from penstock.media.provider_files import OutputNotStored, ProviderFiles, UnusableFile
from penstock.media.sound_file import SoundFile
from penstock.media.sources import Sources
from penstock.package_extras import has_extra
from penstock.providers.spec import File
from penstock.schema import ContentCredentials, Output, Request, StoredOutput
from penstock.sound.formats import SoundFormat, content_type
from penstock.sound.sniff import is_opus, sound_format
from penstock.telemetry.call_report import provider_wait
from penstock.telemetry.tracing import span
from penstock.upstream.urls import DownloadSource
from penstock.values import OrgId

log = structlog.get_logger()
_MAX_BYTES = 256 * 1024 * 1024
_SECONDS = 900.0
_HEAD_BYTES = 64

Put = Callable[[str, Buffer | Path, str], Awaitable[None]]  # a file under its media id, with its content type


class SoundOutputs:
    """Fetches, converts and stores sounds."""

    def __init__(
        self,
        pool: WorkerPool,
        files: ProviderFiles,
        sources: Sources,
        scratch: Path,
        put: Put,
        credentials: Callable[[Request], ContentCredentials | None],
    ) -> None:
        """`credentials` is what becomes of the Content Credentials of a sound. `put` may raise OutputNotStored."""
        self._pool = pool
        self._files = files
        self._sources = sources
        self._scratch = scratch
        self._put = put
        self._credentials = credentials

    def new_file(self) -> SoundFile:
        """Where a sound is collected while it is made."""
        return SoundFile(self._scratch)

    async def store_provider_sound(
        self, media_id: str, file: File, source: DownloadSource | None, request: Request, for_org: OrgId
    ) -> StoredOutput:
        """Download a provider's file, check it, convert it to the format that the caller wants, and store it. Raises
        UnusableFile, DownloadFailed or OutputNotStored.
        """
        wanted = request.values.get("output_format", "mp3")
        with self.new_file() as original:
            try:
                await self._fetch(original, file, source)
                failpoint("fetch.mid")
                made, seconds = await self._as_wanted(original, wanted, for_org)
            except OSError as error:  # most likely the disk is full
                log.warning("output not stored", media_id=media_id, reason=error.strerror)
                raise OutputNotStored from error
            with made:
                kind = content_type(wanted)
                return await self.store(
                    media_id, made, kind, request, seconds=seconds, lyrics=file.lyrics, for_org=for_org
                )

    async def store(
        self,
        media_id: str,
        file: SoundFile,
        content_type: str,
        request: Request,
        *,
        voice: str | None = None,
        seconds: float | None = None,
        lyrics: str | None = None,
        for_org: OrgId,
    ) -> StoredOutput:
        """Store a sound that is whole and in the format that the caller wants; it is measured unless its length is
        given. Raises OutputNotStored.
        """
        try:
            sha256, data = await file.finish_sound(content_type)
        except OSError as error:
            log.warning("output not stored", media_id=media_id, reason=error.strerror)
            raise OutputNotStored from error
        if seconds is None:
            seconds = await file.raw_seconds(content_type)
        if seconds is None and has_extra("media"):
            with suppress(WorkFailed):  # it is sound, and only its length is not known
                seconds = (await self._pool.run("sound.measure", for_org=for_org, load=file.read))["seconds"]
        await self._put(media_id, data, content_type)
        output = Output(
            media_id,
            content_type,
            file.size_bytes,
            credentials=self._credentials(request),
            seconds=None if seconds is None else round(seconds, 3),
            voice=voice,
            lyrics=lyrics,
        )
        return StoredOutput(output=output, sha256=sha256)

    async def _fetch(self, into: SoundFile, file: File, source: DownloadSource | None) -> None:
        """Write a provider's file. Raises UnusableFile or DownloadFailed, and OSError when the disk is full."""
        data = file.data if file.data is not None or not is_data_uri(file.url) else file.url
        if isinstance(data, str | Base64Text):
            try:
                data = await self._sources.decode(data)
            except ValueError as error:
                raise UnusableFile("the file is not base64") from error
        if data is not None:
            into.write(bytes(data))
            return
        assert source is not None, "a file has bytes or a URL"
        with provider_wait(), span("fetch", "client"):
            await self._files.write(source, into, max_bytes=_MAX_BYTES, timeout_seconds=_SECONDS)

    async def _as_wanted(
        self, original: SoundFile, wanted: SoundFormat, for_org: OrgId
    ) -> tuple[SoundFile, float | None]:
        """The sound in this format, and its length in seconds, which is not known without the library that reads
        sounds. A file in the right format is returned as it is. Raises UnusableFile for what is not sound, and for an
        empty one.
        """
        head = await original.head(_HEAD_BYTES)
        found = sound_format(head)
        if found is None:
            raise UnusableFile("the file is not a sound", may_change=True)
        is_right = found == wanted and (found != "opus" or is_opus(head))
        if not has_extra("media"):
            if not is_right:
                raise UnusableFile(f"the sound is {found}, and this gateway cannot convert sounds")
            return original, None
        try:
            if is_right:
                seconds = (await self._pool.run("sound.measure", for_org=for_org, load=original.read))["seconds"]
                made = original
            else:
                result = await self._pool.run("sound.remake", for_org=for_org, load=original.read, target=wanted)
                seconds = result["seconds"]
                made = self.new_file()
                made.write(result["data"])
        except WorkFailed as problem:
            log.warning("sound not readable", reason=problem.message)
            raise UnusableFile("the sound cannot be decoded") from problem
        if not seconds:
            raise UnusableFile("the sound is empty")
        return made, cast(float, seconds)
