"""Remember which outputs were sent again as inputs, so that a video leads back to its image."""

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from penstock.store.base import Row, Store
from penstock.store.related import read_related
from penstock.values import InputFile, OrgId


class ReusedOutput(msgspec.Struct, frozen=True):
    """An output that a request took as an input."""

    request_id: str  # that took it
    media_id: str
    made_by: str  # the request that made it


class Lineage(msgspec.Struct, frozen=True):
    """What outputs were made from, by request, and which requests took them, by output."""

    made_from: dict[str, list[ReusedOutput]]
    used_in: dict[str, list[ReusedOutput]]


async def reused_output_rows(store: Store, org_id: OrgId, request_id: str, inputs: Sequence[InputFile]) -> list[Row]:
    """The rows about inputs that came as outputs of the same organization, byte by byte, for `add_reused_output`."""
    digests = [file.received.hex() for file in inputs if file.received]
    found = await read_related(store, "find_outputs_by_digest", digests, org_id=org_id)
    newest = {row["sha256"]: row for row in sorted(found, key=lambda row: str(row["media_id"]))}
    return [
        {"org_id": org_id, "request_id": request_id, "media_id": row["media_id"], "made_by": row["request_id"]}
        for row in newest.values()
    ]


async def read_lineage(store: Store, org_id: OrgId, request_ids: Sequence[str]) -> Lineage:
    """What the outputs of these requests were made from, and what was made from them."""
    lineage = Lineage(defaultdict(list), defaultdict(list))
    for row in await read_related(store, "list_reused_outputs", request_ids, org_id=org_id):
        reused = ReusedOutput(**row)
        lineage.made_from[reused.request_id].append(reused)
        lineage.used_in[reused.media_id].append(reused)
    return lineage
