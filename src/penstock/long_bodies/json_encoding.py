"""Encode large JSON in small steps, between which other threads run; files in it are encoded when they are sent."""

from collections.abc import Iterator
from secrets import token_hex
from typing import Any, Literal

import msgspec

from penstock.long_bodies.base64_pieces import FileAsBase64
from penstock.long_bodies.long_body import LongBody

_PIECE = 128 * 1024  # characters of a text, or bytes of JSON, that are encoded in one step
_encode = msgspec.json.Encoder().encode


def encode(value: Any, size_bytes: int) -> bytes | LongBody:
    """Encode as `msgspec.json.encode` does; where there are many bytes, long texts are encoded in pieces, and files in
    base64 when they are sent: only there the value may contain a FileAsBase64.
    """
    if size_bytes <= _PIECE:
        return _encode(value)
    return encode_with_files(_with_texts_to_encode(value))


def encode_with_files(value: Any, *, decimal_format: Literal["string", "number"] = "string") -> LongBody:
    """Encode a value with a FileAsBase64 in it. Raises TypeError for anything else that is not JSON."""
    texts: list[FileAsBase64 | _TextToEncode] = []
    mark = token_hex(16)

    def leave_mark(text: Any) -> str:
        if not isinstance(text, FileAsBase64 | _TextToEncode):
            raise TypeError(f"{type(text).__name__} cannot be encoded as JSON")
        texts.append(text)
        return mark

    encoded = msgspec.json.Encoder(decimal_format=decimal_format, enc_hook=leave_mark).encode(value)
    first, *others = encoded.split(mark.encode())
    parts: list[bytes | FileAsBase64] = [first]
    for text, part in zip(texts, others, strict=True):
        parts += [text] if isinstance(text, FileAsBase64) else text.pieces()
        parts.append(part)
    return LongBody(parts)


class _TextToEncode:
    """A long text, which is encoded step by step."""

    def __init__(self, text: str) -> None:  # no dataclass: msgspec would encode that as an object
        self._text = text

    def pieces(self) -> Iterator[bytes]:
        for start in range(0, len(self._text), _PIECE):
            yield _encode(self._text[start : start + _PIECE])[1:-1]


def _with_texts_to_encode(value: Any) -> Any:
    """Return a copy of a value with a _TextToEncode in the place of each long text."""
    if isinstance(value, str) and len(value) > _PIECE:
        return _TextToEncode(value)
    if isinstance(value, dict):
        return {name: _with_texts_to_encode(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_texts_to_encode(item) for item in value]
    return value
