"""List and change the buckets of the caller's organization, into which copies of outputs go."""

from penstock.api.fields import checked_fields
from penstock.api.responses import NO_STORE
from penstock.destinations.destinations import MAX_KEY_CHARS, MAX_NAME_CHARS
from penstock.destinations.places import DEFAULT_PATH, DEFAULT_REGION, MAX_PATH_CHARS, MAX_URL_CHARS
from penstock.fields import Field, field_table, flag_field, text_field
from penstock.gateway import Gateway
from penstock.schema import Call, Response

_OPTIONS: tuple[Field, ...] = (
    text_field("name", "Name of the destination.", max_length=MAX_NAME_CHARS),
    text_field("path", f"Path of each file below the folder, by default `{DEFAULT_PATH}`.", max_length=MAX_PATH_CHARS),
    flag_field("default", "Whether the outputs of calls without `deliver_to` go there."),
    flag_field("required", "Whether a call fails whose outputs cannot be copied."),
)
_KEYS: tuple[Field, ...] = (
    text_field("access_key_id", "Id of the access key.", required=True, max_length=MAX_KEY_CHARS),
    text_field(
        "secret_access_key", "Its secret; no response ever contains it.", required=True, max_length=MAX_KEY_CHARS
    ),
)
DESTINATION_FIELDS = field_table(
    text_field("url", "Bucket and folder, such as `s3://bucket/folder`.", required=True, max_length=MAX_URL_CHARS),
    text_field("region", f"Region of the bucket, by default `{DEFAULT_REGION}`.", max_length=32),
    text_field("endpoint", "HTTPS URL of a server that speaks S3; without it AWS.", max_length=256),
    *_KEYS,
    *_OPTIONS,
)
DESTINATION_CHANGE_FIELDS = field_table(*_OPTIONS)
DESTINATION_KEY_FIELDS = field_table(*_KEYS)


async def list_destinations(gateway: Gateway, call: Call) -> Response:
    await gateway.destinations.refresh()
    return Response(json={"object": "list", "data": gateway.destinations.list_records(call.caller.org_id)})


async def add_destination(gateway: Gateway, call: Call) -> Response:
    """Add a destination, after a file was written into it. Every process uses it within two seconds."""
    fields = checked_fields(call.json, DESTINATION_FIELDS)
    return Response(json=await gateway.destinations.add(call.caller.org_id, fields), headers=NO_STORE)


async def change_destination(gateway: Gateway, call: Call) -> Response:
    fields = checked_fields(call.json, DESTINATION_CHANGE_FIELDS, keeps_null=True)
    await gateway.destinations.refresh()
    record = await gateway.destinations.change(call.caller.org_id, call.path["destination_id"], fields)
    return Response(json=record)


async def rotate_destination(gateway: Gateway, call: Call) -> Response:
    """Replace the keys, also for the files that wait to be copied."""
    fields = checked_fields(call.json, DESTINATION_KEY_FIELDS)
    await gateway.destinations.refresh()
    record = await gateway.destinations.rotate(call.caller.org_id, call.path["destination_id"], fields)
    return Response(json=record, headers=NO_STORE)


async def check_destination(gateway: Gateway, call: Call) -> Response:
    await gateway.destinations.refresh()
    return Response(json=await gateway.destinations.check(call.caller.org_id, call.path["destination_id"]))


async def delete_destination(gateway: Gateway, call: Call) -> Response:
    await gateway.destinations.delete(call.caller.org_id, call.path["destination_id"])
    return Response(status=204)
