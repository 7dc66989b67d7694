"""Have a time-stamp authority say when something was signed (RFC 3161), so that a seal outlives its certificate."""

from __future__ import annotations

import hashlib
import secrets

from cryptography.hazmat.primitives.asymmetric import utils

from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent
from penstock.provenance.cose import byte_string, text_string
from penstock.providers.exchange import HttpRequest

# The gateway asks, not the child that handles the file: a child never uses the network.

SECONDS = 10.0
_MAX_BYTES = 64 * 1024
_SIGNED = b"\x84" + text_string("Signature1")  # the beginning of what is signed: an array of four
_SHA_256 = bytes.fromhex("300d06096086480165030402010500")  # as an AlgorithmIdentifier
_GRANTED = (0, 1)  # the second: with changes
_HALF_BYTES = {"es256": 32, "es384": 48, "es512": 66}


class NotStamped(ValueError):
    """The authority gave no time-stamp; the message says why."""


class TimeStamps:
    """Asks a time-stamp authority."""

    def __init__(self, http_client: HttpClient, url: str) -> None:
        self._http_client = http_client
        self._url = url

    async def stamp(self, signed: bytes, signature: bytes, algorithm: str) -> bytes:
        """Return the time-stamp of a signature of COSE, of which `signed` is what was signed. Raises NotStamped."""
        number = 1 << 62 | secrets.randbits(62)  # of eight bytes
        digest = hashlib.sha256(_countersigned(signed, signature, algorithm)).digest()
        request = HttpRequest(
            "POST", self._url, {"content-type": "application/timestamp-query"}, _question(digest, number)
        )
        try:
            reply = await self._http_client.send(request, timeout_seconds=SECONDS, max_bytes=_MAX_BYTES)
        except (NotSent, MaybeSent) as problem:
            raise NotStamped(str(problem)) from problem
        if reply.status != 200:
            raise NotStamped(f"the authority's status is {reply.status}")
        token = _token(bytes(reply.body))
        if digest not in token:
            raise NotStamped("the authority stamped something else")
        return token


def _countersigned(signed: bytes, signature: bytes, algorithm: str) -> bytes:
    """What the authority stamps: the signature as two numbers, with the protected headers of what was signed."""
    if not signed.startswith(_SIGNED):
        raise NotStamped("what was signed is not of COSE")
    headers = signed[len(_SIGNED) : _end_of_byte_string(signed, len(_SIGNED))]
    size = _HALF_BYTES.get(algorithm)
    if size and len(signature) != 2 * size:
        signature = b"".join(number.to_bytes(size, "big") for number in utils.decode_dss_signature(signature))
    return b"\x84" + text_string("CounterSignature") + headers + b"\x40" + byte_string(byte_string(signature))


def _end_of_byte_string(data: bytes, at: int) -> int:
    short = data[at] & 31
    size = 0 if short < 24 else 1 << (short - 24)
    length = int.from_bytes(data[at + 1 : at + 1 + size], "big") if size else short
    return at + 1 + size + length


def _question(digest: bytes, number: int) -> bytes:
    """A TimeStampReq in DER, which also asks for the authority's certificate."""
    imprint = _der(0x30, _SHA_256 + _der(0x04, digest))
    nonce = _der(0x02, number.to_bytes(8, "big"))
    return _der(0x30, _der(0x02, b"\x01") + imprint + nonce + b"\x01\x01\xff")


def _token(response: bytes) -> bytes:
    """The token of a TimeStampResp. Raises NotStamped."""
    try:
        start, end = _content(response, 0)
        status, behind = _content(response, start)
        first, last = _content(response, status)
    except IndexError:
        raise NotStamped("the authority sent no time-stamp") from None
    if int.from_bytes(response[first:last], "big") not in _GRANTED or behind >= end:
        raise NotStamped("the authority refused to stamp")
    return response[behind:end]


def _content(data: bytes, at: int) -> tuple[int, int]:
    """Where the content of a value in DER begins and ends. Raises IndexError if it is not whole."""
    length = data[at + 1]
    at += 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(data[at : at + size], "big")
        at += size
    if at + length > len(data):
        raise IndexError(at)
    return at, at + length


def _der(tag: int, content: bytes) -> bytes:
    assert len(content) < 128, "a question is short"
    return bytes([tag, len(content)]) + content
