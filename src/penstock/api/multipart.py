"""Multipart forms as they come in, within limits and without touching the disk."""

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from penstock.errors import InvalidRequest, PayloadTooLarge
from penstock.schema import UploadedFile

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MOST_FILES = 16
MOST_FIELDS = 64
FIELD_BYTES = 256 * 1024
NAME_CHARS = 256
_BOUNDARY_CHARS = 70  # RFC 2046
_PREAMBLE_BYTES = 64
_PLAIN_ENCODINGS = ("", "7bit", "8bit", "binary")

# It warns about every malformed form. The caller hears about that; an operator has no use for it.
logging.getLogger("python_multipart").setLevel(logging.ERROR)


@dataclass(slots=True)
class _Part:
    headers: dict[str, str] = field(default_factory=dict)
    data: bytearray = field(default_factory=bytearray)
    name: str = ""
    filename: str | None = None


class Reader:
    """Collects one form, piece by piece. Files stay in memory: their total is limited, and all of them are needed."""

    def __init__(self, content_type: str) -> None:
        _, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if not 1 <= len(boundary) <= _BOUNDARY_CHARS:
            raise InvalidRequest(f"multipart/form-data needs a boundary of 1 to {_BOUNDARY_CHARS} characters.")
        callbacks: MultipartCallbacks = {
            "on_part_begin": self._on_part_begin,
            "on_header_field": self._on_header_field,
            "on_header_value": self._on_header_value,
            "on_header_end": self._on_header_end,
            "on_headers_finished": self._on_headers_finished,
            "on_part_data": self._on_part_data,
            "on_part_end": self._on_part_end,
            "on_end": self._on_end,
        }
        self._parser = MultipartParser(boundary, callbacks)
        self._start = b""
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._part = _Part()
        self._files = 0
        self._fields = 0
        self._done: list[tuple[str, str | UploadedFile]] = []
        self._ended = False

    def feed(self, chunk: bytes) -> None:
        if len(self._start) < _PREAMBLE_BYTES:
            self._start += chunk[:_PREAMBLE_BYTES]
            if len(self._start) >= _PREAMBLE_BYTES and not self._start.strip(b"\r\n"):
                raise InvalidRequest("The form does not begin with its boundary.")
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise InvalidRequest("The multipart form is malformed.") from None

    def finish(self) -> tuple[tuple[str, str | UploadedFile], ...]:
        """Names and values in the order they were sent."""
        if not self._ended:
            raise InvalidRequest("The multipart form ends before its last boundary.")
        return tuple(self._done)

    # ------------------------------------------------------------------------------------------ called by the parser

    def _on_part_begin(self) -> None:
        self._part = _Part()

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _on_header_end(self) -> None:
        self._part.headers[self._header_name.decode("latin-1").lower()] = self._header_value.decode("latin-1").strip()
        self._header_name.clear()
        self._header_value.clear()

    def _on_headers_finished(self) -> None:
        part = self._part
        _, options = parse_options_header(part.headers.get("content-disposition"))
        if b"name" not in options:
            raise InvalidRequest("A part of the form has no name in its Content-Disposition.")
        part.name = _text(options[b"name"], "A name in the form")
        if not 1 <= len(part.name) <= NAME_CHARS:
            raise InvalidRequest(f"Names in the form must have 1 to {NAME_CHARS} characters.")
        if part.headers.get("content-transfer-encoding", "").lower() not in _PLAIN_ENCODINGS:
            raise InvalidRequest("Parts of the form must be sent as they are, without an encoding.", param=part.name)
        if part.headers.get("content-type", "").lower().startswith("multipart/"):
            raise InvalidRequest("A form within a form is not accepted.", param=part.name)
        if b"filename" in options:
            part.filename = _plain(_text(options[b"filename"], "A file name in the form"))
            self._files += 1
        else:
            self._fields += 1
        if self._files > MOST_FILES or self._fields > MOST_FIELDS:
            raise InvalidRequest(f"A form may hold {MOST_FILES} files and {MOST_FIELDS} other fields at most.")

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        part.data += data[start:end]
        if part.filename is None and len(part.data) > FIELD_BYTES:
            raise PayloadTooLarge(f"`{part.name}` may have {FIELD_BYTES} bytes at most.", param=part.name)

    def _on_part_end(self) -> None:
        part = self._part
        if part.filename is None:
            self._done.append((part.name, _text(part.data, f"`{part.name}`", param=part.name)))
        else:
            kind = part.headers.get("content-type", "").partition(";")[0].strip().lower()
            self._done.append((part.name, UploadedFile(bytes(part.data), part.filename, kind)))
        self._part = _Part()  # the copy is what is kept

    def _on_end(self) -> None:
        self._ended = True


def _text(data: bytes | bytearray, what: str, param: str | None = None) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{what} is not valid UTF-8.", param=param) from None
    if "\0" in text:
        raise InvalidRequest(f"{what} holds a NUL character.", param=param)
    return text


def _plain(filename: str) -> str:
    """Only the last part of a path, and only what can be shown. It is never used to name a file of ours."""
    last = filename.replace("\\", "/").rpartition("/")[2]
    return "".join(char for char in last if char.isprintable())[:255]
