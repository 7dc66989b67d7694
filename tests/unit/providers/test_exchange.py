"""Replies and results as provider files see them."""

import msgspec
import pytest

from penstock.providers.exchange import File, Reply, Result, Status


def test_a_reply_is_decoded_when_it_is_asked_for() -> None:
    assert Reply(200, body=b'{"a": 1}').json == {"a": 1}
    with pytest.raises(msgspec.DecodeError):
        _ = Reply(200, body=b"<html>").json


def test_a_result_is_done_when_its_status_cannot_change() -> None:
    statuses: tuple[Status, ...] = ("queued", "in_progress", "completed", "failed", "cancelled")
    assert [Result(status=status).done for status in statuses] == [False, False, True, True, True]
    assert [File(data="eA==").is_base64, File(data=b"x").is_base64] == [True, False]
