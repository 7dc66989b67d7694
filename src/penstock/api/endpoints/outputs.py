"""List the outputs that are still stored, keep them, mark favorites, and share them by URL."""

from penstock.accounts.requests import KINDS
from penstock.api import query
from penstock.api.fields import checked_fields
from penstock.api.paging import LIMIT, cursors, page_body
from penstock.api.responses import NO_STORE
from penstock.api.route import Query
from penstock.fields import field_table, flag_field, text_field
from penstock.gateway import Gateway
from penstock.generations import library
from penstock.schema import Call, Response

OUTPUTS_QUERY = (
    LIMIT,
    *cursors("output"),
    Query(name="search", about="With all these words in the prompt, where it is stored."),
    Query(name="type", one_of=("image", "video", "audio"), about="Of this type."),
    Query(name="kind", one_of=tuple(kind for kind in KINDS if kind != "chat"), about="Of requests of this kind."),
    Query(name="model", about="Of this model, by the name in the call."),
    Query(name="key_id", about="Made with this key."),
    Query(name="request_id", about="Of this request."),
    Query(name="favorite", type="boolean", default=False, about="Only favorites."),
    Query(name="created_after", type="time", about="Made at this moment or later."),
    Query(name="created_before", type="time", about="Made at this moment or earlier."),
)
OUTPUT_FIELDS = field_table(
    flag_field("favorite", "Whether the output is a favorite of the organization."),
    text_field(
        "keep", "How long the outputs of its request are kept from now, such as `7d`; never shorter than they are."
    ),
)
SHARE_FIELDS = field_table(
    text_field("expires_in", "How long the URL works, such as `24h` or `7d`.", default="7d", max_length=16)
)


async def list_outputs(gateway: Gateway, call: Call) -> Response:
    page = await library.list_outputs(gateway, call, query.read(OUTPUTS_QUERY, call.query))
    return Response(json=page_body(call, OUTPUTS_QUERY, page))


async def retrieve_output(gateway: Gateway, call: Call) -> Response:
    return Response(json=await library.get_record(gateway, call, await library.find_output(gateway, call)))


async def change_output(gateway: Gateway, call: Call) -> Response:
    """Change what the body names. Keeping an output concerns the key that made it."""
    fields = checked_fields(call.json, OUTPUT_FIELDS)
    output = await library.find_output(gateway, call, to_change="keep" in fields)
    if "keep" in fields:
        await library.keep_longer(gateway, call, output, fields["keep"])
    if "favorite" in fields:
        await library.set_favorite(gateway, call, output, fields["favorite"])
    return Response(json=await library.get_record(gateway, call, output))


async def share_output(gateway: Gateway, call: Call) -> Response:
    fields = checked_fields(call.json, SHARE_FIELDS)
    output = await library.find_output(gateway, call, to_change=True)
    shared = library.share(gateway, call, output, fields.get("expires_in", "7d"))
    return Response(json=shared, headers=NO_STORE)


async def unshare_output(gateway: Gateway, call: Call) -> Response:
    output = await library.find_output(gateway, call, to_change=True)
    await library.revoke_shares(gateway, call, output)
    return Response(status=204)
