"""What is stored about a recording: its row, its result and its files."""

from typing import Any

import msgspec

from penstock.schema import Fingerprint, Output
from penstock.store.base import Store, Transaction
from penstock.values import Nanos, OrgId


class RecordedResult(msgspec.Struct, frozen=True):
    """The result of a recorded call, without the gateway's own ids."""

    provider: str
    provider_name: str
    executed_model: str
    upstream_id: str | None
    seconds: float | None
    files: tuple[Output, ...]
    chunks: tuple[tuple[int, int], ...] = ()  # of a stream: after how many milliseconds each came, and its bytes
    cost: Nanos | None = None  # that it was charged; None: not known


class ListedRecording(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of the table `recordings` that lists have."""

    id: str
    org_id: OrgId
    request_id: str | None  # the request that was recorded; None when imported
    imported_id: str | None = None  # the id in the file that it was imported from
    kind: str
    model: str
    duration_ms: int
    created_at_ms: int
    request: bytes | None  # parameters by name, as JSON; None only in lists, if it is very long


class RecordingRow(ListedRecording, frozen=True, kw_only=True):
    """A row of the table `recordings`."""

    import_digest: bytes | None = None  # of the contents of the file that it was imported from
    task: str
    standard: bytes  # the digests by which a call is matched with it
    strict: bytes
    exact: bytes | None = None  # None: made before there was this digest
    result: bytes  # a RecordedResult as JSON

    def decode_request(self) -> dict[str, Any]:
        """The parameters of the call by name."""
        assert self.request is not None, "it is left out only in lists"
        return msgspec.json.decode(self.request, type=dict[str, Any])

    def decode_result(self) -> RecordedResult:
        return msgspec.json.decode(self.result, type=RecordedResult)


class RecordingFileRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table `recording_files`."""

    recording_id: str
    position: int
    media_id: str
    content_type: str
    size_bytes: int
    sha256: bytes


async def get_recording(store: Store | Transaction, recording_id: str, org_id: OrgId) -> RecordingRow | None:
    row = await store.one("get_recording", id=recording_id, org_id=org_id)
    return None if row is None else RecordingRow(**row)


async def find_pinned_recording(store: Store | Transaction, recording_id: str, org_id: OrgId) -> RecordingRow | None:
    """The recording with an id, else the newest one that was imported from a file with that id."""
    row = await store.one("find_pinned_recording", id=recording_id, org_id=org_id)
    return None if row is None else RecordingRow(**row)


async def find_recording(store: Store | Transaction, org_id: OrgId, fingerprint: Fingerprint) -> RecordingRow | None:
    """The newest recording with the digest that a call is matched by; one with the same prompt before all others."""
    values = {"org_id": org_id, "kind": fingerprint.kind, "digest": fingerprint.digest}
    if fingerprint.by == "standard":
        values["exact"] = fingerprint.exact
    row = await store.one(f"find_{fingerprint.by}_recording", **values)
    return None if row is None else RecordingRow(**row)
