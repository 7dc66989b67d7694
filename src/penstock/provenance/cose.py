"""Put a time-stamp into a finished seal, in the place that the library left empty beside the signature."""

from __future__ import annotations

import base64
from binascii import crc32
from collections.abc import Callable

from penstock.imaging.formats import SVG_TYPE

# The headers beside a signature of COSE are signed by nobody. The library fills them with zeros up to a fixed size, so
# that the file does not grow when it signs; the time-stamp takes some of that place.
_NIL = b"\xf6"  # what is signed stands elsewhere


def text_string(text: str) -> bytes:
    """A short text in CBOR."""
    data = text.encode()
    return bytes([0x60 + len(data)]) + data


def byte_string(data: bytes) -> bytes:
    """Bytes in CBOR."""
    size = len(data)
    if size < 24:
        return bytes([0x40 + size]) + data
    if size < 256:
        return bytes([0x58, size]) + data
    return (b"\x59" + size.to_bytes(2, "big") if size < 65536 else b"\x5a" + size.to_bytes(4, "big")) + data


_EMPTY = b"\xa1" + text_string("pad") + b"\x59"  # an object with one field, of two bytes' length


def with_stamp(file: bytes, content_type: str, store: bytes, stamp: bytes) -> bytes:
    """The file with a time-stamp in its newest manifest; `store` are all of its manifests. Raises ValueError if there
    is no place for it.
    """
    start = store.rfind(_EMPTY)
    size_at = start + len(_EMPTY)
    end = size_at + 2 + int.from_bytes(store[size_at : size_at + 2], "big")
    if start < 0 or store[end : end + 1] != _NIL or any(store[size_at + 2 : end]):
        raise ValueError("the seal has no place for a time-stamp")
    stamped = store[:start] + _headers(stamp, end - start) + store[end:]
    in_file = _FORMS.get(content_type)
    if in_file:
        return _replaced(file, in_file(store), in_file(stamped))
    signed = end + 80  # with a part of the signature, because other seals have empty places, too
    made = _replaced(file, store[start:signed], stamped[start:signed])
    return _with_checksum(made, store) if content_type == "image/png" else made


def _headers(stamp: bytes, size: int) -> bytes:
    """The headers with a time-stamp, filled with zeros to a size."""
    token = b"\x81\xa1" + text_string("val") + byte_string(stamp)
    stamped = b"\xa2" + text_string("sigTst2") + b"\xa1" + text_string("tstTokens") + token + text_string("pad")
    unused = size - len(stamped) - 3
    if not 256 <= unused < 65536:
        raise ValueError("the time-stamp is too large for the seal")
    return stamped + byte_string(bytes(unused))


def _replaced(file: bytes, old: bytes, new: bytes) -> bytes:
    if file.count(old) != 1:
        raise ValueError("the seal does not stand in the file in one piece")
    return file.replace(old, new)


def _with_checksum(png: bytes, store: bytes) -> bytes:
    start = png.index(b"caBX")
    end = start + 4 + len(store)
    return png[:end] + crc32(png[start:end]).to_bytes(4, "big") + png[end + 4 :]


def _pieces(store: bytes) -> bytes:
    """As a GIF has it."""
    parts = (store[at : at + 255] for at in range(0, len(store), 255))
    return b"".join(bytes([len(part)]) + part for part in parts)


_FORMS: dict[str, Callable[[bytes], bytes]] = {SVG_TYPE: base64.b64encode, "image/gif": _pieces}
