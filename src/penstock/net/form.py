"""Encode multipart forms, of which no file is copied."""

from collections.abc import Iterator, Sequence
from secrets import token_hex

from penstock.long_bodies.buffers import Buffer
from penstock.long_bodies.long_body import LongBody
from penstock.providers.spec import Upload

_ESCAPED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})  # as browsers do


def encode_form(fields: Sequence[tuple[str, str | Upload]]) -> tuple[str, LongBody]:
    """Return the content type and the body of a form."""
    boundary = f"penstock-{token_hex(16)}"
    parts = [part for name, value in fields for part in _parts(boundary, name, value)]
    return f"multipart/form-data; boundary={boundary}", LongBody([*parts, f"--{boundary}--\r\n".encode()])


def _parts(boundary: str, name: str, value: str | Upload) -> Iterator[Buffer]:
    head = f'--{boundary}\r\ncontent-disposition: form-data; name="{name.translate(_ESCAPED)}"'
    if isinstance(value, str):
        yield f"{head}\r\n\r\n{value}\r\n".encode()
        return
    filename = value.filename.translate(_ESCAPED)
    yield f'{head}; filename="{filename}"\r\ncontent-type: {value.content_type}\r\n\r\n'.encode()
    yield value.data
    yield b"\r\n"
