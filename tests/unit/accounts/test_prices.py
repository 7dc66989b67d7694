"""Prices: which price row applies, what is quoted at most, and what the outputs cost."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.accounts.prices import actual_lines, price_facts, quote, restore_prices, snapshot_prices
from penstock.providers import openai_compatible
from penstock.providers.convert import allowed_seconds, both, closest, closest_resolution, pixels, with_unit
from penstock.providers.spec import (
    Model,
    Operation,
    Price,
    Reply,
    Result,
    Source,
    converted,
    emulated,
    ignored,
    passthrough,
)
from penstock.schema import Input, Request
from penstock.values import EDIT_VIDEO, nanos

# --------------------------------------------------------------------------------------------------------------- quotes


def priced_model(price: Price | None, op: Operation = openai_compatible.IMAGE, *more: Price) -> Model:
    return Model(id="m", upstream="m", op=op, prices=(price, *more) if price else ())


def image_request(task: str = "image", inputs: int = 0, **values: Any) -> Request:
    images = tuple(Input("image", f"med_{n}", "image/png", 1000, 500, 1) for n in range(inputs))
    return Request(task=task, model="m", values={"prompt": "a pear", **values}, inputs=images)


def actual_cost(*arguments: Any, **more: Any) -> Decimal:
    return sum((line.cost_usd for line in actual_lines(*arguments, **more)), Decimal(0))


def test_price_per_image() -> None:
    quoted = quote(priced_model(Price(unit="image", usd="0.04")), image_request(n=3))
    assert quoted.total == nanos("0.12")
    assert [(line.type, line.metric, line.quantity, line.total) for line in quoted.components] == [
        ("output", "image", 3, nanos("0.12"))
    ]


def test_input_images_may_have_a_price() -> None:
    quoted = quote(priced_model(Price(unit="image", usd="0.04", input_usd="0.01")), image_request("edit", inputs=2))
    assert quoted.total == nanos("0.06")
    assert [line.type for line in quoted.components] == ["output", "input"]


def test_input_images_are_charged_for_every_call() -> None:
    """A provider that makes one output per call is called four times for four outputs, each time with the image."""
    priced = Price(unit="image", usd="0.04", input_usd="0.01")
    single_output = replace(
        openai_compatible.EDIT, params=tuple(row for row in openai_compatible.EDIT.params if row.name != "n")
    )
    request = image_request("edit", inputs=1, n=4)
    assert quote(priced_model(priced, single_output), request).total == nanos("0.20")
    one_call = actual_cost(priced_model(priced, single_output), request, 1)
    assert nanos(4 * one_call) == nanos("0.20")


def test_seconds_that_are_not_sent_to_the_model_do_not_count() -> None:
    """Otherwise a caller would write a tiny number, and get a video of the model's own length for it."""
    price = Price(unit="second", usd="0.10")
    for row, expected in ((None, "1.00"), (ignored("seconds")[0], "1.00"), (emulated("seconds", default=5), "0.50")):
        video = priced_model(price, replace(openai_compatible.VIDEO, params=(row,) if row else ()))
        assert quote(video, image_request("video", seconds=0.001)).total == nanos(expected)
        assert quote(video, image_request("video")).total == nanos(expected)


def test_a_length_that_neither_the_caller_nor_the_table_says_may_be_the_longest() -> None:
    for longest, expected in ((8, "0.80"), (None, "1.00")):
        row = converted("seconds", to="duration", convert=str, high=longest)
        video = priced_model(Price(unit="second", usd="0.10"), replace(openai_compatible.VIDEO, params=(row,)))
        assert quote(video, image_request("video")).total == nanos(expected)


def test_a_video_is_not_priced_for_less_than_the_shortest_that_is_made() -> None:
    frames = converted("seconds", to="num_frames", convert=lambda seconds: (81,), min_seconds=5)
    video = priced_model(Price(unit="second", usd="0.10"), replace(openai_compatible.VIDEO, params=(frames,)))
    assert quote(video, image_request("video", seconds=0.001)).total == nanos("0.50")


def test_a_video_is_held_for_a_sound_that_the_caller_names() -> None:
    video = priced_model(Price(unit="second", usd="0.10"), replace(openai_compatible.VIDEO, params=()))
    inputs = (Input(EDIT_VIDEO, "med_1", "video/mp4", 64, 64, 1, seconds=2.0, frames=16),)
    silent = Request(task="video", model="m", values={}, inputs=inputs)
    with_sound = Request(
        task="video", model="m", values={}, inputs=inputs, extras={"audio_url": "https://a.test/a.mp3"}
    )
    assert quote(video, silent).total == nanos("0.20")
    assert quote(video, with_sound).total == nanos("6.00")
    assert nanos(actual_cost(video, with_sound, 1)) == nanos("0.20")


def test_a_size_that_is_not_sent_to_the_model_does_not_count() -> None:
    """The model makes an image of the usual size, or one as large as the image that it edits."""
    price = Price(unit="megapixel", usd="0.01")
    large = Input("image", "med_1", "image/png", 4000, 3000, 1)
    edit = Request(task="edit", model="m", values={"prompt": "a pear", "size": "16x16"}, inputs=(large,))
    ratio = converted("frame", to="aspect_ratio", convert=lambda frame: frame.short_ratio)
    sides = converted("frame", to=("width", "height"), convert=lambda frame: frame.sides)
    for rows, expected in (((), "0.12"), ((ratio,), "0.12"), ((sides,), "0.00000256")):
        model = priced_model(price, replace(openai_compatible.EDIT, params=rows))
        assert quote(model, edit).total == nanos(expected)
    image = priced_model(price, replace(openai_compatible.IMAGE, params=()))
    assert quote(image, image_request(size="16x16")).total == nanos("0.01048576")
    assert nanos(actual_cost(image, edit, 1, pixels=500_000)) == nanos("0.005"), "what was made is charged"


def test_price_per_call() -> None:
    assert quote(priced_model(Price(unit="call", usd="0.5")), image_request()).total == nanos("0.5")


def test_price_per_second_uses_the_duration_that_the_model_makes() -> None:
    """For 5 requested seconds a model that makes 4 or 8 is paid for 8."""
    steps = converted("seconds", to="seconds", convert=lambda seconds: f"{8 if seconds > 4 else 4}s", default=4)
    op = replace(openai_compatible.VIDEO, params=(steps,))
    video = priced_model(Price(unit="second", usd="0.10"), op)
    assert quote(video, image_request("video", seconds=5)).total == nanos("0.80")
    assert quote(video, image_request("video", seconds=5, n=2)).total == nanos("1.60")
    assert quote(video, image_request("video")).total == nanos("0.40"), "the default of the model's table"


def test_price_per_minute_that_was_begun() -> None:
    price = Price(unit="minute_started", usd="0.10")
    row = converted("seconds", to="seconds", convert=str, high=600)
    sound = priced_model(price, replace(openai_compatible.VIDEO, params=(row,)))
    for seconds, expected in ((1, "0.10"), (60, "0.10"), (61, "0.20"), (150, "0.30")):
        assert quote(sound, image_request("video", seconds=seconds)).total == nanos(expected)
    assert quote(sound, image_request("video", seconds=150, n=2)).total == nanos("0.60")


def test_price_per_megapixel() -> None:
    image_model = priced_model(Price(unit="megapixel", usd="0.01"))
    assert quote(image_model, image_request(size="2000x1000")).total == nanos("0.02")
    assert quote(image_model, image_request(size="1:1")).total == nanos(Decimal("0.01") * 1024 * 1024 / 1_000_000)


def test_an_upscaler_is_priced_by_the_pixels_of_its_output() -> None:
    upscaler = priced_model(Price(unit="megapixel", usd="0.01"), openai_compatible.UPSCALE)
    assert quote(upscaler, image_request("upscale", inputs=1, scale_factor=4)).total == nanos("0.08")
    assert quote(upscaler, image_request("upscale", inputs=1)).total == nanos("0.02")


def test_a_quote_by_tokens_assumes_the_maximum() -> None:
    token_model = priced_model(Price(unit="token", usd="0.00004", input_usd="0.00001", max_tokens=6000))
    quoted = quote(token_model, image_request("edit", inputs=1, n=2, prompt="x" * 100))
    assert quoted.total == nanos(Decimal("0.00004") * 12_000 + Decimal("0.00001") * (100 + 3000))
    assert [line.metric for line in quoted.components] == ["token", "token"]


def test_a_model_without_a_price_costs_nothing() -> None:
    assert quote(priced_model(None), image_request()).total == 0


def test_the_first_matching_row_is_used() -> None:
    rows = (
        Price(unit="image", usd="0.08", when={"quality": "hd", "size": "1792x1024"}),
        Price(unit="image", usd="0.06", when={"quality": "hd"}),
        Price(unit="image", usd="0.04"),
    )
    image_model = priced_model(rows[0], openai_compatible.IMAGE, *rows[1:])
    requested: list[dict[str, Any]] = [
        {"quality": "hd", "size": "1792x1024"},
        {"quality": "hd"},
        {"quality": "standard"},
        {},
    ]
    totals = [quote(image_model, image_request(**values)).total for values in requested]
    assert totals == [nanos(usd) for usd in ("0.08", "0.06", "0.04", "0.04")]


def test_an_extra_field_does_not_pass_for_what_is_sent_or_computed() -> None:
    """Otherwise a caller would choose the cheapest row by a field that the provider ignores."""
    extras = {"sent.quality": "low", "tier": "480p", "size": "64x64", "pixels": 1, "references": True, "own": "x"}
    video = Request(task="upscale", model="m", values={"prompt": "a pear"}, extras=extras)
    facts = price_facts(priced_model(None, openai_compatible.UPSCALE), video)
    assert {name: facts.get(name) for name in extras} == {
        "sent.quality": None,
        "tier": None,
        "size": None,
        "pixels": 0,
        "references": False,
        "own": "x",
    }


def test_a_size_that_is_sent_as_one_text_counts_as_it_is_sent() -> None:
    """A model whose sides are multiples of 64 makes a larger image than was asked for."""
    rounded = converted("frame", to="size", convert=lambda frame: "1088x1920")
    model = priced_model(Price(unit="megapixel", usd="1"), replace(openai_compatible.IMAGE, params=(rounded,)))
    assert quote(model, image_request(size="1080x1920")).total == nanos("2.08896")


def test_a_resolution_that_is_sent_by_its_name_is_held_for_its_pixels() -> None:
    """Whatever size the caller wrote: a tiny one, or one between two names, means the closest that the model makes."""
    named = converted(
        "frame", to=("ratio", "resolution"), convert=both(closest("1:1", "16:9"), closest_resolution("1K", "2K", "4K"))
    )
    model = priced_model(Price(unit="megapixel", usd="1"), replace(openai_compatible.IMAGE, params=(named,)))
    for size, side in (("64x64", 1024), ("1100x1100", 1024), ("1500x1500", 2048), ("4096x4096", 4096)):
        held = quote(model, image_request(size=size)).total
        assert held == max(side * side, 1100 * 1100 if size == "1100x1100" else 0) * 1000, size
    assert nanos(actual_cost(model, image_request(size="64x64"), 1, pixels=2**20)) == nanos("1.048576")


def test_a_quote_is_rounded_up() -> None:
    """The charge is the rounded sum of all parts, which is more than the sum of parts that are rounded down."""
    price = Price(unit="image", usd="0.0000000004", each_usd="0.0000000004")
    model = priced_model(price)
    assert quote(model, image_request()).total == 2
    assert nanos(actual_cost(model, image_request(), 1)) == 1


def test_each_input_image_is_held_for_the_tokens_that_it_can_take() -> None:
    price = Price(unit="token", usd="0", input_usd="0.00001", max_tokens=1, max_input_tokens=7000)
    held = quote(priced_model(price, openai_compatible.EDIT), image_request("edit", inputs=2, prompt="")).total
    assert held == nanos("0.14")


@pytest.mark.parametrize(
    ("values", "tier"),
    [
        ({"size": "1280x720"}, "720p"),
        ({"size": "1920x1080"}, "1080p"),
        ({"size": "16:9"}, "720p"),
        ({"size": "16:9", "resolution": "1080p"}, "1080p"),
        ({"size": "854x480"}, "480p"),
        ({"size": "3840x2160"}, "2160p"),
    ],
)
def test_the_size_gives_the_resolution_for_price_conditions(values: dict[str, Any], tier: str) -> None:
    assert (
        price_facts(priced_model(None, openai_compatible.VIDEO), image_request("video", **values))["resolution"] == tier
    )


# --------------------------------------------------------------------------------------------------------- actual costs


def test_only_delivered_outputs_cost() -> None:
    rows = (Price(unit="image", usd="0.04"),)
    assert actual_cost(priced_model(rows[0]), image_request(n=4), 3) == Decimal("0.12")


def test_reported_tokens_do_not_change_a_price_per_image() -> None:
    rows = (Price(unit="image", usd="0.04", input_usd="0.01"),)
    assert actual_cost(
        priced_model(rows[0]), image_request("edit", inputs=1), 1, usage={"input": 1000, "output": 5000}
    ) == Decimal("0.05")


def test_reported_tokens_are_the_quantity() -> None:
    rows = (Price(unit="token", usd="0.00004", input_usd="0.00001", max_tokens=6000),)
    assert actual_cost(priced_model(rows[0]), image_request(), 1, usage={"input": 50, "output": 1000}) == Decimal(
        "0.0405"
    )
    assert actual_cost(priced_model(rows[0]), image_request(), 1, usage={"input": 0, "output": 0}) == 0, (
        "a reported zero counts"
    )


def test_unreported_tokens_cost_as_much_as_quoted() -> None:
    rows = (Price(unit="token", usd="0.00004", input_usd="0.00001", max_tokens=6000),)
    quoted = quote(priced_model(rows[0]), image_request()).total
    assert nanos(actual_cost(priced_model(rows[0]), image_request(), 1)) == quoted


def test_measured_pixels_are_the_quantity() -> None:
    rows = (Price(unit="megapixel", usd="0.01"),)
    assert actual_cost(priced_model(rows[0]), image_request(), 2, pixels=3_000_000) == Decimal("0.03")


def test_a_million_tiny_costs_add_up_exactly() -> None:
    """0.15 micro-dollars, a million times, are exactly fifteen cents."""
    rows = (Price(unit="call", usd="0.00000015"),)
    cost = nanos(actual_cost(priced_model(rows[0]), image_request(), 1))
    assert cost * 1_000_000 == nanos("0.15")
    assert cost == 150


amounts = st.decimals(min_value=0, max_value=100, places=6).map(str)


@given(
    usd=amounts,
    input_usd=amounts,
    n=st.integers(1, 10),
    inputs=st.integers(0, 4),
    size=st.sampled_from(("64x64", "16:9")),
)
def test_the_cost_equals_the_quote_when_all_outputs_are_delivered(
    usd: str, input_usd: str, n: int, inputs: int, size: str
) -> None:
    request = image_request("edit", inputs=inputs, n=n, size=size)
    for unit in ("image", "call"):
        price = Price(unit=unit, usd=usd, input_usd=input_usd)
        assert nanos(actual_cost(priced_model(price), request, n)) == quote(priced_model(price), request).total


def test_prices_can_be_stored_and_restored() -> None:
    rows = (
        Price(unit="image", usd="0.04", when={"quality": "hd"}, source=Source("x")),
        Price(unit="token", usd="1", max_tokens=7),
    )
    assert restore_prices(snapshot_prices(rows)) == rows
    of_another_version = [row | {"note": "x"} for row in snapshot_prices(rows)]
    assert restore_prices(of_another_version) == rows


# ------------------------------------------------------------------------------------------ units, conditions and usage


def read(reply: Reply) -> Result:
    return Result()


IMAGE_OPERATION = Operation(
    task="image",
    send="POST /image",
    read=read,
    params=(
        passthrough("prompt"),
        emulated("n", to="n", high=4),
        converted("frame", to=("size.width", "size.height"), convert=pixels(max_area=2**21)),
    ),
)
VIDEO_OPERATION = Operation(
    task="video",
    send="POST /video",
    read=read,
    params=(
        passthrough("prompt"),
        converted("seconds", to="duration", convert=allowed_seconds(5, 10, convert=with_unit("s")), default=5),
        converted(
            "frame", to="video.resolution", convert=closest_resolution("540p", "1080p", default="540p"), default="16:9"
        ),
    ),
)


def model(op: Operation, *prices: Price) -> Model:
    return Model(id="a/b", upstream="b", op=op, prices=prices)


def request(task: str, inputs: tuple[Input, ...] = (), **values: Any) -> Request:
    return Request(task=task, model="a/b", values={"prompt": "a fox", **values}, inputs=inputs)


def input_image(width: int, height: int) -> Input:
    return Input("image", "", "image/png", width, height, 1)


@pytest.mark.parametrize(
    ("size", "n", "usd"),
    [
        ("1024x1024", 1, "0.03"),
        ("512x512", 1, "0.03"),
        ("1920x1080", 1, "0.045"),
        ("1025x1024", 1, "0.045"),
        ("1920x1080", 3, "0.135"),
        ("4096x4096", 1, "0.045"),  # the model's maximum is 2 megapixels
    ],
)
def test_started_megapixels_with_a_higher_price_for_the_first(size: str, n: int, usd: str) -> None:
    image_model = model(IMAGE_OPERATION, Price(unit="started_megapixel", usd="0.015", each_usd="0.015"))
    wanted = request("image", size=size, n=n)
    assert quote(image_model, wanted).total == nanos(usd)
    width, height = (int(side) for side in size.split("x"))
    made = min(width * height, 2**21) * n
    assert actual_cost(image_model, wanted, n, pixels=made) == Decimal(usd)


def test_megapixels_of_input_images() -> None:
    image_model = model(
        IMAGE_OPERATION, Price(unit="started_megapixel", usd="0.015", input_usd="0.015", each_usd="0.015")
    )
    wanted = request("image", (input_image(1024, 1024), input_image(1920, 1080)), size="1024x1024")
    assert quote(image_model, wanted).total == nanos("0.075")
    assert actual_cost(image_model, wanted, 1, pixels=2**20) == Decimal("0.075")
    assert [line.metric for line in quote(image_model, wanted).components] == [
        "started_megapixel", "output", "started_megapixel",
    ]  # fmt: skip


def test_plain_megapixels_are_not_rounded() -> None:
    exact = model(IMAGE_OPERATION, Price(unit="megapixel", usd="0.01"))
    wanted = request("image", size="1000x1000", n=2)
    assert quote(exact, wanted).total == nanos("0.02")
    assert actual_cost(exact, wanted, 2, pixels=1_500_000) == Decimal("0.015")


@pytest.mark.parametrize(
    ("values", "usd"),
    [
        ({"seconds": 5, "size": "16:9"}, "0.15"),
        ({"seconds": 7, "size": "16:9"}, "0.45"),  # the model makes 10 seconds
        ({"seconds": 10, "size": "960x540"}, "0.45"),
        ({"seconds": 3, "size": "1920x1080"}, "1.20"),
        ({"seconds": 8, "size": "16:9", "resolution": "1080p"}, "3.60"),
        ({"seconds": 5, "size": "3840x2160"}, "1.20"),  # the nearest resolution that the model has
    ],
)
def test_conditions_may_name_the_fields_sent_to_the_model(values: dict[str, Any], usd: str) -> None:
    video_model = model(
        VIDEO_OPERATION,
        Price(unit="call", usd="3.60", when={"sent.video.resolution": "1080p", "sent.duration": "10s"}),
        Price(unit="call", usd="1.20", when={"sent.video.resolution": "1080p"}),
        Price(unit="call", usd="0.45", when={"sent.duration": "10s"}),
        Price(unit="call", usd="0.15"),
    )
    wanted = request("video", **values)
    assert quote(video_model, wanted).total == nanos(usd)
    assert actual_cost(video_model, wanted, 1) == Decimal(usd)


def test_all_fields_of_a_price_row_are_restored() -> None:
    row = Price(unit="started_megapixel", usd="1", each_usd="2", when={"sent.quality": "high"}, source=Source("a page"))
    assert restore_prices(snapshot_prices([row, replace(row, each_usd="0")])) == (
        row,
        replace(row, each_usd="0"),
    )


def test_other_reported_amounts_have_their_own_prices() -> None:
    """Text input is cheaper than image input, and text output cheaper than image output."""
    other = {"text_input": "0.000005", "text_output": "0.00001"}
    row = Price(unit="token", usd="0.00003", input_usd="0.000008", max_tokens=7000, other_usd=other)
    token_model = model(IMAGE_OPERATION, row)
    wanted = request("image")
    usage = {"input": 100, "output": 1000, "text_input": 20, "text_output": 50}
    assert actual_cost(token_model, wanted, 1, usage=usage) == Decimal("0.0314")
    assert actual_cost(token_model, wanted, 1, usage={"input": 0, "output": 1000}) == Decimal("0.03")
    assert restore_prices(snapshot_prices([row])) == (row,)
