"""Words for resolutions stand for the short side of a frame."""

from penstock.providers.derive.resolutions import closest_side, resolution_side, resolution_sides
from penstock.values import Frame


def test_words_for_resolutions() -> None:
    assert [resolution_side(value) for value in ("1080p", "4K", "2k", "FHD", "1 MP", "auto", True)] == [
        1080, 2160, 1440, 1080, 1000, None, None,
    ]  # fmt: skip
    assert [resolution_side(value, "image") for value in ("4K", "2K")] == [4096, 2048]


def test_the_resolution_closest_to_the_wanted_one() -> None:
    sides = resolution_sides(["480p", "720p", "4k", "auto"], "video")
    assert sides == {"480p": 480, "720p": 720, "4k": 2160}
    assert resolution_sides(["480p", "small"], "video") == {}, "one value is no resolution"
    pick = closest_side(sides)
    assert [pick(frame) for frame in (Frame(1920, 1080), Frame(9, 16, exact=False))] == ["720p", None]
