"""Responses become generations, prices and balances."""

from decimal import Decimal

import pytest

from penstock.client.results import balance, generation, generation_path, price


def test_a_cost_is_exact() -> None:
    made = generation({"id": "req_1", "data": [{"url": "u"}], "metadata": {"cost": 1.2e-05, "model": "m"}})
    assert (made.cost, made.model, made.status, made.progress) == (Decimal("0.000012"), "m", "completed", 100)


def test_several_videos_are_several_files_and_none_while_it_runs() -> None:
    video = {"id": "req_1", "object": "video", "status": "in_progress", "model": "m", "progress": 30, "output": None}
    running = generation({**video, "metadata": {"cost_estimate": 0.2}})
    assert (running.is_finished, running.files, running.cost_estimate, running.progress) == (
        False,
        (),
        Decimal("0.2"),
        30,
    )
    outputs = [{"url": "a", "content_type": "video/mp4", "size_bytes": 1}, {"url": "b"}]
    done = generation({**video, "status": "completed", "output": outputs[0], "outputs": outputs})
    assert [file.url for file in done.files] == ["a", "b"]


def test_the_url_of_a_file_is_not_shown_in_logs() -> None:
    made = generation({"id": "req_1", "data": [{"url": "https://x.test/?sig=s3cret"}]})
    assert "s3cret" not in repr(made)


@pytest.mark.parametrize("wrong", ["../keys", "req_1/content", "req_1?x=y", "", "req_é"])
def test_only_an_id_is_asked_for(wrong: str) -> None:
    with pytest.raises(ValueError, match="the id of a generation is needed"):
        generation_path(wrong, "video")
    assert generation_path("req_01", "sound") == "/compat/v1/audio/generations/req_01"


def test_prices_and_balances_are_exact() -> None:
    assert price({"total_cost_micros": 12, "model": "m"}).total == Decimal("0.000012")
    assert balance({"available": {"amount": 9.99}, "billing_type": "prepaid"}).available == Decimal("9.99")
    assert balance({"available": {"amount": None}, "billing_type": "postpaid"}).available is None
