"""Recordings as documents that people can read and repositories can carry."""

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from penstock.errors import InvalidRequest
from penstock.imaging.formats import extension
from penstock.imaging.sniff import sniff
from penstock.recordings.recordings import Recorded, Recordings
from penstock.schema import Output, StoredOutput
from penstock.store.base import Row, Store
from penstock.values import is_id, iso, new_id

VERSION = 1
_MOST_FILES = 10


class _File(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One produced file: beside the document, or inside it in base64."""

    content_type: str
    width: int | None = None
    height: int | None = None
    revised_prompt: str | None = None
    file: str | None = None
    data: str | None = None


class Transcript(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A recording, whole; no credentials, no ids of the organization it came from."""

    penstock_recording: int
    id: str
    kind: str
    task: str
    model: str
    recorded_at: str
    duration_ms: int
    request: dict[str, Any]
    provider: str
    provider_name: str
    executed_model: str
    upstream_id: str | None = None
    seconds: float | None = None
    files: tuple[_File, ...] = ()
    standard: str
    strict: str


def summary(row: Row) -> dict[str, Any]:
    """A line of the list."""
    return {
        "id": row["id"],
        "object": "recording",
        "created_at": iso(row["created_at_ms"]),
        "kind": row["kind"],
        "model": row["model"],
        "request_id": row["request_id"],
        "duration_ms": row["duration_ms"],
        "request": msgspec.json.decode(row["request"]),
    }


async def written(replay: Recordings, row: Row, *, inline: bool) -> tuple[Transcript, list[tuple[str, bytes]]]:
    """The document, and the files that lie beside it unless they are inside."""
    known = msgspec.json.decode(row["result"], type=Recorded)
    stored = await replay.files(row["id"])
    contents = [await replay.read(file) for file in stored]
    names = [f"{row['id']}-{number}.{extension(file['content_type'])}" for number, file in enumerate(stored)]
    files = tuple(
        _File(
            content_type=kept.content_type,
            width=kept.width,
            height=kept.height,
            revised_prompt=kept.revised_prompt,
            file=None if inline else name,
            data=base64.b64encode(content).decode("ascii") if inline else None,
        )
        for kept, name, content in zip(known.files, names, contents, strict=True)
    )
    transcript = Transcript(
        penstock_recording=VERSION,
        id=row["id"],
        kind=row["kind"],
        task=row["task"],
        model=row["model"],
        recorded_at=iso(row["created_at_ms"]),
        duration_ms=row["duration_ms"],
        request=msgspec.json.decode(row["request"]),
        provider=known.provider,
        provider_name=known.provider_name,
        executed_model=known.executed_model,
        upstream_id=known.upstream_id,
        seconds=known.seconds,
        files=files,
        standard=row["standard"].hex(),
        strict=row["strict"].hex(),
    )
    return transcript, [] if inline else list(zip(names, contents, strict=True))


async def taken_in(
    store: Store, replay: Recordings, org_id: str, document: Any, beside: Mapping[str, bytes], now_ms: int
) -> str:
    """Make a document a recording of this organization; its id stays if nobody has it yet."""
    try:
        transcript = msgspec.convert(document, Transcript)
        digests = bytes.fromhex(transcript.standard), bytes.fromhex(transcript.strict)
    except (msgspec.ValidationError, ValueError) as problem:
        raise InvalidRequest(f"This is not a recording: {problem}") from None
    if transcript.penstock_recording != VERSION or transcript.kind not in ("image", "edit", "video"):
        raise InvalidRequest(f"This recording is of a form that this release does not know; it knows {VERSION}.")
    contents = _contents(transcript, beside)
    recording_id = await _free_id(store, transcript.id, now_ms)
    shelved = [
        StoredOutput(output=_kept(file, content), sha256=hashlib.sha256(content).digest(), data=content)
        for file, content in zip(transcript.files, contents, strict=True)
    ]
    rows = await replay.shelve(recording_id, shelved)
    known = Recorded(
        provider=transcript.provider,
        provider_name=transcript.provider_name,
        executed_model=transcript.executed_model,
        upstream_id=transcript.upstream_id,
        seconds=transcript.seconds,
        files=tuple(one.output for one in shelved),
    )
    row = {
        "id": recording_id,
        "org_id": org_id,
        "request_id": None,
        "kind": transcript.kind,
        "task": transcript.task,
        "model": transcript.model,
        "standard": digests[0],
        "strict": digests[1],
        "request": msgspec.json.encode(transcript.request),
        "result": msgspec.json.encode(known),
        "duration_ms": transcript.duration_ms,
        "created_at_ms": now_ms,
    }
    await store.write(lambda tx: replay.write(tx, row, rows))
    return recording_id


def _contents(transcript: Transcript, beside: Mapping[str, bytes]) -> list[bytes]:
    if not 0 < len(transcript.files) <= _MOST_FILES:
        raise InvalidRequest(f"A recording has 1 to {_MOST_FILES} files.", param="files")
    return [_content(number, file, beside) for number, file in enumerate(transcript.files)]


def _content(number: int, file: _File, beside: Mapping[str, bytes]) -> bytes:
    """A file's bytes, which must be what the document says they are."""
    where = f"files[{number}]"
    if file.data is not None:
        try:
            content = base64.b64decode(file.data, validate=True)
        except binascii.Error:
            raise InvalidRequest(f"`{where}.data` is not base64.", param=where) from None
    elif file.file in beside:
        content = beside[file.file or ""]
    else:
        raise InvalidRequest(f"`{where}` names {file.file}, which is not there.", param=where)
    found = sniff(content)
    if found is None or found.content_type != file.content_type:
        raise InvalidRequest(f"`{where}` is not {file.content_type}.", param=where)
    return content


def _kept(file: _File, content: bytes) -> Output:
    return Output("", file.content_type, len(content), file.width, file.height, file.revised_prompt)


async def _free_id(store: Store, wanted: str, now_ms: int) -> str:
    if is_id(wanted, "rec") and await store.one("has_recording", id=wanted) is None:
        return wanted
    return new_id("rec", now_ms)


# ---------------------------------------------------------------------------------------------------------- on disk


def save(folder: Path, transcript: Transcript, files: Sequence[tuple[str, bytes]]) -> Path:
    """JSON that reads well in a diff, its media beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files:
        (folder / name).write_bytes(content)
    path = folder / f"{transcript.id}.json"
    text = msgspec.json.format(msgspec.json.encode(transcript), indent=2)
    path.write_bytes(text + b"\n")
    return path


def load(path: Path) -> tuple[Any, dict[str, bytes]]:
    """A document and what lies beside it; names that lead elsewhere are not followed."""
    document = msgspec.json.decode(path.read_bytes())
    names = [file.get("file") for file in document.get("files", ()) if isinstance(file, dict)]
    plain = [name for name in names if isinstance(name, str) and name == Path(name).name]
    return document, {name: (path.parent / name).read_bytes() for name in plain if (path.parent / name).is_file()}
