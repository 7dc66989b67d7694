"""Ids that sort by time, money without loss, frames, retention."""

import ast
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.values import (
    ZERO,
    Frame,
    Nanos,
    Retention,
    dollars,
    first_id,
    is_id,
    micros,
    nanos,
    nanos_up,
    new_id,
)

SOURCE = Path(__file__).parents[2] / "src" / "penstock"
YEAR_9999_MS = 253_402_300_799_999
times = st.integers(0, YEAR_9999_MS)

# ---------------------------------------------------------------------------------------------------------------- ids


def test_work_is_done_for_the_id_of_an_organization_and_not_for_any_text() -> None:
    """So that mypy refuses a text that is written in the code, which would share its places with nobody."""
    found = {
        f"{path.name}:{argument.lineno}": ast.unparse(argument.annotation) if argument.annotation else "nothing"
        for path in SOURCE.rglob("*.py")
        if "for_org" in (text := path.read_text())
        for argument in ast.walk(ast.parse(text))
        if isinstance(argument, ast.arg) and argument.arg == "for_org"
    }
    assert len(found) > 20
    assert {place: type_ for place, type_ in found.items() if type_ not in ("OrgId", "OrgId | None")} == {}


@given(times, times)
def test_ids_sort_by_time(one: int, other: int) -> None:
    if one != other:
        assert (new_id("req", one) < new_id("req", other)) == (one < other)


@given(times)
def test_first_id_separates_a_time_from_the_one_before(at_ms: int) -> None:
    assert first_id("req", at_ms) <= new_id("req", at_ms) < first_id("req", at_ms + 1)


def test_first_id_of_a_time_before_1970_is_below_all() -> None:
    assert first_id("req", -5) == first_id("req", 0)


def test_ids_of_one_time_differ_in_80_bits() -> None:
    ids = [new_id("req", 1) for _ in range(1000)]
    assert len(set(ids)) == 1000
    digits = {column: len(set(letters)) for column, letters in enumerate(zip(*ids, strict=True))}
    assert sum(4 for different in digits.values() if different == 16) == 80


FORKED = """
import os
from penstock.values import new_id
new_id("req", 1)
if child := os.fork():
    os.waitpid(child, 0)  # so that they do not print at once
print(*(new_id("req", 1) for _ in range(50)), sep="\\n")
"""


def test_parent_and_child_process_give_out_different_ids() -> None:
    process = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True)
    assert len(set(process.stdout.split())) == 100


@given(times)
def test_every_new_id_is_an_id(at_ms: int) -> None:
    assert is_id(new_id("req", at_ms), "req")
    assert not is_id(new_id("req", at_ms), "key")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("req_" + "0f" * 16, True),
        ("key_" + "0f" * 16, False),
        ("req_" + "0f" * 15 + "0", False),
        ("req_" + "0f" * 16 + "0", False),
        ("req_" + "0F" * 16, False),
        ("req_" + "0f" * 15 + "0g", False),  # beyond the alphabet
        ("req_" + "0f" * 16 + "\n", False),
        ("req_", False),
        ("", False),
    ],
)
def test_is_id(text: str, expected: bool) -> None:
    assert is_id(text, "req") is expected


# -------------------------------------------------------------------------------------------------------------- money


@given(st.integers(-(10**18), 10**18))
def test_dollars_and_back_loses_nothing(amount: int) -> None:
    assert nanos(dollars(Nanos(amount))) == amount
    assert nanos(str(dollars(Nanos(amount)))) == amount


@pytest.mark.parametrize(
    ("usd", "amount"),
    [
        ("0.04", 40_000_000),
        ("10", 10_000_000_000),
        (3, 3_000_000_000),
        (Decimal("0.000000001"), 1),
        ("0.0000000004", 0),
        ("0.0000000005", 1),  # half up, not to even
        ("0.0000000015", 2),
        ("0.0000000025", 3),
        ("0", 0),
    ],
)
def test_nanos_rounds_half_up(usd: Decimal | str | int, amount: int) -> None:
    assert nanos(usd) == amount


def test_the_most_that_something_may_cost_is_rounded_up() -> None:
    assert [nanos_up(Decimal(usd)) for usd in ("0", "0.0000000001", "0.000000001", "0.0000000011")] == [0, 1, 1, 2]


@pytest.mark.parametrize("usd", ["sNaN", "", "a dollar", "1,50", "NaN", "Infinity", "1e30"])
def test_nanos_refuses_anything_but_an_amount(usd: str) -> None:
    with pytest.raises(ValueError, match=r"not an amount of money"):
        nanos(usd)


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0"), (40_000_000, "0.04"), (10_000_000_000, "10"), (1, "0.000000001"), (1_500_000_000_000, "1500")],
)
def test_dollars_are_as_short_as_they_can_be(amount: int, text: str) -> None:
    assert f"{dollars(Nanos(amount)):f}" == text
    assert Decimal(msgspec.json.Encoder(decimal_format="number").encode(dollars(Nanos(amount))).decode()) == Decimal(
        text
    )


@pytest.mark.parametrize(
    ("amount", "whole"), [(0, 0), (499, 0), (500, 1), (1_499, 1), (1_500, 2), (40_000_000, 40_000)]
)
def test_micros_rounds_half_up(amount: int, whole: int) -> None:
    assert micros(Nanos(amount)) == whole


def test_a_million_small_charges_add_up() -> None:
    assert dollars(Nanos(sum([nanos("0.00000015")] * 1_000_000))) == Decimal("0.15")
    assert dollars(ZERO) == 0


# ------------------------------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize(
    ("text", "frame", "ratio"),
    [
        ("1280x720", Frame(1280, 720), "16:9"),
        ("1024x1024", Frame(1024, 1024), "1:1"),
        ("1x99999", Frame(1, 99999), "1:99999"),
        ("16:9", Frame(16, 9, exact=False), "16:9"),
        ("32:18", Frame(32, 18, exact=False), "16:9"),
    ],
)
def test_frame_is_parsed(text: str, frame: Frame, ratio: str) -> None:
    assert Frame.parse(text) == frame
    assert frame.ratio == ratio
    assert frame.size == (text if frame.exact else ratio)


def refused(parse: Callable[[str], object], text: str) -> bool:
    """Whether parsing a text raises ValueError."""
    try:
        parse(text)
    except ValueError:
        return True
    return False


def test_frame_refuses_anything_else() -> None:
    sizes = ["1024x", "0x512", "512x0", "01x1", "-1x5", "1024X768", "1024×768", "100000x1", "１０２４x７６８"]
    ratios = ["1.5:1", "0:1", "16/9", " 1:1", "1:1\n", "10000:1", "٣:٤"]
    others = ["", "1024", "x", "auto", "720p"]
    assert [text for text in sizes + ratios + others if not refused(Frame.parse, text)] == []


@pytest.mark.parametrize(
    ("frame", "pixels"),
    [
        (Frame(16, 9, exact=False), (1280, 720)),
        (Frame(9, 16, exact=False), (720, 1280)),
        (Frame(16, 9, exact=False, resolution="1080p"), (1920, 1080)),
        *(
            (Frame(1, 1, exact=False, resolution=f"{side}p"), (side, side))
            for side in (480, 540, 720, 1080, 1440, 2160)
        ),
        (Frame(4, 3, exact=False), (960, 720)),
        (Frame(17, 33), (17, 33)),  # an exact frame is not scaled
    ],
)
def test_ratios_are_scaled_to_pixels(frame: Frame, pixels: tuple[int, int]) -> None:
    assert frame.scaled(720).sides == pixels


@given(st.integers(1, 200), st.integers(1, 200), st.sampled_from([256, 720, 1024, 1080]), st.sampled_from([2, 8, 64]))
def test_scaled_keeps_shape_and_multiple(width: int, height: int, side: int, multiple: int) -> None:
    wide, high = Frame(width, height, exact=False).scaled(side, multiple).sides
    assert wide % multiple == high % multiple == 0
    assert abs(min(wide, high) - side) <= multiple / 2
    aim = side * max(width, height) / min(width, height)
    assert abs(max(wide, high) - aim) <= multiple / 2
    assert (wide >= high) == (width >= height) or abs(wide - high) <= multiple


# ---------------------------------------------------------------------------------------------------------- retention


@pytest.mark.parametrize(("text", "seconds"), [("1h", 3600), ("12h", 43_200), ("1d", 86_400), ("30d", 2_592_000)])
def test_retention_is_parsed(text: str, seconds: int) -> None:
    assert Retention.parse(text).seconds == seconds


def test_retention_refuses_anything_else() -> None:
    texts = ["", "0h", "12", "h", "1 h", "1H", "1w", "-1d", "1.5h", "01h", "1h ", "1h\n", "٣d", "1000000h"]
    assert [text for text in texts if not refused(Retention.parse, text)] == []
