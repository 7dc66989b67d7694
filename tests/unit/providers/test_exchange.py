"""Replies and results as provider files see them."""

import tracemalloc

import msgspec
import pytest

from penstock.providers.exchange import Reply, Result, Status


def test_a_reply_is_decoded_when_it_is_asked_for() -> None:
    assert Reply(200, body=b'{"a": 1}').json == {"a": 1}
    with pytest.raises(msgspec.DecodeError):
        _ = Reply(200, body=b"<html>").json


def test_a_long_file_in_base64_is_a_part_of_the_body() -> None:
    text = "iVBORw0K" * 100_000
    reply = Reply(200, body=msgspec.json.encode({"data": [{"b64_json": text}], "prompt": "é"}))
    tracemalloc.start()
    try:
        found = reply.json["data"][0]["b64_json"]
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(found, memoryview)
    assert (bytes(found), reply.json["prompt"]) == (text.encode(), "é")
    assert peak_bytes < len(text) / 2, "it was copied"


def test_a_result_is_done_when_its_status_cannot_change() -> None:
    statuses: tuple[Status, ...] = ("queued", "in_progress", "completed", "failed", "cancelled")
    assert [Result(status=status).done for status in statuses] == [False, False, True, True, True]
