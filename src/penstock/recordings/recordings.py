"""Record, replay or mock a call: modes, matching, latency, and the recordings themselves."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from penstock.clock import Clock
from penstock.errors import InvalidRequest, NotFound, RecordingNotFound
from penstock.media.storage import Storage, storage_key
from penstock.schema import (
    TABLES,
    Call,
    Fingerprint,
    GenerationResult,
    Output,
    Request,
    StoredOutput,
    UploadedFile,
)
from penstock.store.base import Row, Store, Transaction
from penstock.store.paging import DEFAULT_LIMIT, Page, Pager
from penstock.values import REPLAY_MATCHES, REPLAY_MODES, is_id, new_id

# Fields that change nothing about what is made, and the prompt, whose wording a test should be free to touch.
COSMETIC = frozenset({"prompt", "user", "metadata", "webhook_url", "idempotency_key", "session_id", "media_retention"})
_LATENCY = re.compile(r"(\d{1,7}),(\d{1,7})")
_SCANNED = 1000
_PREFIX = "x-service-replay"


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What the replay headers say."""

    mode: str
    match: str = "standard"
    fields: tuple[str, ...] = ()
    recording: str | None = None
    latency: str = "instant"

    @property
    def looks(self) -> bool:
        return self.mode.startswith("replay")

    @property
    def stores(self) -> bool:
        return self.mode.endswith("record")


class Recorded(msgspec.Struct, frozen=True):
    """What a recording gives back: the settlement without ids of ours, and who made it."""

    provider: str
    provider_name: str
    executed_model: str
    upstream_id: str | None
    seconds: float | None
    files: tuple[Output, ...]


def replay_options(call: Call) -> ReplayOptions | None:
    """None when nobody asked; a bad or missing companion is a 400 that says what is missing."""
    mode = _header(call, "", REPLAY_MODES) or call.caller.replay_mode
    match = _header(call, "-match", REPLAY_MATCHES) or "standard"
    fields = tuple(name.strip() for name in call.headers.get(f"{_PREFIX}-fields", "").split(",") if name.strip())
    recording = call.headers.get(f"{_PREFIX}-recording")
    latency = call.headers.get(f"{_PREFIX}-latency", "instant")
    if match == "specific" and not fields:
        raise InvalidRequest(
            "X-Service-Replay-Fields is required when X-Service-Replay-Match is `specific`: field names, "
            "separated by commas.",
            param="X-Service-Replay-Fields",
        )
    if match == "pinned" and not recording:
        raise InvalidRequest(
            "X-Service-Replay-Recording is required when X-Service-Replay-Match is `pinned`: the id of a recording.",
            param="X-Service-Replay-Recording",
        )
    pauses = _LATENCY.fullmatch(latency)
    if latency not in ("instant", "real") and not (pauses and int(pauses[1]) <= int(pauses[2])):
        raise InvalidRequest(
            "X-Service-Replay-Latency must be `instant`, `real`, or milliseconds to the first and the last byte, "
            "such as `100,900`.",
            param="X-Service-Replay-Latency",
        )
    return ReplayOptions(mode, match, fields, recording, latency) if mode else None


def _header(call: Call, suffix: str, allowed: Sequence[str]) -> str | None:
    value = call.headers.get(_PREFIX + suffix)
    if value is not None and value not in allowed:
        name = "X-Service-Replay" + suffix.title()
        raise InvalidRequest(f"{name} must be one of {', '.join(f'`{one}`' for one in allowed)}.", param=name)
    return value


# ------------------------------------------------------------------------------------------------------------ likeness


def fingerprint(
    kind: str,
    request: Request,
    model: str,
    pictures: Sequence[tuple[str, UploadedFile | str]],
    strict: bytes,
    match: str = "standard",
) -> Fingerprint:
    """Defaults are written out, so that saying one and leaving it out are the same call."""
    defaults = {row.name: row.default for row in TABLES[kind].values() if row.default is not None and not row.same_as}
    values = {**defaults, **request.values, **request.extras}
    shown = [[role, _mark(source)] for role, source in pictures]
    known = {name: value for name, value in values.items() if name not in COSMETIC}
    text = msgspec.json.encode([kind, model, dict(sorted(known.items())), shown], order="deterministic")
    everything = {**values, "model": model, "image": shown}
    by: Literal["standard", "strict"] = "strict" if match == "strict" else "standard"
    return Fingerprint(kind, model, everything, hashlib.sha256(text).digest(), strict, by)


def _mark(source: UploadedFile | str) -> str:
    """A picture by its bytes; an address by itself, because a replay fetches nothing."""
    data = source.data if isinstance(source, UploadedFile) else source.encode()
    return hashlib.sha256(data).hexdigest()


def due(latency: str, recorded_ms: int, now_ms: int) -> tuple[int, int]:
    """When the first and the last byte are to go out."""
    if latency == "instant":
        return now_ms, now_ms
    pauses = _LATENCY.fullmatch(latency)
    first, last = (int(pauses[1]), int(pauses[2])) if pauses else (recorded_ms, recorded_ms)
    return now_ms + first, now_ms + last


# ---------------------------------------------------------------------------------------------------------- recordings


class Recordings:
    """An organization's recordings."""

    def __init__(self, store: Store, shelf: Storage, clock: Clock) -> None:
        self._store, self._shelf, self._clock = store, shelf, clock
        self._pager = Pager(store, "recording", "rec")

    async def find(self, org_id: str, wish: ReplayOptions, like: Fingerprint) -> Row | None:
        """The newest match."""
        if wish.match == "pinned":
            row = await self._store.one("get_recording", id=wish.recording, org_id=org_id)
            return row if row and row["kind"] == like.kind else None
        if wish.match == "specific":
            return await self._find_specific(org_id, wish.fields, like)
        return await self._store.one(f"find_{like.by}_recording", org_id=org_id, kind=like.kind, digest=like.digest)

    async def _find_specific(self, org_id: str, fields: Sequence[str], like: Fingerprint) -> Row | None:
        rows = await self._store.slow("list_older_recordings", org_id=org_id, low="rec_", high="rec_~", limit=_SCANNED)
        for row in rows:
            known = msgspec.json.decode(row["request"])
            if row["kind"] == like.kind and all(known.get(name) == like.values.get(name) for name in fields):
                return row
        return None

    async def get(self, org_id: str, recording_id: str) -> Row:
        row = None
        if is_id(recording_id, "rec"):
            row = await self._store.one("get_recording", id=recording_id, org_id=org_id)
        if row is None:
            raise NotFound(f"No such recording: {recording_id}.")
        return row

    async def page(
        self,
        org_id: str,
        limit: int = DEFAULT_LIMIT,
        starting_after: str | None = None,
        ending_before: str | None = None,
    ) -> Page:
        """Return rows, newest first."""
        return await self._pager.page(org_id, limit, starting_after, ending_before)

    async def all(self, org_id: str) -> list[Row]:
        """Return every row, newest first."""
        return await self._pager.all(org_id)

    async def files(self, recording_id: str) -> list[Row]:
        return await self._store.all("list_recording_files", recording_id=recording_id)

    async def read(self, file: Row) -> bytes:
        chunks = [chunk async for chunk in self._shelf.read(storage_key(file["media_id"]), 0, file["size_bytes"])]
        return b"".join(chunks)

    # ------------------------------------------------------------------------------------------------------ recording

    async def shelve(self, recording_id: str, files: Sequence[StoredOutput]) -> list[dict[str, Any]]:
        """Copies of their own: a recording outlives the request's media."""
        rows = []
        for position, one in enumerate(files):
            media_id = f"med_{recording_id.removeprefix('rec_')}{position:02}"
            data = one.data
            if data is None:
                chunks = self._shelf.read(storage_key(one.output.media_id), 0, one.output.size_bytes)
                data = b"".join([chunk async for chunk in chunks])
            await self._shelf.put(storage_key(media_id), data, one.output.content_type)
            rows.append(
                {
                    "recording_id": recording_id,
                    "position": position,
                    "media_id": media_id,
                    "content_type": one.output.content_type,
                    "size_bytes": one.output.size_bytes,
                    "sha256": one.sha256,
                }
            )
        return rows

    async def write(self, tx: Transaction, row: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> None:
        await tx.run("add_recording", **row)
        for file in files:
            await tx.run("add_recording_file", **file)

    async def delete(self, org_id: str, recording_id: str) -> int:
        """How many files went with it."""
        row = await self.get(org_id, recording_id)
        gone = [await self._shelf.delete(storage_key(file["media_id"])) for file in await self.files(row["id"])]

        async def write(tx: Transaction) -> None:
            await tx.run("delete_recording_files", recording_id=row["id"])
            await tx.run("delete_recording", id=row["id"], org_id=org_id)

        await self._store.write(write)
        return sum(gone)

    def new_id(self) -> str:
        return new_id("rec", self._clock.now_ms())


def missing() -> RecordingNotFound:
    return RecordingNotFound("No recording matches this call.", should_retry=False)


def recorded(settled: GenerationResult, files: Sequence[Output]) -> bytes:
    """What a recording keeps of a settlement; no id of ours, no cost."""
    kept = Recorded(
        provider=settled.provider,
        provider_name=settled.provider_name,
        executed_model=settled.executed_model,
        upstream_id=settled.upstream_id,
        seconds=settled.seconds,
        files=tuple(msgspec.structs.replace(one, media_id="") for one in files),
    )
    return msgspec.json.encode(kept)


def signals(stand: str, recording_id: str | None) -> dict[str, str]:
    """How an answer came about, on the answer itself."""
    headers = {"x-service-replay-status": stand}
    if recording_id:
        headers["x-service-replay-recording"] = recording_id
    return headers
