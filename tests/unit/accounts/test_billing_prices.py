"""Price rows: which one a request meets, and what its units come to."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from penstock.accounts import billing
from penstock.providers.convert import allowed_seconds, closest_resolution, pixels, with_unit
from penstock.providers.spec import Model, Operation, Price, Reply, Result, converted, emulated, passthrough
from penstock.schema import Input, Request
from penstock.values import nanos


def read(reply: Reply) -> Result:
    return Result()


PAINT = Operation(
    task="image",
    send="POST /paint",
    read=read,
    params=(
        passthrough("prompt"),
        emulated("n", to="n", high=4),
        converted("frame", to=("size.width", "size.height"), convert=pixels(max_area=2**21)),
    ),
)
FILM = Operation(
    task="video",
    send="POST /film",
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


def picture(width: int, height: int) -> Input:
    return Input("image", "", "image/png", width, height, 1)


@pytest.mark.parametrize(
    ("size", "n", "usd"),
    [
        ("1024x1024", 1, "0.03"),
        ("512x512", 1, "0.03"),
        ("1920x1080", 1, "0.045"),
        ("1025x1024", 1, "0.045"),
        ("1920x1080", 3, "0.135"),
        ("4096x4096", 1, "0.045"),  # the model makes 2 megapixels of it
    ],
)
def test_started_megapixels_and_a_dearer_first_one(size: str, n: int, usd: str) -> None:
    flux = model(PAINT, Price(unit="started_megapixel", usd="0.015", each_usd="0.015"))
    wish = request("image", size=size, n=n)
    assert billing.quote(flux, wish).total == nanos(usd)
    width, height = (int(side) for side in size.split("x"))
    made = min(width * height, 2**21) * n
    assert billing.charge(flux, flux.prices, wish, n, pixels=made) == Decimal(usd)


def test_megapixels_of_pictures_that_go_in() -> None:
    flux = model(PAINT, Price(unit="started_megapixel", usd="0.015", input_usd="0.015", each_usd="0.015"))
    wish = request("image", (picture(1024, 1024), picture(1920, 1080)), size="1024x1024")
    assert billing.quote(flux, wish).total == nanos("0.075")
    assert billing.charge(flux, flux.prices, wish, 1, pixels=2**20) == Decimal("0.075")
    assert [line.metric for line in billing.quote(flux, wish).components] == [
        "started_megapixel", "output", "started_megapixel",
    ]  # fmt: skip


def test_megapixels_are_exact_where_the_vendor_does_not_round() -> None:
    exact = model(PAINT, Price(unit="megapixel", usd="0.01"))
    wish = request("image", size="1000x1000", n=2)
    assert billing.quote(exact, wish).total == nanos("0.02")
    assert billing.charge(exact, exact.prices, wish, 2, pixels=1_500_000) == Decimal("0.015")


@pytest.mark.parametrize(
    ("values", "usd"),
    [
        ({"seconds": 5, "size": "16:9"}, "0.15"),
        ({"seconds": 7, "size": "16:9"}, "0.45"),  # the model makes 10 seconds of it
        ({"seconds": 10, "size": "960x540"}, "0.45"),
        ({"seconds": 3, "size": "1920x1080"}, "1.20"),
        ({"seconds": 8, "size": "16:9", "resolution": "1080p"}, "3.60"),
        ({"seconds": 5, "size": "3840x2160"}, "1.20"),  # the nearest it has
    ],
)
def test_prices_go_by_what_the_model_is_told(values: dict[str, Any], usd: str) -> None:
    ray = model(
        FILM,
        Price(unit="call", usd="3.60", when={"sent.video.resolution": "1080p", "sent.duration": "10s"}),
        Price(unit="call", usd="1.20", when={"sent.video.resolution": "1080p"}),
        Price(unit="call", usd="0.45", when={"sent.duration": "10s"}),
        Price(unit="call", usd="0.15"),
    )
    wish = request("video", **values)
    assert billing.quote(ray, wish).total == nanos(usd)
    assert billing.charge(ray, ray.prices, wish, 1) == Decimal(usd)


def test_rows_survive_being_kept() -> None:
    row = Price(unit="started_megapixel", usd="1", each_usd="2", when={"sent.quality": "high"}, note="a page")
    assert billing.restore_prices(billing.snapshot_prices([row, replace(row, each_usd="0")])) == (
        row,
        replace(row, each_usd="0"),
    )


def test_what_else_is_counted_has_its_own_price() -> None:
    """Words that go in are cheaper than pictures, and thoughts cheaper than what is painted."""
    other = {"text_input": "0.000005", "text_output": "0.00001"}
    row = Price(unit="token", usd="0.00003", input_usd="0.000008", max_tokens=7000, other_usd=other)
    brush, wish = model(PAINT, row), request("image")
    usage = {"input": 100, "output": 1000, "text_input": 20, "text_output": 50}
    assert billing.charge(brush, brush.prices, wish, 1, usage=usage) == Decimal("0.0314")
    assert billing.charge(brush, brush.prices, wish, 1, usage={"input": 0, "output": 1000}) == Decimal("0.03")
    assert billing.restore_prices(billing.snapshot_prices([row])) == (row,)
