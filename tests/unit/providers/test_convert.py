"""Conversions that provider tables share: aspect ratios, sizes, durations, images, other values."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.providers import convert
from penstock.values import Frame, InputFile

IMAGE = InputFile(b"\x89PNG", "image/png", 2, 2)


def frame(text: str) -> Frame:
    """`1024x768`, `16:9`, or `16:9 at 1080p`."""
    shape, _, resolution = text.partition(" at ")
    parsed = Frame.parse(shape)
    return Frame(*parsed.sides, exact=parsed.exact, resolution=resolution or None)


# --------------------------------------------------------------------------------------------------------------- shape

OPENAI = ("256x256", "512x512", "1024x1024", "1024x1792", "1792x1024")
RATIOS = ("1:1", "3:2", "2:3", "16:9", "9:16", "21:9")


@pytest.mark.parametrize(
    ("choices", "asked", "picked"),
    [
        (OPENAI, "1024x1024", "1024x1024"),
        (OPENAI, "1000x1000", "1024x1024"),
        (OPENAI, "300x300", "256x256"),
        (OPENAI, "400x400", "512x512"),  # areas are compared as proportions
        (OPENAI, "4096x4096", "1024x1024"),
        (OPENAI, "1920x1080", "1792x1024"),
        (OPENAI, "300x200", "1792x1024"),  # shape first: 3:2 is nearer to 7:4 than to 1:1; the area is what it is
        (OPENAI, "550x500", "512x512"),
        (OPENAI, "720x1280", "1024x1792"),
        (OPENAI, "16:9", "1792x1024"),
        (OPENAI, "1:1", "256x256"),  # no area asked for: the first of that shape
        (OPENAI, "1:1 at 1080p", "1024x1024"),
        (RATIOS, "1536x1024", "3:2"),
        (RATIOS, "1920x1080", "16:9"),
        (RATIOS, "2560x1080", "21:9"),
        (RATIOS, "9:16 at 720p", "9:16"),
        (RATIOS, "9:10", "1:1"),
        (RATIOS, "100:1", "21:9"),
    ],
)
def test_d6_a_size_the_model_lacks_maps_to_the_closest(choices: tuple[str, ...], asked: str, picked: str) -> None:
    assert convert.closest(*choices)(frame(asked)) == picked


@given(st.sampled_from(OPENAI + RATIOS))
def test_d6_a_size_the_model_has_is_kept(size: str) -> None:
    assert convert.closest(*OPENAI, *RATIOS)(Frame.parse(size)) in (size, *(OPENAI if size == "1:1" else ()))


def test_labels_for_aspect_ratios() -> None:
    by = convert.closest_label({"1:1": "square", "16:9": "landscape", "9:16": "portrait"})
    assert [by(frame(size)) for size in ("1024x1024", "1792x1024", "720x1280")] == ["square", "landscape", "portrait"]


@pytest.mark.parametrize(
    ("limits", "asked", "size"),
    [
        ({}, "1000x500", (1000, 500)),
        ({}, "16:9", (1820, 1024)),
        ({"short_side": 720, "multiple": 2}, "16:9", (1280, 720)),
        ({"short_side": 720}, "16:9 at 1080p", (1920, 1080)),
        ({"multiple": 32}, "1000x500", (992, 512)),
        ({"max_side": 1440}, "2880x1440", (1440, 720)),
        ({"max_side": 1440, "multiple": 32}, "4096x2048", (1440, 704)),
        ({"min_side": 512}, "64x32", (1024, 512)),
        ({"max_area": 1_048_576}, "2048x2048", (1024, 1024)),
        ({"max_area": 1_000_000, "multiple": 64}, "2048x2048", (960, 960)),
        ({"min_side": 512, "max_side": 1024}, "4000x200", (1024, 512)),  # no such shape within the limits
        ({"min_side": 500, "multiple": 64}, "64x64", (512, 512)),
        ({"min_area": 3_686_400}, "1024x1024", (1920, 1920)),
        ({"min_area": 3_686_400}, "21:9", (2933, 1257)),
        ({"min_area": 3_686_400}, "4096x4096", (4096, 4096)),
        ({"min_area": 1_048_576, "max_area": 2_610_000, "multiple": 16}, "64x64", (1024, 1024)),
    ],
)
def test_pixels(limits: dict[str, int], asked: str, size: tuple[int, int]) -> None:
    assert convert.pixels(**limits)(frame(asked)) == size


sides = st.integers(16, 8192)
frames = st.builds(Frame, sides, sides) | st.builds(
    Frame,
    st.integers(1, 20),
    st.integers(1, 20),
    exact=st.just(False),
    resolution=st.sampled_from([None, "720p", "1080p"]),
)
multiples = st.sampled_from([1, 2, 8, 16, 32, 64])


@given(frames, multiples, st.integers(16, 512), st.integers(1024, 4096), st.none() | st.integers(1_048_576, 4_194_304))
def test_pixels_never_leave_the_limits(
    asked: Frame, multiple: int, smallest: int, largest: int, most: int | None
) -> None:
    wide, tall = convert.pixels(1024, multiple, smallest, largest, most)(asked)
    assert smallest <= min(wide, tall)
    assert max(wide, tall) <= largest
    assert wide % multiple == tall % multiple == 0
    assert most is None or wide * tall <= most


@given(frames, multiples, st.none() | st.integers(1_048_576, 4_194_304))
def test_pixels_keep_the_shape_where_the_limits_allow_it(asked: Frame, multiple: int, most: int | None) -> None:
    width, height = asked.scaled(1024).sides
    assume(1 / 10 <= width / height <= 10)
    wide, tall = convert.pixels(1024, multiple, 64, 4096, most)(asked)
    scale = (wide * tall / (width * height)) ** 0.5
    slack = 2 * multiple
    assert abs(wide - width * scale) <= slack * max(1, wide / tall)
    assert abs(tall - height * scale) <= slack * max(1, tall / wide)


@given(st.integers(64, 1024), st.integers(64, 1024))
def test_pixels_that_fit_are_left_alone(width: int, height: int) -> None:
    assert convert.pixels(min_side=64, max_side=1024)(Frame(width, height)) == (width, height)


def test_pixels_as_a_word() -> None:
    assert convert.size_text(convert.pixels())(frame("1024x768")) == "1024x768"
    assert convert.size_text(convert.pixels(), "*")(frame("1024x768")) == "1024*768"


@pytest.mark.parametrize(
    ("names", "asked", "picked"),
    [
        (("480p", "720p", "1080p"), "1280x720", "720p"),
        (("480p", "720p", "1080p"), "16:9 at 1080p", "1080p"),
        (("480p", "720p", "1080p"), "3840x2160", "1080p"),
        (("480p", "720p", "1080p"), "64x64", "480p"),
        (("720P", "1080P"), "9:16 at 720p", "720P"),
        (("720p", "4k"), "3840x2160", "4k"),
        (("1K", "2K", "4K"), "1024x1024", "1K"),
        (("1K", "2K", "4K"), "2400x2400", "2K"),
        (("1K", "2K", "4K"), "4096x4096", "4K"),
        (("0.5K", "1K"), "512x768", "0.5K"),
        (("hd", "fhd"), "1920x1080", "fhd"),
        (("hd", "fhd", "qhd", "uhd"), "16:9 at 1440p", "qhd"),
        (("hd", "fhd", "qhd", "uhd"), "3840x2160", "uhd"),
        (("480p", "720p"), "16:9", "the usual"),
    ],
)
def test_resolutions_have_many_names(names: tuple[str, ...], asked: str, picked: str) -> None:
    assert convert.closest_resolution(*names, default="the usual")(frame(asked)) == picked


def test_a_proportion_alone_names_no_resolution() -> None:
    assert convert.closest_resolution("720p", "1080p")(frame("16:9")) is None


# ------------------------------------------------------------------------------------------------------------ duration


@pytest.mark.parametrize(("asked", "made"), [(1, 4), (4, 4), (4.1, 8), (8, 8), (9, 12), (12, 12), (60, 12)])
def test_an_allowed_duration_is_not_shorter_than_wanted_if_possible(asked: float, made: int) -> None:
    assert convert.allowed_seconds(12, 4, 8)(asked) == made


@pytest.mark.parametrize(
    ("by", "asked", "sent"),
    [
        (convert.allowed_seconds(5, 10, convert=str), 6, "10"),
        (convert.allowed_seconds(5, 10, convert=convert.with_unit("s")), 3, "5s"),
        (convert.seconds_between(2, 10), 1, 2),
        (convert.seconds_between(2, 10), 7.4, 7),
        (convert.seconds_between(2, 10), 99, 10),
        (convert.seconds_between(1, 20, float), 4, 4.0),
        (convert.number_text, 5, "5"),
        (convert.number_text, 5.0, "5"),
        (convert.number_text, 7.5, "7.5"),
        (convert.with_unit("s"), 8.0, "8s"),
    ],
)
def test_durations(by: Callable[[float], Any], asked: float, sent: Any) -> None:
    assert by(asked) == sent
    assert type(by(asked)) is type(sent)


@given(st.floats(0.01, 3600))
def test_durations_stay_legal(asked: float) -> None:
    assert convert.allowed_seconds(4, 8, 12)(asked) in (4, 8, 12)
    assert 2 <= convert.seconds_between(2, 10)(asked) <= 10


# ------------------------------------------------------------------------------------------------------ images, words


def test_images() -> None:
    assert convert.plain_base64(IMAGE) == "iVBORw=="
    assert convert.data_uri(IMAGE) == "data:image/png;base64,iVBORw=="
    assert convert.inline_image(IMAGE) == {"mimeType": "image/png", "data": "iVBORw=="}
    assert convert.first_image(convert.plain_base64)([IMAGE, InputFile(b"x", "image/png", 1, 1)]) == "iVBORw=="
    assert convert.each_image(convert.plain_base64)([IMAGE, IMAGE]) == ["iVBORw==", "iVBORw=="]


def test_first_and_last_image() -> None:
    ends = convert.first_and_last(lambda image: image.width)
    assert ends([IMAGE]) == (2, None)
    assert ends([IMAGE, InputFile(b"", "image/png", 3, 3)]) == (2, 3)


def test_two_fields_of_one_value() -> None:
    shape = convert.both(convert.closest("16:9", "1:1"), convert.closest_resolution("720p", "1080p", default="720p"))
    assert shape(frame("16:9 at 1080p")) == ("16:9", "1080p")
    assert shape(frame("1:1")) == ("1:1", "720p")


def test_lookup() -> None:
    switch = convert.on_off(True, False)
    assert [switch("on"), switch("off")] == [True, False]
    level = convert.lookup({"high": "HIGH", "minimal": "LOW"})
    assert [level("high"), level("minimal"), level("on")] == ["HIGH", "LOW", None]
