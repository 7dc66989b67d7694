"""Read Content Credentials without the library that writes them: where they stand in each format, what they say,
whether their signature holds, and whether the file is the one that was signed.
"""

import base64
import hashlib
import io
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from tests import cbor

C2PA_BOX = bytes.fromhex("d8fec3d61b0e483c92975828877ec481")


class Manifest(NamedTuple):
    """One statement of a file."""

    name: str
    claim: dict[str, Any]
    assertions: dict[str, Any]


def manifests(data: bytes) -> list[Manifest]:
    """The statements of a file, the newest at the end. Raises InvalidSignature if one is not signed by P-256 and the
    certificate beside it.
    """
    _, found = described(next(boxes(store(data)))[1])
    return [_manifest(superbox) for _, superbox in found]


def is_untouched(data: bytes) -> bool:
    """Whether the newest statement is about these bytes."""
    said = manifests(data)[-1].assertions
    if "c2pa.hash.data" in said:
        exact = said["c2pa.hash.data"]
        digest = hashlib.new(exact["alg"])
        at = 0
        for left_out in exact["exclusions"]:
            digest.update(data[at : left_out["start"]])
            at = left_out["start"] + left_out["length"]
        digest.update(data[at:])
        return bool(digest.digest() == exact["hash"])
    exact = next(value for name, value in said.items() if name.startswith("c2pa.hash.bmff"))
    left_out = [each["xpath"].removeprefix("/").encode() for each in exact["exclusions"] if each["xpath"] != "/uuid"]
    digest = hashlib.new(exact["alg"])
    at = 0
    for kind, body in boxes(data):
        size = len(body) + 8
        if kind not in left_out and not (kind == b"uuid" and body.startswith(C2PA_BOX)):
            digest.update(at.to_bytes(8, "big") + data[at : at + size])
        at += size
    return bool(digest.digest() == exact["hash"])


# ---------------------------------------------------------------------------------------------------------- the formats


def store(data: bytes) -> bytes:
    """The manifest store of a file."""
    if data.startswith(b"\x89PNG"):
        return next(body for kind, body in _chunks(data[8:], "big", 4) if kind == b"caBX")
    if data.startswith(b"RIFF"):
        return next(body for kind, body in _chunks(data[12:], "little", 0) if kind == b"C2PA")
    if data.startswith(b"\xff\xd8"):
        return _of_jpeg(data)
    if data.startswith(b"GIF"):
        at = data.index(b"\x21\xff\x0bC2PA_GIF\x01\x00\x00") + 14
        return b"".join(_pieces(data, at))
    if data[4:8] == b"ftyp":
        body = next(body for kind, body in boxes(data) if kind == b"uuid" and body.startswith(C2PA_BOX))
        start = body.index(b"manifest\0") + len(b"manifest\0") + 8
        return body[start:]
    found = re.search(rb"<c2pa:manifest>([A-Za-z0-9+/=]+)</c2pa:manifest>", data)
    assert found, "it has no seal"
    return base64.b64decode(found[1])


def _chunks(data: bytes, order: Any, checksum_bytes: int) -> Iterator[tuple[bytes, bytes]]:
    """The chunks of a PNG, whose size comes first, or of a RIFF file."""
    file = io.BytesIO(data)
    while head := file.read(8):
        size, kind = (head[:4], head[4:]) if order == "big" else (head[4:], head[:4])
        length = int.from_bytes(size, order)
        yield kind, file.read(length)
        file.read(checksum_bytes or length & 1)


def _of_jpeg(data: bytes) -> bytes:
    at = 2
    found = b""
    while data[at + 1] != 0xDA:
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at + 1] == 0xEB:
            is_first = data[at + 6 : at + 12] == data[at + 6 : at + 8] + b"\0\0\0\1"
            found += data[at + (12 if is_first else 20) : at + 2 + size]  # others repeat the head of the box
        at += 2 + size
    return found


def _pieces(data: bytes, at: int) -> Iterator[bytes]:
    while size := data[at]:
        yield data[at + 1 : at + 1 + size]
        at += 1 + size


# ----------------------------------------------------------------------------------------------------------- statements


def boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The kind and the content of each box."""
    while data:
        size = int.from_bytes(data[:4], "big") or len(data)
        yield data[4:8], data[8:size]
        data = data[size:]


def described(superbox: bytes) -> tuple[str, list[tuple[bytes, bytes]]]:
    """The label and the content of a JUMBF superbox."""
    (_, description), *content = boxes(superbox)
    return description[17:].partition(b"\0")[0].decode(), content


def _manifest(superbox: bytes) -> Manifest:
    name, parts = described(superbox)
    found = dict(described(content) for _, content in parts)
    claim = next(content[0][1] for label, content in found.items() if label.startswith("c2pa.claim"))
    assertions = {}
    for _, assertion in found["c2pa.assertions"]:
        label, content = described(assertion)
        assertions[label] = cbor.decode(content[0][1]) if content[0][0] == b"cbor" else content[0][1]
    _check_signature(found["c2pa.signature"][0][1], claim)
    return Manifest(name, cbor.decode(claim), assertions)


def _check_signature(cose: bytes, claim: bytes) -> None:
    protected, _, _, signature = cbor.decode(cose)
    chain = cbor.decode(protected)[33]
    key = x509.load_der_x509_certificate(chain[0] if isinstance(chain, list) else chain).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    signed = b"\x84\x6aSignature1" + _byte_string(protected) + b"\x40" + _byte_string(claim)
    numbers = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
    key.verify(utils.encode_dss_signature(*numbers), signed, ec.ECDSA(hashes.SHA256()))


def _byte_string(data: bytes) -> bytes:
    return b"\x5a" + len(data).to_bytes(4, "big") + data if len(data) > 0xFFFF else _short_byte_string(data)


def _short_byte_string(data: bytes) -> bytes:
    if len(data) < 24:
        return bytes([0x40 + len(data)]) + data
    return (bytes([0x58, len(data)]) if len(data) < 256 else b"\x59" + len(data).to_bytes(2, "big")) + data
