"""Long bodies are sent in small pieces."""

import base64

from penstock.long_bodies.base64_pieces import FileAsBase64
from penstock.long_bodies.long_body import LongBody, pieces_of, whole


def test_the_pieces_are_the_parts_one_after_the_other() -> None:
    data = bytes(range(256)) * 4000
    body = LongBody([b'{"a":"', FileAsBase64(data, "data:,"), b'"}', b"", data, bytearray(data), memoryview(data)])
    expected = b'{"a":"data:,' + base64.b64encode(data) + b'"}' + data * 3
    assert (bytes(body), len(body)) == (expected, len(expected))
    assert max(map(len, body)) <= 256 * 1024
    assert b"".join(body) == expected, "it cannot be sent twice"
    assert body.joined() == expected


def test_a_body_as_one_piece_and_in_its_pieces() -> None:
    body = LongBody([b"[", bytearray(b"1"), b"]"])
    assert (whole(body), whole(b"[1]")) == (b"[1]", b"[1]")
    assert (list(pieces_of(body)), list(pieces_of(b"[1]"))) == ([b"[", b"1", b"]"], [b"[1]"])


def test_an_empty_body_has_no_pieces() -> None:
    assert (list(LongBody([])), len(LongBody([])), bytes(LongBody([]))) == ([], 0, b"")


def test_several_bodies_become_one() -> None:
    file = FileAsBase64(b"image")
    assert bytes(LongBody.of([b"[", LongBody([b'"', file, b'"']), b"]"])) == b'["aW1hZ2U="]'
