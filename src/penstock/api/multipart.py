"""Parse multipart forms as they arrive, within limits and without writing to the disk."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from penstock.errors import InvalidRequest, PayloadTooLarge
from penstock.fields import UploadedFile

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MAX_FILES = 16
MAX_FIELDS = 64
FIELD_BYTES = 256 * 1024
NAME_CHARS = 256
_BOUNDARY_CHARS = 70  # RFC 2046
_PREAMBLE_BYTES = 64  # as many line breaks at the beginning are refused
_PLAIN_ENCODINGS = ("", "7bit", "8bit", "binary")

# The library logs a warning for every malformed form. The caller gets an error; operators do not need the line.
logging.getLogger("python_multipart").setLevel(logging.ERROR)


class _Part(msgspec.Struct):
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    data: bytearray = msgspec.field(default_factory=bytearray)
    name: str = ""
    filename: str | None = None


class FormReader:
    """Collects one form, piece by piece. Files stay in memory, since their total size is limited and all are needed."""

    def __init__(self, content_type: str, file_bytes: int) -> None:
        """`file_bytes` is the most that one file may have."""
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
        self._file_bytes = file_bytes
        self._start = b""
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._part = _Part()
        self._files = 0
        self._fields = 0
        self._done: list[tuple[str, str | UploadedFile]] = []
        self._ended = False

    def feed(self, chunk: bytes) -> None:
        """Parse the next bytes; raise InvalidRequest or PayloadTooLarge."""
        if len(self._start) < _PREAMBLE_BYTES:
            self._start += chunk[:_PREAMBLE_BYTES]
            if len(self._start) >= _PREAMBLE_BYTES and not self._start.strip(b"\r\n"):
                raise InvalidRequest("The multipart form does not begin with its boundary.")
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise InvalidRequest("The multipart form is malformed.") from None

    def finish(self) -> tuple[tuple[str, str | UploadedFile], ...]:
        """Return names and values in the order in which they were sent; raise InvalidRequest for an incomplete form."""
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
            raise InvalidRequest("A part of the multipart form has no name in its Content-Disposition.")
        part.name = _decode_text(options[b"name"], "A name in the form")
        if not 1 <= len(part.name) <= NAME_CHARS:
            raise InvalidRequest(f"Names in the form must have 1 to {NAME_CHARS} characters.")
        if part.headers.get("content-transfer-encoding", "").lower() not in _PLAIN_ENCODINGS:
            raise InvalidRequest(
                f"Content-Transfer-Encoding of `{part.name}` must be absent, 7bit, 8bit or binary.", param=part.name
            )
        if part.headers.get("content-type", "").lower().startswith("multipart/"):
            raise InvalidRequest(f"`{part.name}` is itself a multipart form, which is not accepted.", param=part.name)
        if b"filename" in options:
            part.filename = _clean_filename(_decode_text(options[b"filename"], "A file name in the form"))
            self._files += 1
        elif _is_file(part.headers):
            part.filename = ""
            self._files += 1
        else:
            self._fields += 1
        if self._files > MAX_FILES or self._fields > MAX_FIELDS:
            raise InvalidRequest(f"A form may contain {MAX_FILES} files and {MAX_FIELDS} other fields at most.")

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        part.data += data[start:end]
        most = FIELD_BYTES if part.filename is None else self._file_bytes
        if len(part.data) > most:
            raise PayloadTooLarge(f"`{part.name}` may have {most} bytes at most.", param=part.name)

    def _on_part_end(self) -> None:
        part = self._part
        if part.filename is None:
            self._done.append((part.name, _decode_text(part.data, f"`{part.name}`", param=part.name)))
        else:
            kind = part.headers.get("content-type", "").partition(";")[0].strip().lower()
            self._done.append((part.name, UploadedFile(part.data, part.filename, kind)))
        self._part = _Part()

    def _on_end(self) -> None:
        self._ended = True


def _is_file(headers: Mapping[str, str]) -> bool:
    """Whether a part without a plain file name is a file all the same: its name is in another charset, or its type says
    so.
    """
    kind = headers.get("content-type", "").lower()
    is_named = "filename*=" in headers.get("content-disposition", "").lower().replace(" ", "")
    return is_named or kind.startswith(("image/", "video/", "audio/", "application/octet-stream"))


def _decode_text(data: bytes | bytearray, what: str, param: str | None = None) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{what} is not valid UTF-8.", param=param) from None
    if "\0" in text:
        raise InvalidRequest(f"{what} contains a NUL character.", param=param)
    return text


def _clean_filename(filename: str) -> str:
    """Return the last part of a path, printable characters only. No file of the gateway is ever named so."""
    last = filename.replace("\\", "/").rpartition("/")[2]
    return "".join(char for char in last if char.isprintable())[:255]
