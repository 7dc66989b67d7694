"""Endpoints of fal as fal's own catalogue describes and prices them."""

from decimal import Decimal
from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.providers.fal import units
from penstock.providers.spec import Task
from penstock.values import nanos
from tests.any_model import catalogue, usable
from tests.fake_providers.fal_catalogue import FalWithCatalogue
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_image, create_video
from tests.providers.fal_gateway import with_fal

PIXVERSE = "fal-ai/pixverse/v6/text-to-video"


def test_nearly_all_endpoints_can_be_called_at_once() -> None:
    """95 of a hundred, and all others for a reason: fal does not describe them, or they make something else."""
    found = usable.kept_outcomes()
    others = {name: reason for name, reason in found.items() if reason != usable.USABLE}
    assert len(found) >= 690
    assert len(others) / len(found) < 0.03, others
    assert not any(reason.startswith(("wrong at fal", "unreadable", "no price for")) for reason in others.values())


@pytest.mark.parametrize(
    ("words", "task", "unit", "size"),
    [
        ("images", "image", "image", "1"),
        ("Megapixels", "image", "started_megapixel", "1"),
        ("megapixels", "video", "video_megapixel", "1"),
        ("5 seconds", "video", "second", "5"),
        ("10_seconds", "video", "second", "10"),
        ("minutes", "video", "second", "60"),
        ("minute of video ", "video", "second", "60"),
        ("video segments", "video", "call", "1"),
        ("1m tokens", "video", "video_megapixel", "1024"),
        ("1000 tokens", "video", "video_megapixel", "1.024"),
        ("1000 tokens", "image", "unit", "1"),
        ("15 frames", "video", "second", "0.5"),
        ("compute seconds", "image", "compute_second", "1"),
        ("credits", "image", "unit", "1"),
        ("units", "video", "unit", "1"),
        ("", "video", "unit", "1"),
        ("1000 characters", "video", "unit", "1"),
        ("moons of jupiter", "image", "unit", "1"),
    ],
)
def test_words_for_units_are_arithmetic_or_unknown(words: str, task: Task, unit: str, size: str) -> None:
    assert units.unit_and_size(words, task) == (unit, Decimal(size))


def test_a_price_must_be_an_amount_of_dollars() -> None:
    listed = {"unit_price": 0.5, "unit": "5 seconds", "currency": "USD"}
    price = units.price(listed, "video")
    assert price is not None
    assert (price.usd, price.billed_size) == ("0.1", "5")
    changes: list[dict[str, Any]] = [
        {"currency": "EUR"},
        {"unit_price": "NaN"},
        {"unit_price": -1},
        {"unit_price": None},
    ]
    assert [units.price({**listed, **change}, "video") for change in changes] == [None] * 4


def test_every_unit_of_the_price_list_is_a_price() -> None:
    listed = [entry["price"] for entry in catalogue.entries() if "price" in entry]
    assert len({row["unit"] for row in listed}) >= 12
    assert all(units.price(row, "video") for row in listed)


async def test_a_listed_second_that_is_a_part_of_the_price_is_held_and_charged_as_billed(
    open_gateway: OpenGateway,
) -> None:
    """A second of PixVerse is listed at half a cent; with sound and 1080p fal bills 115 of them for five seconds."""
    fal = FalWithCatalogue(PIXVERSE)
    fal.prices[PIXVERSE] = (0.005, "seconds")
    fal.billed[PIXVERSE] = "115"
    async with with_fal(open_gateway, fal) as running:
        before, _ = await running.money()
        asked = {"prompt": "a fox", "seconds": 5, "resolution": "1080p", "generate_audio": True}
        video = await create_video(running, model=f"fal/{PIXVERSE}", **asked)
        assert video["metadata"]["cost"] == Decimal("0.575")
        sent = fal.received("submit")[0].fields
        assert (sent["quality"] if "quality" in sent else sent["resolution"]) == "1080p"
        assert before - (await running.money())[0] == nanos("0.575")
        assert await running.rows("SELECT * FROM transfers WHERE kind = 'loss'") == []


@pytest.mark.parametrize(
    ("settings", "held", "billed", "charged"),
    [
        ({}, "2", "0.133", "0.133"),
        ({"unknown_unit_hold_usd": "0.50"}, "1", "0.133", "0.133"),  # one unit at least
        ({}, "2", "3", "2"),  # the rest is the operator's loss
        ({}, "2", "", "1"),  # fal says nothing: one unit
    ],
)
async def test_units_that_nobody_knows_are_held_by_the_operators_amount(
    open_gateway: OpenGateway, settings: dict[str, Any], held: str, billed: str, charged: str
) -> None:
    name = "fal-ai/gpt-image-1.5"
    fal = FalWithCatalogue(name)
    fal.prices[name] = (1, "units")
    fal.billed[name] = billed
    async with with_fal(open_gateway, fal, **settings) as running:
        before, _ = await running.money()
        await create_image(running, model=f"fal/{name}", prompt="a fox")
        (row,) = await running.rows("SELECT hold FROM generations")
        assert row["hold"] == nanos(held)
        assert before - (await running.money())[0] == nanos(charged)


async def test_five_seconds_are_five_times_a_second(open_gateway: OpenGateway) -> None:
    name = "luma/agent/ray/v3.2/text-to-video"
    fal = FalWithCatalogue(name)
    fal.prices[name] = (0.5, "5 seconds")
    fal.billed[name] = "2"
    async with with_fal(open_gateway, fal) as running:
        video = await create_video(running, model=f"fal/{name}", prompt="a fox", seconds=10)
        assert video["metadata"]["cost"] == Decimal(1)


async def test_the_example_of_the_documentation(open_gateway: OpenGateway) -> None:
    """In January fal did not describe what this endpoint returns; its category says that it is an image."""
    name = "fal-ai/hidream-i1-full"
    fal = FalWithCatalogue(name)
    fal.described[name]["output"] = {}
    asked = {"prompt": "a lighthouse", "size": "1024x768", "guidance_scale": 4}
    async with with_fal(open_gateway, fal) as running:
        record = await create_image(running, model=f"fal/{name}", **asked)
        assert record["status"] == "completed"


async def test_a_field_that_is_too_short_for_a_file_gets_a_url(open_gateway: OpenGateway) -> None:
    """Of Fabric fal takes URLs of 2083 characters, and needs a resolution."""
    name = "veed/fabric-1.0"
    asked: dict[str, Any] = {"model": f"fal/{name}", "prompt": "talk", "audio_url": "https://audio.test/a.mp3"}
    image: dict[str, Any] = {"input_reference": {"image_url": IMAGE_URI}}
    fal = FalWithCatalogue(name)
    fal.prices[name] = (0.00017, "compute seconds")
    async with with_fal(open_gateway, fal, public_url="https://gateway.test") as running:
        assert (await create_video(running, **asked, **image))["status"] == "completed"
        sent = fal.received("submit")[0].fields
        assert sent["image_url"].startswith("https://gateway.test/")
        assert sent["resolution"] in fal.described[name]["input"]["properties"]["resolution"]["enum"]
    async with with_fal(open_gateway, fal) as running:
        with pytest.raises(InvalidRequest, match="public_url"):
            await running.video(**asked, **image)


async def test_the_shape_of_a_picture_is_left_to_a_model_that_has_a_word_for_it(open_gateway: OpenGateway) -> None:
    name = "fal-ai/wan/v2.2-a14b/image-to-video"
    fal = FalWithCatalogue(name)
    fal.prices[name] = (0.08, "seconds")
    asked = {"model": f"fal/{name}", "prompt": "a fox", "input_reference": {"image_url": IMAGE_URI}}
    async with with_fal(open_gateway, fal) as running:
        await create_video(running, **asked)
        await create_video(running, **asked, aspect_ratio="9:16")
    assert [request.fields["aspect_ratio"] for request in fal.received("submit")] == ["auto", "9:16"]


async def test_fields_that_the_endpoint_needs(open_gateway: OpenGateway) -> None:
    """A negative prompt that a model cannot do without is required; an object may have the fields that it must have."""
    name, extend = "fal-ai/one-to-all-animation/1.3b", "fal-ai/ltx-video-13b-distilled/extend"
    fal = FalWithCatalogue(name, extend)
    fal.prices |= {name: (0.04, "seconds"), extend: (0.04, "videos")}
    async with with_fal(open_gateway, fal) as running:
        with pytest.raises(InvalidRequest, match="`negative_prompt` is required"):
            await running.video(
                model=f"fal/{name}",
                prompt="a fox",
                video_url="https://video.test/a.mp4",
                input_reference={"image_url": IMAGE_URI},
            )
        video = {"video_url": "https://video.test/a.mp4", "start_frame_num": 0}
        record = await create_video(running, model=f"fal/{extend}", prompt="a fox", video=video)
        assert record["status"] == "completed"
        with pytest.raises(InvalidRequest, match="would change the price"):
            await running.video(model=f"fal/{extend}", prompt="a fox", video={**video, "num_frames": 900})
