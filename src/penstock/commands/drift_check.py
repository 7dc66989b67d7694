"""Make recorded calls again with a gateway of their own, and compare the recordings."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any

import msgspec

from penstock.client.calls import Call
from penstock.client.connection import Connection
from penstock.client.failures import CallFailed
from penstock.commands.drift_report import CheckedCall, Picture
from penstock.commands.replay_gateway import ReplayGateway, open_cassette
from penstock.errors import InvalidRequest, NotFound
from penstock.fields import TABLES
from penstock.imaging.likeness import SIDE, distance
from penstock.imaging.workers import WorkFailed
from penstock.package_extras import ExtraMissing, check_extra
from penstock.recordings import files, folders
from penstock.recordings.drift import Change, Limits, Side, changes
from penstock.recordings.files import RecordingFile
from penstock.recordings.recordings import recording_id
from penstock.values import OrgId

_PATHS = {
    "image": "images/generations",
    "edit": "images/edits",
    "video": "videos",
    "chat": "chat/completions",
    "response": "responses",
    "speech": "audio/speech",
}
_NOT_SENT = ("idempotency_key", "webhook_url")
_DIGEST = '"sha256:'
_PICTURE_WIDTH = 480


class _Skipped(Exception):
    """A recorded call cannot be made again; the message says why."""


def check_all(
    paths: list[Path], limits: Limits, *, max_usd: str, at_once: int, config: Path | None = None
) -> list[CheckedCall]:
    """Make the recorded calls again, some at a time, for at most so much money together, and compare. The recordings
    stay as they are. Raises InvalidRequest for a file that is no recording.
    """
    found = list(_read(paths))
    with TemporaryDirectory(prefix="penstock-") as folder:
        served = ReplayGateway(Path(folder), config)
        try:
            owner, key = served.call(open_cassette(served.gateway, Path(folder), "record", usd=max_usd))
            check = partial(_check, _Checker(served, owner, key, limits))
            with ThreadPoolExecutor(at_once) as threads:
                return list(threads.map(check, found))
        finally:
            served.stop()


def _read(paths: list[Path]) -> Iterator[tuple[str, Side]]:
    """The recordings of files and folders, by the names of their files. Raises InvalidRequest for anything else."""
    named = [file for path in paths for file in (sorted(path.rglob("*.json")) if path.is_dir() else [path])]
    for file in named:
        document, media = folders.load_recording(file)
        if "penstock_webhook" in document:
            continue
        try:
            read = files.read_document(document, media)
        except InvalidRequest as problem:
            raise InvalidRequest(f"{file}: {problem.message}") from None
        yield str(file), Side(read.document, tuple(bytes(output.data or b"") for output in read.outputs))


# ------------------------------------------------------------------------------------------------------------- one call


class _Checker(msgspec.Struct, frozen=True):
    """What the check of each recording needs."""

    served: ReplayGateway
    owner: OrgId
    key: str
    limits: Limits


def _check(checker: _Checker, found: tuple[str, Side]) -> CheckedCall:
    """Make a recorded call again and compare. A call that fails now is a change, too."""
    name, before = found
    checked = CheckedCall(name, before)
    try:
        body = body_of(before.document)
        after = _made_again(checker, before.document, body)
    except _Skipped as problem:
        return msgspec.structs.replace(checked, skipped=str(problem))
    except CallFailed as problem:
        return msgspec.structs.replace(checked, changes=(Change("failed", str(problem)),))
    pictures = tuple(_pictures(checker, before, after))
    distances = [picture.distance for picture in pictures]
    found_changes = tuple(changes(before, after, checker.limits, distances))
    return msgspec.structs.replace(checked, after=after, changes=found_changes, pictures=pictures)


def body_of(document: RecordingFile) -> dict[str, Any]:
    """The body that makes a recorded call again. Raises _Skipped if the recording does not have all of it."""
    request = document.request
    if request.get("image") or _DIGEST in msgspec.json.encode(request).decode():
        raise _Skipped("a recording has no input files: record the call again with your own program")
    defaults = {row.name: row.default for row in TABLES.get(document.kind, {}).values() if row.default is not None}
    is_chat = document.task == "chat"
    return {
        name: value
        for name, value in request.items()
        if name not in (*_NOT_SENT, "image") and (is_chat or value != defaults.get(name))
    }


def _made_again(checker: _Checker, document: RecordingFile, body: Mapping[str, Any]) -> Side:
    """Make the call and return its recording. Raises CallFailed."""
    connection = Connection(checker.served.base_url, checker.key)
    request_id = ""
    for headers, _ in connection.stream(Call("POST", f"/{_PATHS[document.kind]}", dict(body))):
        request_id = headers.get("x-request-id", "")
    if document.kind == "video":
        _wait_for_video(connection, request_id)
    gateway = checker.served.gateway

    async def exported() -> tuple[RecordingFile, list[tuple[str, bytes]]]:
        row = await gateway.recordings.get(checker.owner, recording_id(request_id))
        return await files.export_recording(gateway.recordings, row)

    try:
        made, media = checker.served.call(exported())
    except NotFound:
        raise CallFailed("the call was answered, but not completely: it could not be recorded") from None
    return Side(made, tuple(data for _, data in media))


def _wait_for_video(connection: Connection, video_id: str) -> None:
    while True:
        reply = connection.send(Call("GET", f"/videos/{video_id}"))
        if reply.body["status"] == "completed":
            return
        if reply.body["status"] == "failed":
            raise CallFailed((reply.body.get("error") or {}).get("message") or "the video failed")
        sleep(reply.poll_seconds)


# ------------------------------------------------------------------------------------------------------------- pictures


def _pictures(checker: _Checker, before: Side, after: Side) -> Iterator[Picture]:
    """The pictures of both sides as they are shown, and how different they look: images, and frames of videos."""
    if before.document.task in ("chat", "speech"):
        return
    for number, (was, now) in enumerate(zip(before.media, after.media, strict=False)):
        kinds = [side.document.files[number].content_type for side in (before, after)]
        shown = [_small(checker, kind, data) for kind, data in zip(kinds, (was, now), strict=True)]
        grids = [_grid(checker, small) if small else None for small in shown]
        is_compared = grids[0] is not None and grids[1] is not None
        far = distance(grids[0] or b"", grids[1] or b"") if is_compared else None
        yield Picture(shown[0], shown[1], far)


def _small(checker: _Checker, content_type: str, data: bytes) -> bytes | None:
    """A small WebP of an image or a video; None if there cannot be one."""
    try:
        if content_type.startswith("video/"):
            check_extra("media", "a frame of a video")
            return _run(checker, "video.preview", data, variant="thumbnail", width=_PICTURE_WIDTH)
        return _run(checker, "image.thumbnail", data, width=_PICTURE_WIDTH)
    except (WorkFailed, ExtraMissing):
        return None


def _grid(checker: _Checker, small: bytes) -> bytes:
    return _run(checker, "image.grid", small, side=SIDE)


def _run(checker: _Checker, task: str, data: bytes, **arguments: Any) -> bytes:
    """Run a task in a child process: it reads bytes that a provider chose."""
    pool = checker.served.gateway.worker_pool
    made = checker.served.call(pool.run(task, for_org=checker.owner, data=data, **arguments))
    return bytes(made["data"])
