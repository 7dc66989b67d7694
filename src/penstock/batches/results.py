"""What became of the rows of a batch, in the order of its file."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec

from penstock.accounts.payloads import get_payload
from penstock.batches.lines import CHATS, MODEL_RESPONSES, VIDEOS
from penstock.batches.records import CANCELLED, BatchRecord, EndedRow, list_rows
from penstock.errors import Cancelled, Problem
from penstock.gateway import Gateway
from penstock.generations import retrieve
from penstock.long_bodies.json_encoding import encode_with_files
from penstock.values import Nanos, OrgId, dollars

_ROWS_AT_ONCE = 100
_GONE = "The response is not stored any more."
_GONE_CODE = "NOT_FOUND"


async def ended_rows(gateway: Gateway, batch: BatchRecord) -> AsyncIterator[EndedRow]:
    """The rows that have ended and, if the batch was cancelled, those that never began."""
    after = 0
    while rows := await list_rows(gateway.store, batch.id, after, _ROWS_AT_ONCE):
        for row in rows:
            if row.status != "pending" or batch.status == CANCELLED:
                yield row
        after = rows[-1].number


async def results_jsonl(
    gateway: Gateway, batch: BatchRecord, base_url: str, status: str | None = None
) -> AsyncIterator[bytes]:
    """A line for each ended row, in the form of OpenAI's batches: `custom_id`, `response` or `error`, and the cost.
    With a `status`, only those that are completed, or those that are not.
    """
    async for row in ended_rows(gateway, batch):
        if status is not None and (row.status == "completed") != (status == "completed"):
            continue
        for piece in result_line(batch, row, await row_result(gateway, batch.org_id, row, base_url)):
            yield piece


def result_line(batch: BatchRecord, row: EndedRow, result: Any) -> Iterator[bytes]:
    """The line of a row, in pieces: files in base64 may be long. `result` is that of `row_result`."""
    is_error = isinstance(result, dict) and result.keys() == {"error"}
    response = {"status_code": 200, "request_id": row.request_id, "body": result}
    line = {
        "id": f"{batch.id}_{row.number}",
        "custom_id": row.custom_id,
        "response": None if is_error else response,
        "error": result["error"] if is_error else None,
        "request_id": row.request_id,
        "cost": dollars(Nanos(row.cost)),
    }
    yield from encode_with_files(line, decimal_format="number")
    yield b"\n"


async def row_result(gateway: Gateway, org_id: OrgId, row: EndedRow, base_url: str) -> Any:
    """The body of the response of a row, with fresh URLs; or an object with only `error`."""
    if row.status == "pending":
        problem = Cancelled("The batch was cancelled before this row began.")
        return _error(problem.code, problem.message)
    if row.status == "failed" or row.request_id is None:
        return await _failure(gateway, org_id, row)
    try:
        if row.endpoint in (CHATS, MODEL_RESPONSES):
            payload = await get_payload(gateway.store, org_id, row.request_id)
            return msgspec.json.decode(payload.response) if payload else _error(_GONE_CODE, _GONE)
        if row.endpoint == VIDEOS:
            return await retrieve.video_object(gateway, org_id, row.request_id, base_url)
        return (await retrieve.image_result(gateway, org_id, row.request_id, base_url)).json
    except Problem as problem:
        return _error(problem.code, problem.message)


async def _failure(gateway: Gateway, org_id: OrgId, row: EndedRow) -> dict[str, Any]:
    """Why a row failed: the message is in the record of its request, if there is one."""
    record = await gateway.requests.get(org_id, row.request_id) if row.request_id else None
    message = record.error_message if record else row.error_message
    return _error(row.error_code or "UPSTREAM_ERROR", message or "")


def _error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}
