"""The library: list the outputs that are still stored, keep them longer, mark favorites, share them by URL."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.accounts.key_records import ADMIN, read_key_names
from penstock.accounts.request_filters import encode_words
from penstock.accounts.request_records import read_prompts
from penstock.errors import InvalidRequest, NotFound, PermissionDenied
from penstock.gateway import Gateway
from penstock.generations.reused_outputs import Lineage, read_lineage
from penstock.media.rows import OutputRow
from penstock.schema import Call
from penstock.store.base import Transaction
from penstock.store.paging import Page, Pager
from penstock.values import Retention, is_id, iso


class LibraryRow(OutputRow, frozen=True, kw_only=True):
    """An output, and what is shown of the request that made it."""

    created_at_ms: int
    favorite_at_ms: int | None
    kind: str | None
    model: str | None
    provider: str | None
    key_id: str


class SharedOutput(msgspec.Struct, frozen=True):
    """What is needed to share an output or to keep it."""

    id: str
    request_id: str
    expires_at_ms: int
    share_version: int


async def list_outputs(gateway: Gateway, call: Call, asked: Mapping[str, Any]) -> Page[dict[str, Any]]:
    """The outputs of the caller's organization that match, newest first."""
    search = asked["search"]
    page = await Pager(gateway.store, "output", "med", LibraryRow).page(
        call.caller.org_id,
        asked["limit"],
        asked["starting_after"],
        asked["ending_before"],
        now_ms=gateway.clock.now_ms(),
        request_id=asked["request_id"],
        type=f"{asked['type']}/" if asked["type"] else None,
        model=asked["model"],
        kind=asked["kind"],
        key_id=asked["key_id"],
        favorite="yes" if asked["favorite"] else None,
        after_ms=asked["created_after"],
        before_ms=asked["created_before"],
        words=encode_words(search) if search else None,
    )
    return page.with_data(await _records(gateway, call, page.data))


async def get_record(gateway: Gateway, call: Call, output: SharedOutput) -> dict[str, Any]:
    """One output as the list shows it."""
    filters: dict[str, Any] = dict.fromkeys(
        ("request_id", "type", "model", "kind", "key_id", "favorite", "after_ms", "before_ms", "words")
    )
    rows, _ = await Pager(gateway.store, "output", "med", LibraryRow).rows(
        call.caller.org_id, 1, high=f"{output.id}~", now_ms=gateway.clock.now_ms(), **filters
    )
    records = await _records(gateway, call, [row for row in rows if row.id == output.id])
    if not records:
        raise NotFound("No such output.")
    return records[0]


async def find_output(gateway: Gateway, call: Call, *, to_change: bool = False) -> SharedOutput:
    """The output in the path of a call. Raises NotFound if it is gone, and, with `to_change`, PermissionDenied for one
    that another key made, unless the caller has the scope `admin`.
    """
    output_id = call.path["output_id"]
    org_id = call.caller.org_id
    row = await gateway.store.one("get_output", id=output_id, org_id=org_id) if is_id(output_id, "med") else None
    if row is None or row["expires_at_ms"] <= gateway.clock.now_ms():
        raise NotFound(f"No such output: {output_id[:64]}.")
    output = SharedOutput(**row)
    if to_change and ADMIN not in call.caller.scopes:
        request = await gateway.requests.get(org_id, output.request_id)
        if request is None or request.key_id != call.caller.key_id:
            raise PermissionDenied("Only a key with the `admin` scope may keep or share outputs of other keys.")
    return output


async def set_favorite(gateway: Gateway, call: Call, output: SharedOutput, is_favorite: bool) -> None:
    at_ms = gateway.clock.now_ms() if is_favorite else None
    values = {"id": output.id, "org_id": call.caller.org_id, "at_ms": at_ms}
    await gateway.store.write(lambda tx: tx.run("set_favorite", **values), org_id=call.caller.org_id)


async def keep_longer(gateway: Gateway, call: Call, output: SharedOutput, retention: str) -> None:
    """Keep all outputs of the output's request for so long from now; what is kept longer already stays as it is."""
    now_ms = gateway.clock.now_ms()
    until_ms = now_ms + _seconds(gateway, retention, "keep") * 1000
    org_id = call.caller.org_id

    async def write(tx: Transaction) -> None:
        await tx.run("keep_generation", id=output.request_id, org_id=org_id, until_ms=until_ms)
        await tx.run("keep_outputs", request_id=output.request_id, org_id=org_id, now_ms=now_ms, until_ms=until_ms)

    await gateway.store.write(write, org_id=org_id)


def share(gateway: Gateway, call: Call, output: SharedOutput, expires_in: str) -> dict[str, Any]:
    """A URL by which anybody can open the file, for so long from now or until it is deleted."""
    seconds = _seconds(gateway, expires_in, "expires_in")
    until_ms = min(output.expires_at_ms, gateway.clock.now_ms() + seconds * 1000)
    url = gateway.media.shared_url(output.id, output.share_version, until_ms, call.base_url)
    return {"object": "output.share", "output_id": output.id, "url": url, "expires_at": iso(until_ms)}


async def revoke_shares(gateway: Gateway, call: Call, output: SharedOutput) -> None:
    """Refuse all URLs by which the output was shared."""
    values = {"id": output.id, "org_id": call.caller.org_id}
    await gateway.store.write(lambda tx: tx.run("revoke_shares", **values), org_id=call.caller.org_id)


def _seconds(gateway: Gateway, text: str, param: str) -> int:
    longest = gateway.settings.media_retention_max
    try:
        seconds = Retention.parse(text).seconds
    except ValueError:
        seconds = 0
    if not 0 < seconds <= Retention.parse(longest).seconds:
        raise InvalidRequest(
            f"`{param}` must be hours or days such as `12h` or `7d`, at most `{longest}`.", param=param
        )
    return seconds


async def _records(gateway: Gateway, call: Call, rows: Sequence[LibraryRow]) -> list[dict[str, Any]]:
    org_id = call.caller.org_id
    ids = sorted({row.request_id for row in rows})
    prompts = await read_prompts(gateway.store, ids, org_id)
    lineage = await read_lineage(gateway.store, org_id, ids)
    names = await read_key_names(gateway.store, sorted({row.key_id for row in rows}), org_id)
    return [await _record(gateway, call, row, prompts, lineage, names) for row in rows]


async def _record(
    gateway: Gateway,
    call: Call,
    row: LibraryRow,
    prompts: Mapping[str, str],
    lineage: Lineage,
    names: Mapping[str, str | None],
) -> dict[str, Any]:
    until_ms = min(row.expires_at_ms, gateway.clock.now_ms() + gateway.settings.url_seconds * 1000)
    return {
        "id": row.id,
        "object": "output",
        "request_id": row.request_id,
        "created_at": iso(row.created_at_ms),
        "kind": row.kind,
        "model": row.model,
        "provider": row.provider,
        "key_id": row.key_id,
        "key_name": names.get(row.key_id),
        "prompt": prompts.get(row.request_id),
        "revised_prompt": row.revised_prompt,
        "url": await gateway.media.signed_url(row.id, until_ms, call.base_url),
        "thumbnail_url": gateway.media.thumbnail_url(row.id, row.content_type, until_ms, call.base_url),
        "content_type": row.content_type,
        "size_bytes": row.size_bytes,
        "width": row.width,
        "height": row.height,
        "content_credentials": msgspec.json.decode(row.credentials) if row.credentials else None,
        "favorite": row.favorite_at_ms is not None,
        "expires_at": iso(row.expires_at_ms),
        "made_from": [
            {"output_id": reused.media_id, "request_id": reused.made_by} for reused in lineage.made_from[row.request_id]
        ],
        "used_in": [reused.request_id for reused in lineage.used_in[row.id]],
    }
