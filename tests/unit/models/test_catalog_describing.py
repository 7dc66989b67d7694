"""The model list: modalities, modes, providers, prices and parameters."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.models.catalog import Catalog
from penstock.providers.spec import Model, Price, converted, passthrough, refused
from penstock.settings import Settings
from tests.manual_clock import ManualClock
from tests.unit.models.small_catalog import OPS, PRICE, catalog, model, provider


def known_source(name: str) -> dict[str, Any]:
    return {"source": name, "as_of": None, "second_hand": False}


def test_a_model_object() -> None:
    known = catalog(models={"two/fox": {"price": {"unit": "image", "usd": "0.02", "when": {}, "source": "x"}}})
    assert known.describe("fox") == {
        "id": "fox",
        "object": "model",
        "created": 1_767_225_600,
        "owned_by": "one",
        "name": "fox",
        "description": "",
        "shutdown_date": None,
        "modality": "image",
        "modes": ["text-to-image"],
        "providers": ["one", "two"],
        "pricing": [
            {"provider": "one", "task": "image", "unit": "image", "usd": "0.04", **known_source("test")},
            {"provider": "two", "task": "image", "unit": "image", "usd": "0.02", **known_source("x")},
        ],
    }
    assert known.describe("vulpes")["id"] == "fox"
    assert known.describe("two/own")["owned_by"] == "two"


def test_the_list_has_each_id_once() -> None:
    assert [listed_model["id"] for listed_model in catalog().describe_all()] == ["fox", "video-1", "two/own"]
    assert not any("schema" in listed_model for listed_model in catalog().describe_all())
    assert all(listed_model["schema"]["properties"]["prompt"] for listed_model in catalog().describe_all(schema=True))


@pytest.mark.parametrize(
    ("row", "modes"),
    [
        (None, ["text-to-video"]),
        (refused("input_reference")[0], ["text-to-video"]),
        (passthrough("input_reference"), ["text-to-video", "image-to-video"]),
        (converted("input_reference", to="x", convert=str, required=True), ["image-to-video"]),
    ],
)
def test_the_modes_of_a_video_model_follow_from_its_table(row: Any, modes: list[str]) -> None:
    op = replace(OPS["video"], params=(row,) if row else ())
    known = catalog(provider("one", Model(id="video-1", upstream="f", op=op, prices=PRICE)))
    assert known.describe("video-1")["modes"] == modes


@pytest.mark.parametrize(
    ("task", "modality", "modes"),
    [
        ("image", "image", ["text-to-image"]),
        ("edit", "image", ["image-edit"]),
        ("upscale", "image", ["upscale"]),
        ("video", "video", ["text-to-video", "image-to-video"]),
        ("chat", "text", ["chat"]),
    ],
)
def test_the_modality_and_modes_of_each_task(task: str, modality: str, modes: list[str]) -> None:
    shown = catalog(provider("one", model("x", task))).describe("x")
    assert (shown["modality"], shown["modes"]) == (modality, modes)


def test_the_prices_of_today_are_shown_before_announced_ones() -> None:
    usual = Price(unit="image", usd="0.1")
    december = replace(usual, usd="0.2", from_date="2026-12-01")
    clock = ManualClock(int(datetime(2026, 11, 30, 23, 59, tzinfo=UTC).timestamp() * 1000))
    known = Catalog([provider("one", model("fox", prices=(december, usual)))], Settings(), {}, clock)

    def shown() -> list[tuple[str, str | None]]:
        return [(price["usd"], price.get("from")) for price in known.describe("fox")["pricing"]]

    def charged() -> list[str]:
        return [price.usd for price in known.find("fox", ("image",)).candidates[0].model.prices]

    assert (shown(), charged()) == ([("0.1", None), ("0.2", "2026-12-01")], ["0.1"])
    clock.advance(60)
    assert (shown(), charged()) == ([("0.2", "2026-12-01")], ["0.2"])


def test_conditions_of_prices_are_shown() -> None:
    prices = (
        Price(unit="second", usd="0.5", when={"resolution": "1080p"}),
        Price(unit="second", usd="0.1", input_usd="0.01"),
    )
    shown = catalog(provider("one", model("video-1", "video", prices=prices))).describe("video-1")["pricing"]
    assert shown[0]["when"] == {"resolution": "1080p"}
    assert shown[1]["input_usd"] == "0.01"
