"""Encode large JSON in small steps, between which other threads run; files in it are encoded when they are sent."""

from collections.abc import Iterable, Iterator
from secrets import token_hex
from typing import Any, Literal

import msgspec

from penstock.long_bodies.base64_pieces import FileAsBase64
from penstock.long_bodies.long_body import LongBody
from penstock.long_bodies.long_texts import SHORT_TEXT

_PIECE = 128 * 1024  # characters of a text, or bytes of JSON, that are encoded in one step
_LEAST_BYTES = 2  # of a value: one letter, and the comma or bracket that follows it
_NESTS = (dict, list, tuple)
_encode = msgspec.json.Encoder().encode


def encode(value: Any, size_bytes: int) -> bytes | LongBody:
    """Encode as `msgspec.json.encode` does; where there are many bytes, each text that is not short is encoded by
    itself, and files in base64 when they are sent: only there the value may contain a FileAsBase64.
    """
    if size_bytes <= _PIECE:
        return _encode(value)
    return encode_with_files(_with_texts_to_encode(value))


def encode_with_files(value: Any, *, decimal_format: Literal["string", "number"] = "string") -> LongBody:
    """Encode a value with a FileAsBase64 in it. Raises TypeError for anything else that is not JSON."""
    return LongBody([*_joined(_parts(value, decimal_format))])


# ---------------------------------------------------------------------------------------------------------------- sizes


def encoded_size(value: Any, size_bytes: int) -> int:
    """How many bytes a value has as JSON. It is part of a body of `size_bytes`: of many, the JSON is not kept."""
    if size_bytes <= _PIECE:
        return len(_encode(value))
    return sum(map(len, _parts(_with_texts_to_encode(value))))


def exceeds(value: Any, max_bytes: int, size_bytes: int) -> bool:
    """Whether a value has more than `max_bytes` as JSON. It is part of a body of `size_bytes`: if there are many, one
    that has many more than `max_bytes` is not encoded to find that out.
    """
    return (size_bytes > _PIECE and _has_more(value, max_bytes)) or len(_encode(value)) > max_bytes


def _has_more(value: Any, max_bytes: int) -> bool:
    """Whether its number of values and the characters of its texts and names are more than `max_bytes`."""
    level = [value]
    least = 0
    while level:
        nests = [nest for nest in level if isinstance(nest, _NESTS)]
        least += sum([len(text) for text in level if isinstance(text, str)])
        least += sum([_LEAST_BYTES * len(nest) for nest in nests])
        if least > max_bytes:  # before a look at each of very many values
            return True
        level = [inner for nest in nests for inner in nest]  # of an object, its names
        level += [inner for nest in nests if isinstance(nest, dict) for inner in nest.values()]
    return False


# ---------------------------------------------------------------------------------------------------------------- parts


class _TextToEncode:
    """A text that is encoded by itself, step by step."""

    def __init__(self, text: str) -> None:  # no dataclass: msgspec would encode that as an object
        self._text = text

    def pieces(self) -> Iterator[bytes]:
        for start in range(0, len(self._text), _PIECE):
            yield _encode(self._text[start : start + _PIECE])[1:-1]


def _parts(value: Any, decimal_format: Literal["string", "number"] = "string") -> Iterator[bytes | FileAsBase64]:
    """The JSON of a value, in parts. Raises TypeError as `encode_with_files` does."""
    texts: list[FileAsBase64 | _TextToEncode] = []
    mark = token_hex(16)

    def leave_mark(text: Any) -> str:
        if not isinstance(text, FileAsBase64 | _TextToEncode):
            raise TypeError(f"{type(text).__name__} cannot be encoded as JSON")
        texts.append(text)
        return mark

    encoded = msgspec.json.Encoder(decimal_format=decimal_format, enc_hook=leave_mark).encode(value)
    first, *others = encoded.split(mark.encode())
    yield first
    for text, part in zip(texts, others, strict=True):
        if isinstance(text, FileAsBase64):
            yield text
        else:
            yield from text.pieces()
        yield part


def _joined(parts: Iterable[bytes | FileAsBase64]) -> Iterator[bytes | FileAsBase64]:
    """The same parts, with short ones that follow each other in one: each part is sent by itself."""
    short: list[bytes] = []
    size = 0
    for part in parts:
        if short and (isinstance(part, FileAsBase64) or size + len(part) > _PIECE):
            yield b"".join(short)
            short = []
            size = 0
        if isinstance(part, FileAsBase64):
            yield part
        else:
            short.append(part)
            size += len(part)
    if short:
        yield b"".join(short)


def _with_texts_to_encode(value: Any) -> Any:
    """Return a copy of a value with a _TextToEncode in the place of each text that is not short.

    Not only of long ones: many of a hundred kilobytes would be encoded in one long step.
    """
    if isinstance(value, str) and len(value) > SHORT_TEXT:
        return _TextToEncode(value)
    if isinstance(value, dict):
        return {name: _with_texts_to_encode(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_texts_to_encode(item) for item in value]
    return value
