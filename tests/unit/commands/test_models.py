"""`penstock models`."""

import json
from pathlib import Path

import pytest

from penstock.commands.models import _price
from tests.command_line import done
from tests.unit.commands.conftest import Command


def test_available_models_are_listed_with_their_price(tmp_path: Path) -> None:
    rows = {row[0]: row[1:] for row in done("models", "--data", tmp_path, FAL_KEY="").lines}
    assert rows["atelier/sketch"] == ["text-to-image", "atelier", "0.001 USD / image"]
    assert rows["atelier/clip"][0] == "text-to-video, image-to-video"
    assert not any("fal" in row[1] for row in rows.values())
    more = {row[0]: row[1:] for row in done("models", "--data", tmp_path, FAL_KEY="a-key").lines}
    assert any("fal" in row[1] for row in more.values())


@pytest.mark.parametrize(
    ("pricing", "shown"),
    [
        ([], "unknown"),
        ([{"unit": "image", "usd": "0.04"}], "0.04 USD / image"),
        ([{"unit": "token", "usd": "2", "input_usd": "1"}, {"unit": "token", "usd": "9"}], "1 in, 2 USD / token"),
    ],
)
def test_prices_are_summarized(pricing: list[dict[str, str]], shown: str) -> None:
    assert _price(pricing) == shown


def test_models_of_a_gateway_are_searched_by_words(run: Command) -> None:
    assert [row[0] for row in run("models", "search", "sketch").lines] == ["atelier/sketch"]
    assert json.loads(run("models", "search", "no", "such", "--json").out)["data"] == []
    refused = run("models", "search", "fox", "--provider", "nobody")
    assert (refused.status, "does not know" in refused.err) == (1, True)
