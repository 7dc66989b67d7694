"""Replies and results as provider files see them."""

import tracemalloc

import msgspec
import pytest

from penstock.long_bodies.base64_pieces import Base64Text
from penstock.long_bodies.json_decoding import decode_beside_base64
from penstock.providers import exchange
from penstock.providers.exchange import Reply, Result, Status


def test_a_reply_is_decoded_when_it_is_asked_for() -> None:
    assert Reply(200, body=b'{"a": 1}').json == {"a": 1}
    with pytest.raises(msgspec.DecodeError):
        _ = Reply(200, body=b"<html>").json


def test_a_large_body_is_decoded_once_also_if_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []

    def note(body: bytes) -> object:
        decoded.append(body)
        return decode_beside_base64(body)

    monkeypatch.setattr(exchange, "decode_beside_base64", note)
    malformed, good, image = Reply(200, body=b"{x"), Reply(200, body=b"{}"), Reply(200, body=b"\x89PNG")
    for reply in (malformed, good, image):
        reply.decode()
    for _ in range(3):
        with pytest.raises(msgspec.DecodeError):
            _ = malformed.json
        assert good.json == {}
    assert decoded == [b"{x", b"{}"]


def test_a_long_file_in_base64_is_a_part_of_the_body() -> None:
    text = "iVBORw0K" * 100_000
    reply = Reply(200, body=msgspec.json.encode({"data": [{"b64_json": text}], "prompt": "é"}))
    tracemalloc.start()
    try:
        found = reply.json["data"][0]["b64_json"]
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(found, Base64Text)
    assert (str(found), reply.json["prompt"]) == (text, "é")
    assert peak_bytes < len(text) / 2, "it was copied"


def test_a_result_is_done_when_its_status_cannot_change() -> None:
    statuses: tuple[Status, ...] = ("queued", "in_progress", "completed", "failed", "cancelled")
    assert [Result(status=status).done for status in statuses] == [False, False, True, True, True]
