"""List, retrieve, delete, export and import recordings."""

from penstock.api import query
from penstock.api.endpoints.files import read_first_chunk
from penstock.api.paging import LIMIT, cursors, page_body, path_id
from penstock.fields import array_field, field_table, integer_field, number_field, object_field, text_field
from penstock.gateway import Gateway
from penstock.recordings import files
from penstock.schema import Call, Response

RECORDINGS_QUERY = (LIMIT, *cursors("recording"))
_TEXTS = (
    "id",
    "kind",
    "task",
    "model",
    "recorded_at",
    "provider",
    "provider_name",
    "executed_model",
    "standard",
    "strict",
)
RECORDING_FIELDS = field_table(
    integer_field("penstock_recording", "Version of the file format.", required=True, low=1, high=1),
    *(text_field(name, "As exported.", required=True, max_length=files.LONGEST_NAME) for name in _TEXTS),
    integer_field("duration_ms", "How long the call took.", required=True, low=0, high=files.LONGEST_DURATION_MS),
    object_field("request", "The fields of the call.", required=True),
    text_field("upstream_id", "The provider's id of the job.", max_length=files.LONGEST_NAME),
    number_field("seconds", "Length of a video.", low=0, high=86_400),
    array_field("files", "The outputs, in base64.", required=True),
    text_field("exact", "As exported.", max_length=files.LONGEST_NAME),
    text_field("cost", "What the call cost in dollars.", max_length=files.LONGEST_NAME),
    array_field("chunks", "When each chunk of a stream came, in milliseconds, and its bytes."),
)


async def list_recordings(gateway: Gateway, call: Call) -> Response:
    asked = query.read(RECORDINGS_QUERY, call.query)
    page = await gateway.recordings.page(call.caller.org_id, **asked)
    records = [files.summary(recording) for recording in page.data]
    return Response(json=page_body(call, RECORDINGS_QUERY, page.with_data(records)))


async def retrieve_recording(gateway: Gateway, call: Call) -> Response:
    recording_id = path_id(call, "recording_id", "rec", "recording")
    return Response(json=files.summary(await gateway.recordings.get(call.caller.org_id, recording_id)))


async def delete_recording(gateway: Gateway, call: Call) -> Response:
    recording_id = path_id(call, "recording_id", "rec", "recording")
    deleted = await gateway.recordings.delete(call.caller.org_id, recording_id)
    return Response(json={"id": recording_id, "object": "recording", "deleted": True, "media_deleted": deleted})


async def export_recording(gateway: Gateway, call: Call) -> Response:
    """Return one JSON document with the outputs in it, which `import_recording` accepts."""
    row = await gateway.recordings.get(call.caller.org_id, path_id(call, "recording_id", "rec", "recording"))
    file_id, pieces = await files.stream_recording(gateway.recordings, row)
    headers = {"content-disposition": f'attachment; filename="{file_id}.json"'}
    return await read_first_chunk(Response(chunks=pieces, headers=headers))


async def import_recording(gateway: Gateway, call: Call) -> Response:
    org_id = call.caller.org_id
    now_ms = gateway.clock.now_ms()
    recording_id = await files.import_recording(
        gateway.store, gateway.recordings, org_id, call.json, {}, now_ms, gateway.quota, pool=gateway.worker_pool
    )
    return Response(json=files.summary(await gateway.recordings.get(org_id, recording_id)))
