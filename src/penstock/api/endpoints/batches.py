"""Create batches, follow, pause, resume and cancel them, and read their results."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from penstock.accounts.idempotency import Claim, KeyTaken, find_claim, key_digest, other_call, release_key
from penstock.api import query
from penstock.api.endpoints.files import read_first_chunk
from penstock.api.fields import checked_fields
from penstock.api.paging import LIMIT, cursors, page_body
from penstock.api.route import Query
from penstock.batches import intake, lines
from penstock.batches.archive import results_zip
from penstock.batches.intake import BatchOptions, estimate_batch, new_batch_id
from penstock.batches.lines import BadLine, Line
from penstock.batches.records import PREFIX, VALIDATING, VENDOR_BATCH, BatchRecord, batch_object, get_batch
from penstock.batches.results import results_jsonl
from penstock.errors import Conflict, IdempotencyInProgress, InvalidRequest, NotFound, quoted
from penstock.event_loop import run_aside
from penstock.fields import (
    Field,
    UploadedFile,
    array_field,
    field_table,
    flag_field,
    integer_field,
    number_field,
    object_field,
    text_field,
)
from penstock.gateway import Gateway
from penstock.generations import forms
from penstock.generations.idempotency_keys import read_key
from penstock.net import checked_urls
from penstock.schema import Call, Response
from penstock.store.paging import Pager
from penstock.values import Nanos, nanos

_MAX_USD = 1_000_000_000
_MAX_CONCURRENCY = 1000
_LONGEST_NAME = 200
_CONCURRENCY = integer_field(
    "concurrency", "How many rows run at a time, at most.", low=1, high=_MAX_CONCURRENCY, default=8
)
MAX_COST_FIELD = number_field(
    "max_cost", "Dollars that all rows together may cost; before it would be passed, the batch is paused.",
    low=0, high=_MAX_USD,
)  # fmt: skip
VENDOR_BATCH_FIELD = text_field(
    "vendor_batch",
    "Whether chats go with batches of their providers, which cost less and are answered within a day: `auto` for those "
    "that can, `only` to refuse others.",
    one_of=VENDOR_BATCH,
)
BATCH_FIELDS = field_table(
    Field(name="file", types=("file",), about="JSONL, or CSV whose first row names the fields; in a form."),
    array_field("requests", "The rows themselves, instead of a file: each as a line of JSONL."),
    text_field(
        "endpoint",
        "What rows call that have no `url`: " + quoted(lines.SHORT_ENDPOINTS) + ".",
        max_length=64,
    ),
    object_field("defaults", "Fields of every row that does not have them itself."),
    text_field("name", "Your name for the batch.", max_length=_LONGEST_NAME),
    MAX_COST_FIELD,
    _CONCURRENCY,
    flag_field("skip_invalid", "Leave out rows that are wrong, instead of refusing the batch.", default=False),
    flag_field("start", "Whether the batch runs at once; otherwise it waits to be resumed.", default=True),
    VENDOR_BATCH_FIELD,
    text_field("webhook_url", "HTTPS URL that gets one event when the batch has ended.", max_length=2048),
)
RESUME_FIELDS = field_table(MAX_COST_FIELD, _CONCURRENCY)
_RESULTS = {"jsonl": (results_jsonl, "application/jsonl"), "zip": (results_zip, "application/zip")}
RESULTS_QUERY = (
    Query(name="format", one_of=tuple(_RESULTS), default="jsonl", about="`zip`: with the files that were made."),
)
BATCHES_QUERY = (LIMIT, *cursors("batch"))


async def create_batch(gateway: Gateway, call: Call) -> Response:
    """Check and price every row; then store and run them, or with `dryRun` only say what they would cost."""
    body = forms.read(call.form, BATCH_FIELDS) if call.is_form else call.json
    fields = checked_fields({**body, "file": one_file(body.get("file"))}, BATCH_FIELDS)
    options = _options(gateway, fields)
    rows = _lines(fields)
    if call.dry_run:
        return Response(json=await estimate_batch(gateway, call.caller, rows, options))
    batch_id = new_batch_id(gateway)
    claim = await batch_claim(gateway, call, fields, batch_id)
    batch = await make_once(
        gateway, claim, lambda: intake.create_batch(gateway, call.caller, rows, options, batch_id, claim)
    )
    gateway.batch_wakeup.set()
    return Response(json=batch_object(batch), headers=repetition_headers(batch.id != batch_id))


def repetition_headers(is_repeated: bool) -> dict[str, str]:
    """What says that a call made nothing, because an earlier one with its idempotency key had."""
    return {"idempotent-replayed": "true"} if is_repeated else {}


async def batch_claim(
    gateway: Gateway, call: Call, fields: Mapping[str, Any], batch_id: str, operation: str = "batch"
) -> Claim | None:
    """The call with these fields as it wants its idempotency key; None if it has none."""
    if (key := read_key(call, None)) is None:
        return None
    asked = await run_aside(call.size_bytes, _digest, fields)
    return Claim(call.caller.org_id, key_digest(operation, key), batch_id, asked, gateway.clock.now_ms())


def _digest(fields: Mapping[str, Any]) -> bytes:
    file = fields.get("file")
    asked = {**fields, "file": hashlib.sha256(file.data).hexdigest()} if file else fields
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic", enc_hook=str)).digest()


async def make_once(gateway: Gateway, claim: Claim | None, make: Callable[[], Awaitable[BatchRecord]]) -> BatchRecord:
    """The batch that is made, or that was made by an earlier call with the same key. Raises IdempotencyInProgress while
    another call makes one, and UnprocessableRequest if the first call asked for something else. A call that is refused
    does not use up its key.
    """
    while True:
        try:
            return await make()
        except KeyTaken:
            assert claim is not None, "it has a key"
            if earlier := await _earlier_batch(gateway, claim):
                return earlier
        except BaseException:
            if claim:
                await asyncio.shield(release_key(gateway.store, claim))
            raise


async def _earlier_batch(gateway: Gateway, claim: Claim) -> BatchRecord | None:
    """The batch of the call that has the key; None if it was deleted, and the key is free.

    Raises IdempotencyInProgress while its rows are checked, and UnprocessableRequest if it was asked for other rows.
    """
    earlier = await find_claim(gateway.store, claim)
    if earlier is None:
        return None
    try:
        batch = await get_batch(gateway.store, claim.org_id, earlier.request_id)
    except NotFound:  # refused, or its process died while it checked the rows
        await release_key(gateway.store, earlier)
        return None
    if earlier.body_digest != claim.body_digest:
        raise other_call(batch.id)
    if batch.status == VALIDATING:
        message = "The first call with this idempotency key is still being checked."
        raise IdempotencyInProgress(message, headers={"retry-after": "2"}, should_retry=True)
    return batch


def one_file(value: Any) -> Any:
    """The file of a form, which comes as a list. Raises InvalidRequest for several."""
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    if isinstance(value, list):
        raise InvalidRequest("`file` takes one file.", param="file")
    return value


def _options(gateway: Gateway, fields: Mapping[str, Any]) -> BatchOptions:
    names = ("name", "concurrency", "skip_invalid", "start", "vendor_batch")
    url = fields.get("webhook_url")
    return BatchOptions(
        **{name: fields[name] for name in names if name in fields},
        max_cost=budget(fields),
        source="requests" if "requests" in fields else "file",
        endpoint=fields.get("endpoint"),
        webhook_url=checked_urls.check_webhook_url(url, checked_urls.egress_rules(gateway.settings)) if url else None,
    )


def budget(fields: Mapping[str, Any]) -> Nanos | None:
    """The `max_cost` of a body."""
    return nanos(Decimal(str(fields["max_cost"]))) if "max_cost" in fields else None


def _lines(fields: Mapping[str, Any]) -> Iterator[Line | BadLine]:
    """The rows of a call, which are read one by one."""
    file: UploadedFile | None = fields.get("file")
    rows = fields.get("requests")
    if (file is None) == (rows is None):
        raise InvalidRequest(
            "Send `file` or `requests`, one of them.", param="requests" if rows is not None else "file"
        )
    endpoint = fields.get("endpoint")
    path = lines.endpoint_path(endpoint) if endpoint else None
    if endpoint and path is None:
        raise InvalidRequest(f"`endpoint` must be one of {quoted(lines.SHORT_ENDPOINTS)}.", param="endpoint")
    defaults = fields.get("defaults", {})
    if file is None:
        return lines.read_json(rows or (), path, defaults)
    is_csv = file.content_type == "text/csv" or file.filename.lower().endswith(".csv")
    return (lines.read_csv if is_csv else lines.read_jsonl)(file.data, path, defaults)


# -------------------------------------------------------------------------------------------------------------- reading


async def list_batches(gateway: Gateway, call: Call) -> Response:
    asked = query.read(BATCHES_QUERY, call.query)
    pager = Pager(gateway.store, "batch", PREFIX, BatchRecord, plural="batches")
    page = await pager.page(call.caller.org_id, asked["limit"], asked["starting_after"], asked["ending_before"])
    return Response(json=page_body(call, BATCHES_QUERY, page.with_data([batch_object(row) for row in page.data])))


async def retrieve_batch(gateway: Gateway, call: Call) -> Response:
    return Response(json=batch_object(await _batch(gateway, call)))


async def download_results(gateway: Gateway, call: Call) -> Response:
    """Return a line of JSON for each row that has ended, in the order of the file; or a zip with their files, too."""
    kind = query.read(RESULTS_QUERY, call.query)["format"]
    batch = await _batch(gateway, call)
    make, media_type = _RESULTS[kind]
    headers = {"content-disposition": f'attachment; filename="{batch.id}.{kind}"', "cache-control": "no-store"}
    chunks = make(gateway, batch, call.base_url)
    return await read_first_chunk(Response(chunks=chunks, headers=headers, media_type=media_type))


async def _batch(gateway: Gateway, call: Call) -> BatchRecord:
    return await get_batch(gateway.store, call.caller.org_id, call.path["batch_id"])


# ------------------------------------------------------------------------------------------------------------- changing


async def pause_batch(gateway: Gateway, call: Call) -> Response:
    """Begin no more rows; those that run go on to their ends."""
    return await _change(gateway, call, "pause_batch", reason="caller")


async def resume_batch(gateway: Gateway, call: Call) -> Response:
    """Begin rows again, perhaps with another budget or concurrency."""
    fields = checked_fields(call.json, RESUME_FIELDS)
    batch = await _batch(gateway, call)
    max_cost = budget(fields) if "max_cost" in fields else batch.max_cost
    concurrency = fields.get("concurrency", batch.concurrency)
    return await _change(gateway, call, "resume_batch", max_cost=max_cost, concurrency=concurrency)


async def cancel_batch(gateway: Gateway, call: Call) -> Response:
    """Begin no more rows for good; those that run go on to their ends."""
    return await _change(gateway, call, "cancel_batch")


async def _change(gateway: Gateway, call: Call, name: str, **values: Any) -> Response:
    """Change the state of a batch. Raises Conflict where its state does not allow that."""
    batch = await _batch(gateway, call)
    changed = await gateway.store.write(lambda tx: tx.run(name, id=batch.id, org_id=batch.org_id, **values))
    if not changed:
        batch = await _batch(gateway, call)
        word = name.partition("_")[0]
        raise Conflict(f"A batch that is `{batch.status}` cannot be changed by `{word}`.", should_retry=False)
    gateway.batch_wakeup.set()
    return Response(json=batch_object(await _batch(gateway, call)))
