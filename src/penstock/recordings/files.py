"""Export recordings to JSON files that people can read and repositories can hold, and import them."""

import asyncio
import base64
import hashlib
import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, cast

import msgspec
from msgspec import Meta

from penstock.errors import InvalidRequest, quoted
from penstock.imaging.formats import SVG_TYPE, extension
from penstock.imaging.sniff import sniff
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.long_bodies.base64_pieces import strict_pieces
from penstock.long_bodies.buffers import Buffer
from penstock.media.quota import StorageQuota
from penstock.recordings.recordings import SHOWN_REQUEST_BYTES, Recordings
from penstock.recordings.rows import ListedRecording, RecordedResult, RecordingFileRow, RecordingRow
from penstock.schema import SOUND_TASKS, Output, StoredOutput
from penstock.sound.formats import SOUND_FORMATS, SoundFormat
from penstock.sound.formats import content_type as sound_type
from penstock.sound.sniff import sound_format
from penstock.store.base import ConstraintViolated, Store
from penstock.values import OrgId, dollars, is_id, iso, nanos, new_id

VERSION = 1
LONGEST_NAME = 500  # characters of a model, a provider and the like
LONGEST_DURATION_MS = 24 * 3600 * 1000
_FILES_MAX = 10
_REQUEST_BYTES_MAX = SHOWN_REQUEST_BYTES  # longer ones would not be shown in lists
_MEDIA_BYTES_MAX = 256 * 1024**2  # of all files of a recording together
_TASKS = {
    "image": ("image", "edit", "upscale"),
    "edit": ("image", "edit", "upscale"),
    "response": ("chat",),
    **{kind: (kind,) for kind in ("video", "chat", "speech", "sound", "transcription")},
}
KINDS = tuple(_TASKS)
_TEXT_TASKS = ("chat", "transcription")
_MOST_CHUNKS = 100_000
_PLAIN_SAMPLES = re.compile(r"audio/pcm;rate=[1-9][0-9]{3,5};channels=1")
# Names of files with text, which must not look like recordings themselves.
_TEXTS = {"application/json": "txt", "text/event-stream": "sse"}

_Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
_Text = Annotated[str, Meta(max_length=32_000)]
_Pixels = Annotated[int, Meta(ge=1, le=100_000)]
_Chunk = tuple[Annotated[int, Meta(ge=0, le=LONGEST_DURATION_MS)], Annotated[int, Meta(ge=0)]]
_Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class _MediaFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One output: in a file of its own beside the recording file, or inside it in base64."""

    content_type: _Name
    width: _Pixels | None = None
    height: _Pixels | None = None
    revised_prompt: _Text | None = None
    seconds: Annotated[float, Meta(gt=0, le=86_400)] | None = None  # of a sound
    file: _Name | None = None
    data: str | None = None


class RecordingFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A whole recording, without credentials and without the id of its organization."""

    penstock_recording: int
    id: _Name
    kind: _Name
    task: _Name
    model: _Name
    recorded_at: _Name
    duration_ms: Annotated[int, Meta(ge=0, le=LONGEST_DURATION_MS)]
    request: dict[str, Any]
    provider: _Name
    provider_name: _Name
    executed_model: _Name
    upstream_id: _Name | None = None
    seconds: Annotated[float, Meta(ge=0, le=86_400)] | None = None
    files: tuple[_MediaFile, ...] = ()
    standard: _Digest
    strict: _Digest
    exact: _Digest | None = None
    cost: Annotated[str, Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?$")] | None = None  # in dollars
    chunks: Annotated[tuple[_Chunk, ...], Meta(max_length=_MOST_CHUNKS)] = ()


class ReadRecording(NamedTuple):
    """A checked recording file, with its request as JSON and its outputs."""

    document: RecordingFile
    request: bytes
    outputs: list[StoredOutput]


def summary(recording: ListedRecording) -> dict[str, Any]:
    """A recording as the API lists it; a list does not contain requests that are very long."""
    return {
        "id": recording.id,
        "object": "recording",
        "created_at": iso(recording.created_at_ms),
        "kind": recording.kind,
        "model": recording.model,
        "request_id": recording.request_id,
        "imported_id": recording.imported_id,
        "duration_ms": recording.duration_ms,
        "request": None if recording.request is None else msgspec.json.decode(recording.request),
    }


async def export_recording(recordings: Recordings, row: RecordingRow) -> tuple[RecordingFile, list[tuple[str, bytes]]]:
    """The recording file, and the names and bytes of the media files beside it."""
    document, stored = await _describe(recordings, row)
    contents = [await recordings.read_file(file) for file in stored]
    return document, [(file.file or "", content) for file, content in zip(document.files, contents, strict=True)]


async def stream_recording(recordings: Recordings, row: RecordingRow) -> tuple[str, AsyncIterator[bytes]]:
    """The id of the recording file, and its JSON in pieces, with the media files in it.

    They may have hundreds of megabytes together, so each is read and encoded while the JSON is sent. Raises NotFound,
    also for the first piece, if the recording was deleted meanwhile.
    """
    document, stored = await _describe(recordings, row)
    return document.id, _pieces(recordings, document, stored)


async def _pieces(
    recordings: Recordings, document: RecordingFile, stored: Sequence[RecordingFileRow]
) -> AsyncIterator[bytes]:
    place = secrets.token_hex(16)
    files = tuple(msgspec.structs.replace(file, file=None, data=place) for file in document.files)
    before, *others = msgspec.json.encode(msgspec.structs.replace(document, files=files)).split(place.encode())
    for file, after in zip(stored, others, strict=True):
        rest = b""
        async for chunk in recordings.read_chunks(file):
            data = rest + chunk
            end = len(data) // 3 * 3  # so that there is padding only at the end
            yield before + base64.b64encode(data[:end])
            before = b""
            rest = data[end:]
        before = b"".join((before, base64.b64encode(rest), after))
    yield before


async def _describe(recordings: Recordings, row: RecordingRow) -> tuple[RecordingFile, list[RecordingFileRow]]:
    """The recording file with names of media files, and where these are stored.

    An imported recording is exported under the id that it was imported with, so that files in a repository keep their
    names, unless that id means another recording of the organization.
    """
    file_id = await recordings.pinned_id(row)
    result = row.decode_result()
    stored = await recordings.list_files(row)
    files = tuple(
        _MediaFile(
            content_type=output.content_type,
            width=output.width,
            height=output.height,
            revised_prompt=output.revised_prompt,
            seconds=output.seconds,
            file=f"{file_id}-{number}.{_extension(file.content_type)}",
        )
        for number, (output, file) in enumerate(stored)
    )
    document = RecordingFile(
        penstock_recording=VERSION,
        id=file_id,
        kind=row.kind,
        task=row.task,
        model=row.model,
        recorded_at=iso(row.created_at_ms),
        duration_ms=row.duration_ms,
        request=row.decode_request(),
        provider=result.provider,
        provider_name=result.provider_name,
        executed_model=result.executed_model,
        upstream_id=result.upstream_id,
        seconds=result.seconds,
        files=files,
        standard=row.standard.hex(),
        strict=row.strict.hex(),
        exact=row.exact.hex() if row.exact else None,
        cost=None if result.cost is None else f"{dollars(result.cost):f}",
        chunks=result.chunks,
    )
    return document, [file for _, file in stored]


async def import_recording(
    store: Store,
    recordings: Recordings,
    org_id: OrgId,
    document: Any,
    media: Mapping[str, bytes],
    now_ms: int,
    quota: StorageQuota | None = None,
    *,
    pool: WorkerPool,
) -> str:
    """Add the recording of a recording file to an organization. Returns its id.

    The id is always a new one, because ids of files are made from it. The id in the file is kept as `imported_id`, by
    which the organization can pin it. A file with the same contents is imported once: the second time this returns the
    id of the first. `document` is the decoded JSON, `media` the media files beside it by name. Raises InvalidRequest
    when it is not a recording file or does not fit its media files, StorageQuotaExceeded when there is no room for it.
    """
    recording, request, outputs = await asyncio.to_thread(read_document, document, media)
    for number, stored in enumerate(outputs):
        if stored.output.content_type == SVG_TYPE:
            await _check_svg(pool, org_id, f"files[{number}]", stored.data)
    import_digest = _import_digest(recording, outputs)
    if earlier := await _find_imported(store, org_id, import_digest):
        return earlier
    if quota:
        await quota.check(org_id, sum(stored.output.size_bytes for stored in outputs))
    recording_id = new_id("rec", now_ms)
    rows = await recordings.store_files(recording_id, outputs, is_imported=True)
    result = RecordedResult(
        provider=recording.provider,
        provider_name=recording.provider_name,
        executed_model=recording.executed_model,
        upstream_id=recording.upstream_id,
        seconds=recording.seconds,
        files=tuple(stored.output for stored in outputs),
        chunks=recording.chunks,
        cost=nanos(recording.cost) if recording.cost else None,
    )
    row = RecordingRow(
        id=recording_id,
        org_id=org_id,
        request_id=None,
        imported_id=recording.id if is_id(recording.id, "rec") else None,
        import_digest=import_digest,
        kind=recording.kind,
        task=recording.task,
        model=recording.model,
        standard=bytes.fromhex(recording.standard),
        strict=bytes.fromhex(recording.strict),
        exact=bytes.fromhex(recording.exact) if recording.exact else None,
        request=request,
        result=msgspec.json.encode(result),
        duration_ms=recording.duration_ms,
        created_at_ms=now_ms,
    )
    try:
        await store.write(lambda tx: recordings.add(tx, row, rows))
    except ConstraintViolated:  # the same file has just been imported by another call
        await recordings.delete_files([file.media_id for file in rows])
        return await _find_imported(store, org_id, import_digest) or recording_id
    return recording_id


async def _check_svg(pool: WorkerPool, org_id: OrgId, where: str, content: Buffer | None) -> None:
    """Raise InvalidRequest for an SVG that no gateway has cleaned. It is parsed in a child process."""
    try:
        is_cleaned = (await pool.run("image.is_cleaned_svg", for_org=org_id, data=content))["is_cleaned"]
    except WorkFailed:
        is_cleaned = False
    if not is_cleaned:
        raise InvalidRequest(f"`{where}` is not an SVG as gateways store it: cleaned of all but shapes.", param=where)


async def _find_imported(store: Store, org_id: OrgId, import_digest: bytes) -> str | None:
    row = await store.one("find_imported_recording", org_id=org_id, import_digest=import_digest)
    return row["id"] if row else None


def read_document(document: Any, media: Mapping[str, bytes]) -> ReadRecording:
    """Check the decoded JSON of a recording file, all but its SVGs, and decode its media. Raises InvalidRequest."""
    try:
        recording = msgspec.convert(document, RecordingFile)
        request = msgspec.json.encode(recording.request)
    except (msgspec.ValidationError, ValueError, OverflowError, RecursionError) as problem:
        raise InvalidRequest(f"This is not a recording: {str(problem)[:500]}") from None
    if recording.penstock_recording != VERSION or recording.kind not in _TASKS:
        raise InvalidRequest(f"The recording's version or kind is not supported; the supported version is {VERSION}.")
    if recording.task not in _TASKS[recording.kind]:
        allowed = quoted(_TASKS[recording.kind])
        raise InvalidRequest(f"`task` must be one of {allowed} if `kind` is `{recording.kind}`.", param="task")
    if len(request) > _REQUEST_BYTES_MAX:
        raise InvalidRequest(f"`request` has more than {_REQUEST_BYTES_MAX} bytes.", param="request")
    is_text = all(file.content_type in _TEXTS for file in recording.files)
    if recording.files and (recording.task in _TEXT_TASKS) != is_text:
        message = "`files` of chats and transcripts have text, and of all others images, videos or sound."
        raise InvalidRequest(message, param="files")
    outputs = [
        StoredOutput(output=_output(file, content), sha256=hashlib.sha256(content).digest(), data=content)
        for file, content in zip(recording.files, _contents(recording, media), strict=True)
    ]
    return ReadRecording(recording, request, outputs)


def _contents(recording: RecordingFile, media: Mapping[str, bytes]) -> list[bytes]:
    if not 0 < len(recording.files) <= _FILES_MAX:
        raise InvalidRequest(f"A recording has 1 to {_FILES_MAX} files.", param="files")
    contents = [_content(number, file, media, recording.kind) for number, file in enumerate(recording.files)]
    if sum(map(len, contents)) > _MEDIA_BYTES_MAX:
        raise InvalidRequest(f"The files of a recording have at most {_MEDIA_BYTES_MAX} bytes.", param="files")
    return contents


def _content(number: int, file: _MediaFile, media: Mapping[str, bytes], recording_kind: str) -> bytes:
    """The bytes of a media file. Raises InvalidRequest when they are missing or of another content type.

    An SVG is not recognised by its first bytes: see `_check_svg`.
    """
    where = f"files[{number}]"
    if file.data is not None:
        try:
            content = b"".join(strict_pieces(file.data))
        except ValueError:
            raise InvalidRequest(f"`{where}.data` is not base64.", param=where) from None
    elif file.file in media:
        content = media[file.file or ""]
    else:
        raise InvalidRequest(f"`{where}` names {file.file}, which does not exist.", param=where)
    if file.content_type in _TEXTS:
        _check_text(file.content_type, content, where)
        return content
    if recording_kind in SOUND_TASKS:
        _check_sound(file.content_type, content, where)
        return content
    found = sniff(content)
    if file.content_type != SVG_TYPE and (found is None or found.content_type != file.content_type):
        raise InvalidRequest(f"`{where}` is not {file.content_type}.", param=where)
    return content


def _check_sound(content_type: str, content: bytes, where: str) -> None:
    """Raise InvalidRequest for a sound that is not what its type says. Plain samples can be anything."""
    if _PLAIN_SAMPLES.fullmatch(content_type):
        return
    found = cast(SoundFormat | None, sound_format(content))
    if found not in SOUND_FORMATS or found == "pcm" or sound_type(found) != content_type:
        raise InvalidRequest(f"`{where}` is not {content_type}.", param=where)


def _check_text(content_type: str, content: bytes, where: str) -> None:
    """Raise InvalidRequest for the response of a chat that is not what its type says."""
    try:
        if content_type == "application/json":
            msgspec.json.decode(content)
        else:
            content.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidRequest(f"`{where}` is not {content_type}.", param=where) from None


def _extension(content_type: str) -> str:
    return _TEXTS.get(content_type) or extension(content_type)


def _output(file: _MediaFile, content: bytes) -> Output:
    size, seen = len(content), (file.width, file.height, file.revised_prompt)
    return Output("", file.content_type, size, *seen, seconds=file.seconds)


def _import_digest(recording: RecordingFile, outputs: Sequence[StoredOutput]) -> bytes:
    """The digest of what a recording file says, whether its media are in it or beside it."""
    document = msgspec.structs.replace(recording, files=(), recorded_at="")  # when it was exported from a copy
    files = [[msgspec.structs.asdict(stored.output), stored.sha256] for stored in outputs]
    return hashlib.sha256(msgspec.json.encode([document, files], order="deterministic")).digest()
