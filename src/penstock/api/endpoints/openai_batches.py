"""OpenAI's files and batches: the same batches as under `/v1/batches`, in the shapes of its clients."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from penstock.api import query
from penstock.api.endpoints.batches import VENDOR_BATCH_FIELD, batch_claim, make_once, repetition_headers
from penstock.api.endpoints.files import read_first_chunk
from penstock.api.fields import checked_fields
from penstock.api.route import Query
from penstock.batches import intake, lines, uploads
from penstock.batches.intake import BatchOptions
from penstock.batches.records import AUTO, CANCELLING, PREFIX, BatchRecord, get_batch
from penstock.batches.results import results_jsonl
from penstock.errors import InvalidRequest, NotFound, quoted
from penstock.fields import Field, UploadedFile, field_table, number_field, object_field, text_field
from penstock.gateway import Gateway
from penstock.generations import forms
from penstock.schema import Call, Response
from penstock.store.paging import MAX_LIMIT, Pager
from penstock.values import is_id, nanos

_MAX_USD = 1_000_000_000
_METADATA_MAX = 16
# The results of a batch, as files that are made when they are read.
_OUTPUTS = "file-output"
_ERRORS = "file-error"
FILE_FIELDS = field_table(
    Field(name="file", types=("file",), about="JSONL: a line for each call.", required=True),
    text_field("purpose", "Files are only taken to make batches of them.", required=True, one_of=(uploads.PURPOSE,)),
    object_field("expires_after", "Accepted; files are kept for 30 days."),
)
COMPAT_BATCH_FIELDS = field_table(
    text_field("input_file_id", "Id of a file that was uploaded for batches.", required=True, max_length=64),
    text_field("endpoint", "What the lines call that have no `url`.", required=True, max_length=64),
    text_field("completion_window", "`24h`; see `vendor_batch`.", required=True, one_of=("24h",)),
    object_field("metadata", "Up to 16 pairs of strings, returned with the batch."),
    object_field("output_expires_after", "Accepted; results are made when they are read."),
    number_field("max_cost", "Dollars that all rows together may cost.", low=0, high=_MAX_USD),
    VENDOR_BATCH_FIELD,
)
COMPAT_LIST_QUERY = (
    Query(name="limit", type="integer", default=20, low=1, high=MAX_LIMIT, about="How many to return."),
    Query(name="after", about="Id of the last one of the page before."),
    Query(name="order", one_of=("asc", "desc"), default="desc", about="Oldest or newest first; files only."),
    Query(name="purpose", about="Files of this purpose."),
)


# ---------------------------------------------------------------------------------------------------------------- files


async def upload_file(gateway: Gateway, call: Call) -> Response:
    """Store a file for batches."""
    body = forms.read(call.form, FILE_FIELDS)
    files = body.get("file") or [None]
    fields = checked_fields({**body, "file": files[0] if len(files) == 1 else files}, FILE_FIELDS)
    file: UploadedFile = fields["file"]
    return Response(json=uploads.file_object(await uploads.store_upload(gateway, call.caller.org_id, file)))


async def list_uploads(gateway: Gateway, call: Call) -> Response:
    asked = query.read(COMPAT_LIST_QUERY, call.query)
    if asked["purpose"] not in (None, uploads.PURPOSE):
        return Response(json=_list([], has_more=False))
    pager = Pager(gateway.store, "upload", uploads.PREFIX, uploads.UploadRow)
    rows, more = await _page(pager, call, asked, ascending=asked["order"] == "asc")
    return Response(json=_list([uploads.file_object(row) for row in rows], has_more=more))


async def retrieve_upload(gateway: Gateway, call: Call) -> Response:
    file_id = call.path["file_id"]
    if (of_batch := _batch_of_file(file_id)) is not None:
        batch = await get_batch(gateway.store, call.caller.org_id, of_batch)
        created = (batch.ended_at_ms or batch.created_at_ms) // 1000
        shown = {"id": file_id, "object": "file", "bytes": 0, "created_at": created, "filename": f"{file_id}.jsonl"}
        return Response(json={**shown, "expires_at": None, "purpose": "batch_output", "status": "processed"})
    return Response(json=uploads.file_object(await uploads.get_upload(gateway, call.caller.org_id, file_id)))


async def download_upload(gateway: Gateway, call: Call) -> Response:
    """Return what is in a file: one that was uploaded, or the results of a batch."""
    file_id = call.path["file_id"]
    headers = {"content-disposition": f'attachment; filename="{file_id}.jsonl"', "cache-control": "no-store"}
    if (of_batch := _batch_of_file(file_id)) is not None:
        batch = await get_batch(gateway.store, call.caller.org_id, of_batch)
        status = "failed" if file_id.startswith(_ERRORS) else "completed"
        chunks = results_jsonl(gateway, batch, call.base_url, status)
    else:
        chunks = uploads.read_pieces(gateway, await uploads.get_upload(gateway, call.caller.org_id, file_id))
    return await read_first_chunk(Response(chunks=chunks, headers=headers, media_type="application/jsonl"))


async def delete_upload(gateway: Gateway, call: Call) -> Response:
    row = await uploads.get_upload(gateway, call.caller.org_id, call.path["file_id"])
    await uploads.delete_upload(gateway, row)
    return Response(json={"id": row.id, "object": "file", "deleted": True})


def _batch_of_file(file_id: str) -> str | None:
    """The batch whose results a file has; None for one that was uploaded."""
    for kind in (_OUTPUTS, _ERRORS):
        if file_id.startswith(f"{kind}-"):
            batch_id = f"{PREFIX}_{file_id.removeprefix(f'{kind}-')}"
            if not is_id(batch_id, PREFIX):
                raise NotFound(f"No such file: {file_id[:64]}.")
            return batch_id
    return None


# -------------------------------------------------------------------------------------------------------------- batches


async def create_openai_batch(gateway: Gateway, call: Call) -> Response:
    """Create a batch of an uploaded file. A file with a faulty line is refused whole, in this response."""
    fields = checked_fields(call.json, COMPAT_BATCH_FIELDS)
    path = lines.endpoint_path(fields["endpoint"])
    if path is None:
        raise InvalidRequest(f"`endpoint` must be one of {quoted(lines.SHORT_ENDPOINTS)}.", param="endpoint")
    row = await uploads.get_upload(gateway, call.caller.org_id, fields["input_file_id"])
    options = BatchOptions(
        max_cost=nanos(Decimal(str(fields["max_cost"]))) if "max_cost" in fields else None,
        upload_id=row.id,
        source="input_file_id",
        endpoint=fields["endpoint"],
        metadata=_metadata(fields.get("metadata")),
        vendor_batch=fields.get("vendor_batch", AUTO),
    )
    rows = lines.read_jsonl(await uploads.read_upload(gateway, row), path, {})
    batch_id = intake.new_batch_id(gateway)
    claim = await batch_claim(gateway, call, fields, batch_id, "OpenAI batch")
    batch = await make_once(
        gateway, claim, lambda: intake.create_batch(gateway, call.caller, rows, options, batch_id, claim)
    )
    gateway.batch_wakeup.set()
    return Response(json=openai_batch(batch), headers=repetition_headers(batch.id != batch_id))


def _metadata(value: Mapping[str, Any] | None) -> str | None:
    if value is None:
        return None
    if len(value) > _METADATA_MAX or any(
        len(name) > 64 or not isinstance(text, str) or len(text) > 512 for name, text in value.items()
    ):
        message = "`metadata` must be at most 16 pairs of strings, names up to 64 and values up to 512 characters."
        raise InvalidRequest(message, param="metadata")
    return msgspec.json.encode(value).decode()


async def list_openai_batches(gateway: Gateway, call: Call) -> Response:
    asked = query.read(COMPAT_LIST_QUERY, call.query)
    pager = Pager(gateway.store, "batch", PREFIX, BatchRecord, plural="batches")
    rows, more = await _page(pager, call, asked)
    return Response(json=_list([openai_batch(row) for row in rows], has_more=more))


async def retrieve_openai_batch(gateway: Gateway, call: Call) -> Response:
    return Response(json=openai_batch(await get_batch(gateway.store, call.caller.org_id, call.path["batch_id"])))


async def cancel_openai_batch(gateway: Gateway, call: Call) -> Response:
    """Begin no more rows of a batch; one that has ended stays as it is."""
    batch = await get_batch(gateway.store, call.caller.org_id, call.path["batch_id"])
    values = {"id": batch.id, "org_id": batch.org_id}
    await gateway.store.write(lambda tx: tx.run("cancel_batch", **values))
    gateway.batch_wakeup.set()
    return Response(json=openai_batch(await get_batch(gateway.store, batch.org_id, batch.id)))


def openai_batch(batch: BatchRecord) -> dict[str, Any]:
    """A batch as OpenAI's API shows it; one that is paused is in progress there."""
    suffix = batch.id.partition("_")[2]
    created = batch.created_at_ms // 1000
    ended = None if batch.ended_at_ms is None else batch.ended_at_ms // 1000
    counts = {"total": batch.rows_total, "completed": batch.rows_completed, "failed": batch.rows_failed}
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint or "",
        "input_file_id": batch.upload_id or "",
        "completion_window": "24h",
        "status": "in_progress" if batch.status == "paused" else batch.status,
        "created_at": created,
        "in_progress_at": created,
        "completed_at": ended if batch.status == "completed" else None,
        "cancelled_at": ended if batch.status == "cancelled" else None,
        "cancelling_at": created if batch.status == CANCELLING else None,
        "output_file_id": f"{_OUTPUTS}-{suffix}" if ended and batch.rows_completed else None,
        "error_file_id": f"{_ERRORS}-{suffix}" if ended and batch.rows_failed else None,
        "errors": None,
        "request_counts": counts,
        "metadata": msgspec.json.decode(batch.metadata) if batch.metadata else None,
    }


async def _page(pager: Pager[Any], call: Call, asked: Mapping[str, Any], *, ascending: bool = False) -> Any:
    """The rows after the one that the call names, and whether there are more."""
    edge = {("low" if ascending else "high"): asked["after"]} if asked["after"] else {}
    return await pager.rows(call.caller.org_id, asked["limit"], ascending=ascending, **edge)


def _list(data: list[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": has_more,
    }
