"""`penstock models`."""

import json
from pathlib import Path

import pytest

from penstock.commands.models import _price
from tests.command_line import done
from tests.stories.processes import Installation
from tests.unit.commands.conftest import Command


def test_available_models_are_listed_with_their_price(tmp_path: Path) -> None:
    rows = {row[0]: row[1:] for row in done("models", "--data", tmp_path, FAL_KEY="").lines}
    assert rows["atelier/sketch"] == ["text-to-image", "atelier", "0.001 USD / image", ""]
    assert rows["atelier/clip"][0] == "text-to-video, image-to-video"
    assert not any("fal" in row[1] for row in rows.values())
    more = {row[0]: row[1:] for row in done("models", "--data", tmp_path, FAL_KEY="a-key").lines}
    assert any("fal" in row[1] for row in more.values())


@pytest.mark.parametrize(
    ("pricing", "shown"),
    [
        ([], "unknown"),
        ([{"unit": "image", "usd": "0.04"}], "0.04 USD / image"),
        ([{"unit": "second", "usd": "0.235"}, {"unit": "second", "usd": "0.157"}], "0.157 to 0.235 USD / second"),
        (
            [{"unit": "image", "usd": "0.04"}, {"unit": "image", "usd": "0.08", "from": "9999-01-01"}],
            "0.04 USD / image",
        ),
        (
            [{"unit": "megapixel", "usd": "0.01430511474609375"}, {"unit": "call", "usd": "2"}],
            "0.014305 USD / megapixel",
        ),
        (
            [{"unit": "token", "usd": "0.000004", "input_usd": "0.000002"}, {"unit": "token", "usd": "0.00001"}],
            "2 in, 4 to 10 USD / million tokens",
        ),
    ],
)
def test_prices_are_shown_from_the_lowest_to_the_highest(pricing: list[dict[str, str]], shown: str) -> None:
    assert _price(pricing) == shown


def test_models_of_a_gateway_are_searched_by_words(run: Command) -> None:
    assert [row[0] for row in run("models", "search", "sketch").lines] == ["atelier/sketch"]
    assert [row[0] for row in run("models", "sketch").lines] == ["atelier/sketch"]
    assert json.loads(run("models", "search", "no", "such", "--json").out)["data"] == []
    refused = run("models", "search", "fox", "--provider", "nobody")
    assert (refused.status, "does not know" in refused.err) == (1, True)


def test_a_running_gateway_is_asked_and_not_the_shell(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "data", "", None)
    with installation.serving(FAL_KEY="a-key"):
        listed = done("models", "--data", installation.data, FAL_KEY="")
        providers = done("providers", "--data", installation.data, FAL_KEY="")
        doctor = done("doctor", "--data", installation.data, FAL_KEY="")
    assert any(row[2] == "fal" for row in listed.lines)
    assert "No gateway" not in listed.err
    assert next(row for row in providers.lines if row[0] == "fal")[2] == "on"
    assert any("fal" in row[2] for row in doctor.lines if row[0] == "providers")


def test_without_a_gateway_it_says_that_the_shell_is_described(tmp_path: Path) -> None:
    for command in ("models", "providers"):
        assert "No gateway is running on this data folder" in done(command, "--data", tmp_path).err, command


def test_models_that_lack_a_key_are_shown_with_price_and_variable(run: Command, tmp_path: Path) -> None:
    found = {row[0]: row for row in run("models", "flux").lines}
    assert found["flux-2-klein-9b"][3:] == ["0.002 in, 0.002 USD / started_megapixel", "BFL_API_KEY"]
    everything = {row[0]: row[4] for row in done("models", "--off", "--data", tmp_path, BFL_API_KEY="").lines}
    assert everything["atelier/sketch"] == ""
    assert everything["flux-2-klein-9b"] == "BFL_API_KEY"
