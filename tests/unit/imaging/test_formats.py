"""Formats, content types and extensions agree."""

from penstock.imaging.formats import CONTENT_TYPES, FORMATS, OUTPUT_FORMATS, extension


def test_each_format_has_one_content_type() -> None:
    assert OUTPUT_FORMATS == ("png", "jpeg", "gif", "webp", "avif")
    assert [CONTENT_TYPES[name] for name in OUTPUT_FORMATS] == [f"image/{name}" for name in OUTPUT_FORMATS]
    assert [FORMATS[CONTENT_TYPES[name]] for name in OUTPUT_FORMATS] == list(OUTPUT_FORMATS)


def test_extensions_are_the_usual_ones() -> None:
    types = ("image/jpeg", "image/png", "image/webp", "image/gif", "image/avif", "video/mp4", "video/webm")
    assert [extension(name) for name in types] == ["jpg", "png", "webp", "gif", "avif", "mp4", "webm"]
