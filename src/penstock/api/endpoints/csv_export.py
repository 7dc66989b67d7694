"""Write request records as CSV that is safe to open in a spreadsheet."""

import csv
import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import json

from penstock.accounts.request_records import RequestRow, request_record

COLUMNS = (
    "id",
    "created_at",
    "kind",
    "model",
    "provider",
    "executed_model",
    "status",
    "cost",
    "currency",
    "duration_ms",
    "key_id",
    "user",
    "session_id",
    "labels",
    "trace_id",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "content_credentials",
    "error_code",
    "error_message",
    "prompt",
    "request_size_bytes",
    "response_size_bytes",
)
_ROWS_AT_ONCE = 500
# Where a formula would begin: at the start of a cell, and after a semicolon, which separates cells in some countries.
_FORMULA_START = re.compile(r"(?:^|(?<=;))(?=[=+\-@\t\r])")


async def csv_lines(
    rows: AsyncIterator[RequestRow], read_columns: Callable[[Sequence[str]], Awaitable[Mapping[str, Mapping[str, Any]]]]
) -> AsyncIterator[bytes]:
    """Yield a header line and one line per row; `read_columns` reads what is in no record, by the ids of requests."""
    yield csv_line(COLUMNS)
    page: list[RequestRow] = []

    async def lines() -> bytes:
        columns = await read_columns([row.id for row in page])
        records = [{**request_record(row), **columns[row.id]} for row in page]
        return b"".join([csv_line([csv_cell(record[name]) for name in COLUMNS]) for record in records])

    async for row in rows:
        page.append(row)
        if len(page) == _ROWS_AT_ONCE:
            yield await lines()
            page.clear()
    if page:
        yield await lines()


def csv_line(cells: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue().encode()


def csv_cell(value: Any) -> str:
    """Return a value as text. A text that a spreadsheet would run as a formula gets an apostrophe before it."""
    if isinstance(value, dict):
        return json.encode(value, order="sorted").decode() if value else ""
    if isinstance(value, str):
        return _FORMULA_START.sub("'", value)
    return "" if value is None else f"{value:f}" if hasattr(value, "normalize") else str(value)
