"""What is stored about a file: the columns of the table `media`, in the selections that are read."""

from collections.abc import Sequence

import msgspec

from penstock.store.base import Store
from penstock.store.related import read_related
from penstock.values import OrgId


class OutputRow(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of an output that callers see."""

    id: str
    request_id: str
    content_type: str
    size_bytes: int
    width: int | None
    height: int | None
    revised_prompt: str | None
    expires_at_ms: int
    credentials: str | None = None  # as JSON
    delivered: str | None = None  # where its copy is, as JSON


class MediaRow(OutputRow, frozen=True, kw_only=True):
    """A row of the table `media`."""

    org_id: OrgId
    role: str  # output, image, mask or reference
    position: int
    sha256: bytes
    created_at_ms: int
    share_version: int = 0  # that of the URLs by which it is shared now


class ExampleRow(msgspec.Struct, frozen=True, kw_only=True):
    """The newest output of a model, as an example of what it makes."""

    model: str
    id: str
    request_id: str
    content_type: str
    width: int | None
    height: int | None
    expires_at_ms: int


class FileRow(msgspec.Struct, frozen=True, kw_only=True):
    """A file that should be in storage, of a request or of a recording."""

    id: str
    size_bytes: int
    expires_at_ms: int | None  # None for a file of a recording


class FileDigest(msgspec.Struct, frozen=True, kw_only=True):
    """A file that should be in storage, and the SHA-256 of its bytes."""

    id: str
    size_bytes: int
    sha256: bytes


async def get_media(store: Store, media_id: str) -> MediaRow | None:
    row = await store.one("get_media", id=media_id)
    return None if row is None else MediaRow(**row)


async def list_media(store: Store, request_id: str, org_id: OrgId) -> list[MediaRow]:
    """The files of a request, in order."""
    return [MediaRow(**row) for row in await store.all("list_media", request_id=request_id, org_id=org_id)]


async def list_outputs(store: Store, request_ids: Sequence[str], org_id: OrgId, now_ms: int) -> list[OutputRow]:
    """The outputs of requests that have not expired, in order."""
    rows = await read_related(store, "list_outputs_of_requests", request_ids, org_id=org_id, now_ms=now_ms)
    return [OutputRow(**row) for row in rows]


async def list_examples(store: Store, models: Sequence[str], org_id: OrgId, now_ms: int) -> list[ExampleRow]:
    """The first output of the newest request of each model that still has one."""
    rows = await read_related(store, "list_examples_of_models", models, org_id=org_id, now_ms=now_ms)
    return [ExampleRow(**row) for row in rows]


async def list_all_files(store: Store) -> list[FileRow]:
    """Every file that should be in storage."""
    return [FileRow(**row) for row in await store.slow("list_all_files")]


async def list_file_digests(store: Store) -> list[FileDigest]:
    """Every file that should be in storage, with its SHA-256."""
    return [FileDigest(**row) for row in await store.slow("list_file_digests")]
