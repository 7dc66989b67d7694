"""Read the rows of a batch from JSONL or CSV, one at a time."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from penstock.errors import InvalidRequest, quoted
from penstock.fields import CHAT, EDIT, IMAGE, RESPONSES, VIDEO, Field, Table
from penstock.long_bodies.buffers import Buffer

IMAGES = "/compat/v1/images/generations"
EDITS = "/compat/v1/images/edits"
VIDEOS = "/compat/v1/videos"
CHATS = "/compat/v1/chat/completions"
MODEL_RESPONSES = "/compat/v1/responses"
# The endpoints that rows may call, with the fields of each. OpenAI's paths begin with /v1.
ENDPOINTS: Mapping[str, Table] = {
    IMAGES: IMAGE,
    EDITS: EDIT,
    VIDEOS: VIDEO,
    CHATS: CHAT,
    MODEL_RESPONSES: RESPONSES,
}
SHORT_ENDPOINTS = tuple(path.removeprefix("/compat") for path in ENDPOINTS)
CUSTOM_ID_CHARS = 256
ROW_BYTES = 4 * 1024**2
_PIECE_BYTES = 256 * 1024
_OWN_COLUMNS = ("custom_id", "url", "method")
_BOOLEANS = {"true": True, "false": False}
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_decode = msgspec.json.Decoder().decode


class RowFault(Exception):
    """What is wrong with a row, and in which column, if it is one."""

    def __init__(self, message: str, column: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.column = column


class Line(msgspec.Struct, frozen=True):
    """A row as it was sent: not yet checked against the fields of its endpoint."""

    number: int  # from 1; the header of a CSV file does not count
    custom_id: str
    endpoint: str
    body: dict[str, Any]


class BadLine(msgspec.Struct, frozen=True):
    """A row that cannot be read."""

    number: int
    fault: RowFault


def endpoint_path(url: str) -> str | None:
    """The path of ours for a path as callers write it, with or without `/compat`; None for one that no row may call."""
    path = url if url.startswith("/compat/") else f"/compat{url}"
    return path if path in ENDPOINTS else None


def read_json(rows: Iterable[Any], endpoint: str | None, defaults: Mapping[str, Any]) -> Iterator[Line | BadLine]:
    """Read rows that are decoded already."""
    for number, value in enumerate(rows, 1):
        try:
            yield _json_line(number, value, endpoint, defaults)
        except RowFault as fault:
            yield BadLine(number, fault)


def read_jsonl(data: Buffer, endpoint: str | None, defaults: Mapping[str, Any]) -> Iterator[Line | BadLine]:
    """Read JSONL: each line is a row in OpenAI's form (`custom_id`, `url` and `body`), or the fields of a call."""
    number = 0
    for text in _split_lines(data):
        if not text.strip():
            continue
        number += 1
        try:
            yield _json_line(number, _decoded(text), endpoint, defaults)
        except RowFault as fault:
            yield BadLine(number, fault)


def read_csv(data: Buffer, endpoint: str | None, defaults: Mapping[str, Any]) -> Iterator[Line | BadLine]:
    """Read CSV: the first row names the fields. An empty cell means no field. Raises InvalidRequest for a bad header,
    and for a file that cannot be read further.
    """
    table = csv.reader(_texts(data), strict=True)
    try:
        header = [name.strip() for name in next(table, [])]
        _check_header(header)
        number = 0
        for cells in table:
            if not any(cells):
                continue
            number += 1
            try:
                yield _csv_line(number, header, cells, endpoint, defaults)
            except RowFault as fault:
                yield BadLine(number, fault)
    except csv.Error as problem:
        raise InvalidRequest(
            f"The CSV file cannot be read at line {table.line_num}: {problem}.", param="file"
        ) from None


# ---------------------------------------------------------------------------------------------------------------- lines


def _split_lines(data: Buffer) -> Iterator[bytes]:
    """The lines of a file, of which a piece is in memory at a time. Raises InvalidRequest for one that is too long."""
    view = memoryview(data)
    start = 3 if bytes(view[:3]) == b"\xef\xbb\xbf" else 0  # a byte order mark
    rest = b""
    for at in range(start, len(view), _PIECE_BYTES):
        *lines, rest = (rest + bytes(view[at : at + _PIECE_BYTES])).split(b"\n")
        if len(rest) > ROW_BYTES or any(len(line) > ROW_BYTES for line in lines):
            raise InvalidRequest(f"A line of the file has more than {ROW_BYTES} bytes.", param="file")
        yield from lines
    if rest:
        yield rest


def _texts(data: Buffer) -> Iterator[str]:
    for number, line in enumerate(_split_lines(data), 1):
        try:
            yield line.decode() + "\n"
        except UnicodeDecodeError:
            raise InvalidRequest(f"Line {number} of the file is not valid UTF-8.", param="file") from None


def _decoded(text: bytes) -> Any:
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RowFault("The line is not valid JSON.") from None


def _json_line(number: int, value: Any, endpoint: str | None, defaults: Mapping[str, Any]) -> Line:
    if not isinstance(value, dict):
        raise RowFault("A row must be a JSON object.")
    method = value.get("method", "POST")
    if method != "POST":
        raise RowFault("`method` must be `POST`.", "method")
    if "body" not in value:
        body = {name: field for name, field in value.items() if name not in _OWN_COLUMNS}
    else:
        body = value["body"]
        if unknown := sorted(value.keys() - {*_OWN_COLUMNS, "body"}):
            raise RowFault(f"`{unknown[0][:64]}` must be in `body`.", unknown[0][:64])
        if not isinstance(body, dict):
            raise RowFault("`body` must be a JSON object.", "body")
    return _line(number, value, body, endpoint, defaults)


def _line(
    number: int, own: Mapping[str, Any], body: dict[str, Any], endpoint: str | None, defaults: Mapping[str, Any]
) -> Line:
    custom_id = own.get("custom_id")
    custom_id = str(number) if custom_id is None else custom_id
    if not isinstance(custom_id, str) or not 1 <= len(custom_id) <= CUSTOM_ID_CHARS or not custom_id.isprintable():
        raise RowFault(f"`custom_id` must be a string of 1 to {CUSTOM_ID_CHARS} printable characters.", "custom_id")
    return Line(number, custom_id, _endpoint(own.get("url"), endpoint), {**defaults, **body})


def _endpoint(url: Any, endpoint: str | None) -> str:
    """The endpoint of a row: its own, else that of the batch, which it must not contradict."""
    if url is None:
        if endpoint is None:
            raise RowFault(f"`url` is required, unless the batch has an `endpoint`: {quoted(SHORT_ENDPOINTS)}.", "url")
        return endpoint
    path = endpoint_path(url) if isinstance(url, str) else None
    if path is None:
        raise RowFault(f"`url` must be one of {quoted(SHORT_ENDPOINTS)}.", "url")
    return path


# ------------------------------------------------------------------------------------------------------------------ CSV


def _check_header(header: list[str]) -> None:
    if not any(header):
        raise InvalidRequest("The first row of the CSV file must name the fields.", param="file")
    for place, name in enumerate(header):
        if not name:
            raise InvalidRequest(f"Column {place + 1} of the CSV file has no name.", param="file")
        if name in header[:place]:
            raise InvalidRequest(f"The CSV file has two columns `{name[:64]}`.", param="file")


def _csv_line(
    number: int, header: list[str], cells: list[str], endpoint: str | None, defaults: Mapping[str, Any]
) -> Line:
    if len(cells) > len(header):
        raise RowFault(f"The row has {len(cells)} cells, and the header names {len(header)} columns.")
    texts = {name: cell for name, cell in zip(header, cells, strict=False) if cell != ""}
    own = {name: texts.pop(name) for name in _OWN_COLUMNS if name in texts}
    path = _endpoint(own.get("url"), endpoint)
    messages: dict[str, Any] = {}
    if path == CHATS:
        texts, messages = without_prompt(texts)
    body = {name: _value(name, text, ENDPOINTS[path].get(name)) for name, text in texts.items()}
    return _line(number, own, {**body, **messages}, path, defaults)


def without_prompt(texts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The cells of a chat without `system` and `prompt`, and the messages that these stand for."""
    roles = (("system", "system"), ("prompt", "user"))
    messages = [{"role": role, "content": texts[name]} for name, role in roles if name in texts]
    rest = {name: text for name, text in texts.items() if name not in ("system", "prompt")}
    if "prompt" not in texts:
        return dict(texts), {}
    if "messages" in rest:
        raise RowFault("`prompt` and `messages` cannot be combined.", "messages")
    return rest, {"messages": messages}


def _value(name: str, text: str, field: Field | None) -> Any:
    """A cell as a value of the type that its field has. Unknown fields are texts."""
    if field is None or not (types := set(field.types)) - {"string", "file"}:
        return text
    if "boolean" in types and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    if types & {"integer", "number"} and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in types:
        with suppress(ValueError):
            return float(text)
    if types & {"object", "array"} and text[:1] in "[{":
        try:
            return _decode(text)
        except (msgspec.DecodeError, RecursionError):
            raise RowFault(f"`{name}` is not valid JSON.", name) from None
    return text  # if that is not allowed, the check of the field says so
