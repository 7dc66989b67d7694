"""Sizes, proportions and resolutions are sent in the form that a model takes."""

from typing import Any

from penstock.providers.derive.draft import Draft
from penstock.providers.derive.shapes import take_frame, without_sizes
from penstock.providers.spec import converted, ignored, passthrough
from penstock.values import Frame

SQUARE, WIDE = Frame(1024, 1024), Frame(1280, 720)
TALL = Frame(9, 16, exact=False, resolution="1080p")
RATIO = Frame(9, 16, exact=False)


def frames(makes: str = "image", **properties: Any) -> tuple[tuple[str, ...], list[Any]]:
    row = take_frame(Draft({"properties": properties}), makes)
    assert row is not None
    assert row.convert is not None
    return row.to, [row.convert(frame) for frame in (SQUARE, WIDE, TALL, RATIO)]


def test_sizes() -> None:
    side = {"type": "integer", "maximum": 14142}
    sides = {"type": "object", "properties": {"width": side, "height": side}}
    presets = {"enum": ["square_hd", "portrait_16_9", "landscape_16_9", "auto"], "type": "string"}
    words = {"anyOf": [sides, presets], "description": "Width and height must be between 1024 and 4096."}
    pair = ("image_size.width", "image_size.height")
    assert frames(image_size=words) == (pair, [(1024, 1024), (1824, 1024), (1080, 1920), (1024, 1824)])
    assert frames(image_size=presets)[1] == ["square_hd", "landscape_16_9", "portrait_16_9", "portrait_16_9"]
    text = {"type": "string", "enum": ["1024x1024", "1536*1024", "1024x1536"]}
    assert frames(size=text)[1] == ["1024x1024", "1536*1024", "1024x1536", "1024x1536"]
    limited = {"type": "integer", "minimum": 256, "maximum": 1280, "multipleOf": 32}
    assert frames(width=limited, height=limited)[1] == [(1024, 1024), (1280, 704), (704, 1280), (736, 1280)]
    listed = {"type": "integer", "enum": [512, 768, 1024]}
    assert frames(width=listed, height=listed)[1][1:3] == [(1024, 512), (512, 1024)]


def test_proportions_and_resolutions() -> None:
    ratio = {"enum": ["16:9", "9:16", "1:1", "auto"], "type": "string", "default": "16:9"}
    resolution = {"enum": ["480p", "720p", "4k"], "type": "string"}
    both = [("1:1", "720p"), ("16:9", "720p"), ("9:16", "720p"), ("9:16", None)]
    assert frames("video", aspect_ratio=ratio, resolution=resolution) == (("aspect_ratio", "resolution"), both)
    assert frames(aspect_ratio={"type": "string"})[1][1] == "16:9"
    assert frames("video", orientation={"enum": ["landscape", "portrait"]})[1][2] == "portrait"
    side = {"type": "integer", "maximum": 1440}
    custom = {"enum": ["1:1", "16:9", "9:16", "custom"], "type": "string"}
    values = [("custom", 1024, 1024), ("custom", 1280, 720), ("9:16", None, None), ("9:16", None, None)]
    assert frames(aspect_ratio=custom, width=side, height=side)[1] == values


def test_a_second_field_for_the_size_is_no_parameter_where_pixels_have_a_price() -> None:
    """An `aspect_ratio` that is sent with `width` and `height` beside it does not say how large the output becomes."""
    frame = converted("frame", to="aspect_ratio", convert=str)
    sizes = [passthrough(name) for name in ("width", "max_height", "output_size", "megapixels", "imageResolution")]
    canvas = passthrough("canvas_size", required=True)
    rows = (frame, *sizes, *ignored("resolution"), canvas, passthrough("strength"))
    assert [row.name for row in without_sizes(rows)] == ["frame", "resolution", "canvas_size", "strength"]
