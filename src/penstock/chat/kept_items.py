"""Find the items of a response that are kept, and put kept items in place of references to them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from penstock.accounts.response_items import ResponseItem, find_items
from penstock.chat.responses_request import is_reference
from penstock.errors import NotFound, PayloadTooLarge
from penstock.event_loop import run_aside
from penstock.gateway import Gateway
from penstock.long_bodies.base64_pieces import FileAsBase64
from penstock.media.rows import list_outputs
from penstock.schema import Call

_FILE = "image_request"  # in a kept item: the image request whose file is the result of the item
_READ_AT_ONCE = 100


class _Item(msgspec.Struct):
    """What is read of an item to see whether it is kept."""

    id: Any = None
    type: Any = None
    encrypted_content: Any = None


class _Response(msgspec.Struct):
    output: list[msgspec.Raw] = []


_decode_item = msgspec.json.Decoder(_Item).decode
_decode_response = msgspec.json.Decoder(_Response).decode


def items_of(response: bytes | bytearray) -> list[ResponseItem]:
    """The items of a response, given as JSON, that a later call can be made of. Reasoning is one only if its provider
    can read it again.
    """
    if not response:
        return []
    found = [(_decode_item(raw), bytes(raw)) for raw in _decode_response(response).output]
    return [
        ResponseItem(item.id, raw)
        for item, raw in found
        if isinstance(item.id, str) and (item.type != "reasoning" or isinstance(item.encrypted_content, str))
    ]


def image_item(fields: Mapping[str, Any], request_id: str | None) -> ResponseItem:
    """The item of an image without the image itself, which is a file of its own request; None: none was made."""
    return ResponseItem(fields["id"], msgspec.json.encode({**fields, _FILE: request_id}))


async def with_items(gateway: Gateway, call: Call) -> Call:
    """The call with the items that it refers to. A reference to what is not kept stays as it is.

    Raises PayloadTooLarge for items that have more bytes together than a call may have.
    """
    given = call.json.get("input") if isinstance(call.json, dict) else None
    if not isinstance(given, list):
        return call
    references = [item["id"] for item in given if is_reference(item)]
    if not references:
        return call
    # The newest response may not be written yet, if it came from this process.
    await gateway.chat_settlement.catch_up(call.caller.org_id)
    found = await _find(gateway, call, references)
    size_bytes = call.size_bytes + sum(len(found.get(name, b"")) for name in references)
    if size_bytes > gateway.settings.json_bytes:
        message = f"The call has more than {gateway.settings.json_bytes} bytes with the items that it refers to."
        raise PayloadTooLarge(message, param="input")
    decoded = await run_aside(size_bytes, partial(_decoded, found))
    items = {name: await _with_file(gateway, call, item) for name, item in decoded.items()}
    body = {**call.json, "input": [items.get(item["id"], item) if is_reference(item) else item for item in given]}
    return msgspec.structs.replace(call, json=body, size_bytes=size_bytes)


async def _find(gateway: Gateway, call: Call, references: Sequence[str]) -> dict[str, bytes]:
    """The kept items by their ids, as many as a call can have."""
    found: dict[str, bytes] = {}
    names = list(dict.fromkeys(references))
    for start in range(0, len(names), _READ_AT_ONCE):
        batch = names[start : start + _READ_AT_ONCE]
        found |= await find_items(gateway.store, call.caller.org_id, batch, gateway.clock.now_ms())
        if sum(map(len, found.values())) > gateway.settings.json_bytes:
            break
    return found


def _decoded(found: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    return {name: msgspec.json.decode(data) for name, data in found.items()}


async def _with_file(gateway: Gateway, call: Call, item: dict[str, Any]) -> dict[str, Any]:
    """The item of an image with the image, unless that is gone."""
    request_id = item.pop(_FILE, None)
    if request_id is None:
        return item
    for output in await list_outputs(gateway.store, [request_id], call.caller.org_id, gateway.clock.now_ms()):
        try:
            data = await gateway.media.read(output.id, output.size_bytes)
        except NotFound:
            break
        return {**item, "result": await run_aside(len(data), str, FileAsBase64(data))}
    return item
