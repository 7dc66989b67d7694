"""Bring pictures and films in, from callers and from providers: fetched, checked, converted, durable."""

import asyncio
import base64
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Literal, TypeVar, cast

import msgspec

from penstock.errors import InvalidRequest, StorageUnavailable
from penstock.event_loop import Turns
from penstock.failpoints import failpoint
from penstock.imaging import convert
from penstock.imaging.convert import Polarity
from penstock.imaging.sniff import sniff
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.media.storage import Storage, key_of
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent, ResponseTooLarge, UrlBlocked
from penstock.net.guard import EgressRules
from penstock.providers.spec import File, HttpRequest
from penstock.schema import Input, Output, Request, StoredOutput, UploadedFile
from penstock.settings import Settings
from penstock.upstream.client import DownloadSource
from penstock.values import InputImage, new_id

_FETCH_SECONDS = 20.0
_PROVIDER_SECONDS = 300.0
_VIDEO_SECONDS = 1800.0
_IMAGE_BYTES = 64 * 1024 * 1024
_BASE64_STEP = 1024 * 1024  # characters; a millisecond or two
Whole = TypeVar("Whole", bytes, str)
_TABLE_NAMES = {"image": "images", "mask": "mask", "reference": "input_reference"}


class UnusableFile(Exception):
    """What a provider delivered is not what it says."""


class DownloadFailed(Exception):
    """What a provider made is not here yet; it may come if it is asked for again."""


class StorageFull(Exception):
    """What a provider made is here, and there is nowhere to keep it."""


@dataclass(frozen=True, slots=True)
class LoadedInput:
    """A caller's picture, checked and cleaned, before it has a place."""

    role: Literal["image", "mask", "reference"]
    data: bytes
    content_type: str
    width: int
    height: int


class Transfer:
    """Everything that comes in from outside passes here before it is kept."""

    def __init__(self, shelf: Storage, pool: WorkerPool, wire: HttpClient, settings: Settings, scratch: Path) -> None:
        self._shelf, self._pool, self._wire, self._settings = shelf, pool, wire, settings
        self._scratch = scratch
        self._turns = Turns()
        self._egress = EgressRules(settings.egress_allow_cidrs, settings.egress_allow_hosts)

    # -------------------------------------------------------------------------------------------------- from callers

    async def load(self, role: str, source: UploadedFile | str, param: str) -> LoadedInput:
        """A file, data URI or address that a caller sent, as a clean picture; a 400 that names the field otherwise."""
        data = await self._caller_bytes(source, param)
        if len(data) > self._settings.image_bytes:
            raise InvalidRequest(f"`{param}` may have at most {self._settings.image_bytes} bytes.", param=param)
        try:
            made = await self._pool.run("image.normalise_input", data=data)
            if role == "mask" and made["content_type"] == "image/png":
                made = await self._pool.run("image.convert_mask", data=made["data"], polarity="alpha")
        except WorkFailed as problem:
            words = problem.message if problem.kind == "refused" else "it could not be read"
            raise InvalidRequest(f"`{param}` is not a picture that can be used: {words}", param=param) from None
        if role == "mask" and made["content_type"] != "image/png":
            raise InvalidRequest("`mask` must be a PNG.", param=param)
        kind = cast(Literal["image", "mask", "reference"], role)
        return LoadedInput(kind, made["data"], made["content_type"], made["width"], made["height"])

    async def _caller_bytes(self, source: UploadedFile | str, param: str) -> bytes:
        if isinstance(source, UploadedFile):
            return source.data
        if source[:5].lower() == "data:":
            try:
                return await self._decoded(source.partition(",")[2])
            except ValueError:
                raise InvalidRequest(f"`{param}` holds a data URI that is not base64.", param=param) from None
        try:
            found = await self._wire.fetch(
                source,
                egress=self._egress,
                max_bytes=self._settings.image_bytes,
                timeout_seconds=_FETCH_SECONDS,
                max_redirects=3,
            )
        except (NotSent, MaybeSent):
            found = None
        if found is None or found.status != 200:
            raise InvalidRequest(f"`{param}` names an address that could not be fetched.", param=param)
        return bytes(found.body)

    async def store_inputs(self, loaded: Sequence[LoadedInput], at_ms: int) -> list[tuple[Input, bytes]]:
        """On the shelf before the promise; the rows follow in the transaction that makes it."""
        stored = []
        for one in loaded:
            media_id = new_id("med", at_ms)
            await self._shelf.put(key_of(media_id), one.data, one.content_type)
            described = Input(
                role=one.role,
                media_id=media_id,
                content_type=one.content_type,
                width=one.width,
                height=one.height,
                size_bytes=len(one.data),
            )
            stored.append((described, hashlib.sha256(one.data).digest()))
        return stored

    async def shelve(self, kept: Output, data: bytes) -> None:
        await self._put(kept.media_id, data, kept.content_type)

    async def inputs(self, request: Request, polarity: Polarity = "alpha") -> dict[str, list[InputImage]]:
        """The request's pictures, read back for a provider; a mask in the polarity that it wants."""
        found: dict[str, list[InputImage]] = {}
        for one in request.inputs:
            chunks = [chunk async for chunk in self._shelf.read(key_of(one.media_id), 0, one.size_bytes)]
            data = b"".join(chunks)
            if one.role == "mask" and polarity != "alpha":
                data = (await self._pool.run("image.convert_mask", data=data, polarity=polarity))["data"]
            reference = InputImage(data, one.content_type, one.width, one.height, one.role)
            found.setdefault(_TABLE_NAMES[one.role], []).append(reference)
        return found

    # ------------------------------------------------------------------------------------------------- from providers

    async def keep(self, media_id: str, file: File, source: DownloadSource | None, request: Request) -> StoredOutput:
        """A produced file: fetched, recognised, converted to what was asked, and durable."""
        if request.task == "video" and source is not None and not _is_data_uri(file.url):
            return await self._keep_stream(media_id, source)
        sent, text = await self._provider_bytes(file, source)
        data, found = sent, sniff(sent)
        if found is None:
            raise UnusableFile("the file is of no known kind")
        if found.content_type.startswith("image/") and request.task != "video":
            data, content_type, width, height = await self._finished(data, request)
        elif found.content_type.startswith("video/") and request.task == "video":
            content_type, width, height = found.content_type, None, None
        else:
            raise UnusableFile(f"the file is {found.content_type}")
        await self._put(media_id, data, content_type)
        kept = Output(
            media_id=media_id,
            content_type=content_type,
            size_bytes=len(data),
            width=width,
            height=height,
            revised_prompt=file.revised_prompt,
        )
        digest = await asyncio.to_thread(_digest, data)
        if request.values.get("response_format") != "b64_json":
            return StoredOutput(kept=kept, sha256=digest)
        if text and data is sent:
            return StoredOutput(kept=kept, sha256=digest, base64=text)
        return StoredOutput(kept=kept, sha256=digest, data=data)

    async def _put(self, media_id: str, data: bytes | Path, content_type: str) -> None:
        try:
            await self._shelf.put(key_of(media_id), data, content_type)
        except StorageUnavailable as problem:
            raise StorageFull from problem

    async def _finished(self, data: bytes, request: Request) -> tuple[bytes, str, int, int]:
        """In the format that was asked for; untouched when it already is."""
        wanted = request.values.get("output_format", "png")
        compression = request.values.get("output_compression", 100)
        if same := convert.unconverted(data, wanted, compression):
            return data, same.content_type, same.width or 0, same.height or 0
        try:
            made = await self._pool.run(
                "image.convert", data=data, output_format=wanted, output_compression=compression
            )
        except WorkFailed as problem:
            raise UnusableFile(problem.message) from problem
        return made["data"], made["content_type"], made["width"], made["height"]

    async def _provider_bytes(self, file: File, source: DownloadSource | None) -> tuple[bytes, str | None]:
        """The file and, where it came as that and nothing else, its base64."""
        data = file.data if file.data is not None or not _is_data_uri(file.url) else file.url
        if isinstance(data, str):
            text = data.partition(",")[2] if _is_data_uri(data) else data
            try:
                return await self._decoded(text), text
            except ValueError:
                pass
            try:
                return base64.b64decode(text), None  # with line breaks in it, say
            except ValueError as problem:
                raise UnusableFile("the file is not base64") from problem
        if data is not None:
            return data, None
        assert source is not None, "a file has bytes or an address"
        try:
            if source.trusted:
                reply = await self._wire.send(
                    HttpRequest("GET", source.url, source.headers),
                    timeout_seconds=_PROVIDER_SECONDS,
                    max_bytes=_IMAGE_BYTES,
                )
                status, body = reply.status, reply.body
            else:
                found = await self._wire.fetch(
                    source.url,
                    egress=self._egress,
                    max_bytes=_IMAGE_BYTES,
                    timeout_seconds=_PROVIDER_SECONDS,
                    max_redirects=3,
                )
                status, body = found.status, bytes(found.body)
        except (NotSent, MaybeSent) as problem:
            raise _trouble(problem) from problem
        if status != 200:
            raise DownloadFailed(f"fetching the file gave {status}")
        return body, None

    # --------------------------------------------------------------------------------------------------------- base64

    async def encoded(self, data: bytes) -> str:
        """For an answer that holds the file itself."""
        step = _BASE64_STEP // 4 * 3  # whole groups, so that no padding comes between the pieces
        return b"".join(await self._stepwise(data, step, base64.b64encode)).decode("ascii")

    async def _decoded(self, text: str) -> bytes:
        """Strictly, and three times as quickly as by the standard library."""
        return b"".join(await self._stepwise(text, _BASE64_STEP, lambda piece: msgspec.convert(piece, bytes)))

    async def _stepwise(self, whole: Whole, step: int, work: Callable[[Whole], bytes]) -> list[bytes]:
        """Piece by piece, with room for others in between."""
        pieces = []
        for start in range(0, len(whole), step):
            piece = whole[start : start + step]
            await self._turns.take(len(piece))
            pieces.append(work(piece))
        return pieces

    # ---------------------------------------------------------------------------------------------------------- films

    async def _keep_stream(self, media_id: str, source: DownloadSource) -> StoredOutput:
        """Videos go to disk as they come; memory stays flat however large they are."""
        handle, name = mkstemp(dir=self._scratch)
        path = Path(name)
        try:
            with os.fdopen(handle, "wb") as sink:
                await self._download(source, sink)
            failpoint("fetch.mid")
            size, digest, head = await asyncio.to_thread(_facts, path)
            found = sniff(head)
            if found is None or not found.content_type.startswith("video/"):
                raise UnusableFile("the file is not a video")
            content_type = found.content_type
            await self._put(media_id, path, content_type)
        finally:
            _forget(path)
        return StoredOutput(kept=Output(media_id=media_id, content_type=content_type, size_bytes=size), sha256=digest)

    async def _download(self, source: DownloadSource, sink: Any) -> None:
        most = self._settings.video_bytes
        try:
            if source.trusted:
                outgoing = HttpRequest("GET", source.url, source.headers)
                async with self._wire.stream(
                    outgoing, read_timeout_seconds=60, timeout_seconds=_VIDEO_SECONDS
                ) as reply:
                    status, taken = reply.status, 0
                    async for chunk in reply:
                        taken += len(chunk)
                        if taken > most:
                            raise UnusableFile("the file is too large")
                        sink.write(chunk)
            else:
                found = await self._wire.fetch(
                    source.url,
                    egress=self._egress,
                    max_bytes=most,
                    timeout_seconds=_VIDEO_SECONDS,
                    max_redirects=3,
                    writer=sink,
                )
                status = found.status
        except OSError as problem:
            raise StorageFull from problem
        except (NotSent, MaybeSent) as problem:
            raise _trouble(problem) from problem
        if status != 200:
            raise DownloadFailed(f"fetching the file gave {status}")


def _is_data_uri(text: str | bytes | None) -> bool:
    return isinstance(text, str) and text[:5].lower() == "data:"


def _trouble(problem: NotSent | MaybeSent) -> UnusableFile | DownloadFailed:
    """An address that we do not go to, or a file without end, stays one; the rest may pass."""
    if isinstance(problem, UrlBlocked):
        return UnusableFile("the file lies where the gateway does not go")
    return (
        UnusableFile("the file is too large")
        if isinstance(problem, ResponseTooLarge)
        else DownloadFailed("the transfer broke off")
    )


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _forget(path: Path) -> None:
    path.unlink(missing_ok=True)


def _facts(path: Path) -> tuple[int, bytes, bytes]:
    digest = hashlib.sha256()
    head = b""
    with path.open("rb") as source:
        while chunk := source.read(1024 * 1024):
            head = head or chunk
            digest.update(chunk)
    return path.stat().st_size, digest.digest(), head
