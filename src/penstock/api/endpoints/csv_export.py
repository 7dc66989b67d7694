"""Write request records as CSV that is safe to open in a spreadsheet."""

import csv
import io
import re
from collections.abc import AsyncIterator
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
    "error_code",
    "error_message",
    "request_size_bytes",
    "response_size_bytes",
)
# Where a formula would begin: at the start of a cell, and after a semicolon, which separates cells in some countries.
_FORMULA_START = re.compile(r"(?:^|(?<=;))(?=[=+\-@\t\r])")


async def csv_lines(rows: AsyncIterator[RequestRow]) -> AsyncIterator[bytes]:
    """Yield a header line and one line per row."""
    yield csv_line(COLUMNS)
    async for row in rows:
        record = request_record(row)
        yield csv_line([csv_cell(record[name]) for name in COLUMNS])


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
