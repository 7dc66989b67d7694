"""A price for all resolutions is held for the largest that a call may mean."""

from penstock.providers.derive.ceilings import with_ceilings, with_least
from penstock.providers.spec import Param, Price, converted, passthrough
from penstock.values import EDIT_VIDEO

PRICE = Price(unit="second", usd="0.1")
SCHEMA = {"properties": {"resolution": {"enum": ["480p", "720p", "1080p", "4k"]}}}
FRAME = converted("frame", to=("aspect_ratio", "resolution"), convert=str)


def test_ceilings_grow_with_the_area_and_double_with_sound() -> None:
    assert with_ceilings({}, (), (PRICE,)) == (PRICE,)
    assert with_ceilings(SCHEMA, (FRAME,), ()) == ()
    found = with_ceilings(SCHEMA, (FRAME,), (PRICE,))
    assert [(price.when, price.ceiling) for price in found] == [
        ({"sent.resolution": "480p"}, "1"),
        ({"sent.resolution": "720p"}, "3"),
        ({"sent.resolution": "1080p"}, "6"),
        ({"sent.resolution": "4k"}, "10"),
        ({}, "10"),
    ]
    sound = with_ceilings({}, (passthrough("generate_audio"),), (PRICE,))
    assert [price.ceiling for price in sound] == ["2"]


def test_a_video_of_the_caller_is_held_for_more_seconds() -> None:
    def ceiling(*rows: Param) -> str:
        (price,) = with_ceilings({}, rows, (PRICE,))
        return price.ceiling

    video = passthrough(EDIT_VIDEO)
    assert ceiling(passthrough("video_url")) == "6", "nobody knows how long it is: six times ten seconds"
    assert ceiling(passthrough("video_url"), passthrough("seconds")) == "1"
    assert ceiling(video) == "2", "the input may be billed, too"
    assert ceiling(video, passthrough("scale_factor")) == "10"
    (by_call,) = with_ceilings({}, (video,), (Price(unit="call", usd="0.1"),))
    assert by_call.ceiling == "1"


def test_a_price_by_the_megapixels_of_all_frames_is_held_for_60_frames_a_second() -> None:
    """The size that is sent is counted; where none is sent, the highest resolution is held for."""
    by_frames = Price(unit="video_megapixel", usd="0.002")
    found = with_ceilings(SCHEMA, (FRAME,), (by_frames,))
    assert [(price.when, price.ceiling) for price in found] == [
        ({"sent.resolution": "480p"}, "2"),
        ({"sent.resolution": "720p"}, "2"),
        ({"sent.resolution": "1080p"}, "2"),
        ({"sent.resolution": "4k"}, "2"),
        ({}, "16"),
    ]
    (named,) = with_ceilings({}, (passthrough("video_url"),), (by_frames,))
    assert named.ceiling == "12", "for a minute, as above"


def test_a_low_price_of_an_image_is_held_ten_times_and_never_for_more_than_a_dime() -> None:
    prices = (Price(unit="image", usd="0.003"), Price(unit="call", usd="0.015"), Price(unit="image", usd="0.04"))
    assert [price.least_usd for price in with_least(prices, is_video=False)] == ["0.030", "0.10", "0"]
    (second,) = with_least([Price(unit="second", usd="0.005")], is_video=True)
    assert (second.least_usd, second.least_second_usd) == ("0", "0.30")
