"""Recognise the fields of a model for size, proportion and resolution, and make the row for them."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from penstock.json_schema import Schema
from penstock.providers.convert import closest_label, or_of_input, pixels
from penstock.providers.derive.draft import Draft, ProviderField, choices, is_any, is_number, is_text, limit
from penstock.providers.derive.resolutions import closest_side, megapixel_sides, resolution_sides
from penstock.providers.spec import Param, converted
from penstock.values import Frame

_SIZES = ("image_size", "video_size", "size", "output_size", "dimensions", "aspect_ratios_selection")
_RATIOS = ("aspect_ratio", "ratio", "video_aspect_ratio", "image_aspect_ratio", "aspectRatio", "orientation")
_RESOLUTIONS = tuple(
    """resolution video_resolution image_resolution output_resolution target_resolution quality video_quality image_size
    output_size size output_megapixels megapixels""".split()
)
_OF_INPUT = ("auto", "adaptive", "match_input_image", "match_input")  # words for the shape of an input image
# The sizes that names stand for: fal's, and those that are used elsewhere.
_NAMED_SIZES = {
    "square_hd": "1024x1024",
    "square": "512x512",
    "portrait_4_3": "768x1024",
    "portrait_16_9": "576x1024",
    "landscape_4_3": "1024x768",
    "landscape_16_9": "1024x576",
}
_NAMED_RATIOS = {"landscape": "16:9", "portrait": "9:16", "square": "1:1", "vertical": "9:16", "horizontal": "16:9"}
_SIZE_WORD = re.compile(r".*(width|height|size|mega_?pixels?|resolution)", re.IGNORECASE)
_MULTIPLE = re.compile(r"(?:multiples? of|divisible by) (\d+)", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:width|height|sides?|dimensions?)\b[^.]*\bbetween (\d{2,5}) and (\d{2,5})", re.IGNORECASE)
_WIDE = "16:9"
_MULTIPLE_DEFAULT = 8  # what the machinery of most image models needs
_SIDES_LOWEST = 64
_SIDES_HIGHEST = 4096

FrameValue = Callable[[Frame], Any]

# --------------------------------------------------------------------------------------------------------------- size


def take_frame(draft: Draft, makes: str) -> Param | None:
    """The row for `size`, `aspect_ratio` and `resolution`; None if the model has no field for any of them."""
    return _take_size(draft) or _take_ratio(draft, makes) or _take_sides(draft)


def has_resolution(row: Param) -> bool:
    """Whether a row decides how large the output is, and not only its proportion."""
    names = {name.partition(".")[0] for name in row.to}
    return row.name != "frame" or bool(names - set(_RATIOS))


def _take_size(draft: Draft) -> Param | None:
    """A field that takes a whole size: an object with two sides, a text such as `1024x768`, or a name."""
    for name in _SIZES:
        field = draft.find((name,), is_any)
        if field is None:
            continue
        if (sides := _sides_of(field.schema)) is not None:
            draft.take((name,), is_any)
            return converted("frame", to=(f"{name}.width", f"{name}.height"), convert=_fit(*sides, field.schema))
        if known := _known_shapes(choices(field.schema)):
            draft.take((name,), is_any)
            return converted("frame", to=name, convert=closest_label(known))
    return None


def without_sizes(rows: Sequence[Param]) -> tuple[Param, ...]:
    """The rows without fields for a size beside the one that is recognised, for a model with a price by its pixels:
    they may make the output larger than the frame that the caller asked for.
    """
    return tuple(
        row for row in rows if row.handling != "passthrough" or row.required or not _SIZE_WORD.fullmatch(row.name)
    )


def _sides_of(schema: Schema) -> tuple[Schema, Schema] | None:
    """The schemas of width and height, if a field may be an object of them."""
    for choice in schema.get("anyOf") or (schema,):
        properties = choice.get("properties") or {}
        if "width" in properties and "height" in properties:
            return properties["width"], properties["height"]
    return None


def _known_shapes(values: Sequence[Any]) -> dict[str, Any]:
    """The values among these that are sizes or proportions, by the size or proportion that they are."""
    known: dict[str, Any] = {}
    for value in values:
        text = str(value).strip().lower()
        shape = _NAMED_SIZES.get(text) or _NAMED_RATIOS.get(text) or re.sub(r"\s*[*×]\s*", "x", text)
        shape = re.sub(r"^(\d+)[x_/](\d+)$", lambda found: _shape(found[1], found[2]), shape)
        with suppress(ValueError):
            Frame.parse(shape)
            known.setdefault(shape, value)
    return known


def _shape(width: str, height: str) -> str:
    """`16x9` and `16_9` are proportions, `1024x768` is a size."""
    return f"{width}:{height}" if max(int(width), int(height)) < _SIDES_LOWEST else f"{width}x{height}"


def _take_sides(draft: Draft) -> Param | None:
    """Two fields for width and height."""
    width = draft.find(("width",), is_number)
    height = draft.find(("height",), is_number)
    if width is None or height is None:
        return None
    draft.take(("width",), is_number)
    draft.take(("height",), is_number)
    return converted("frame", to=("width", "height"), convert=_fit(width.schema, height.schema, width.schema))


def _fit(width: Schema, height: Schema, described: Schema) -> FrameValue:
    """Sides within the limits of both schemas, or the closest of the sides that they list. Where `described` says in
    words that sides must be between two numbers, these count too.
    """
    if choices(width) and choices(height):
        return _closest_listed(choices(width), choices(height))
    lows = [low for schema in (width, height) if (low := limit(schema, "minimum"))]
    highs = [high for schema in (width, height) if (high := limit(schema, "maximum"))]
    if written := _BETWEEN.search(str(described.get("description") or "")):
        lows.append(int(written[1]))
        highs.append(int(written[2]))
    return pixels(
        multiple=_multiple(width),
        min_side=int(max(lows, default=_SIDES_LOWEST)),
        max_side=int(min(*highs, _SIDES_HIGHEST) if highs else _SIDES_HIGHEST),
    )


def _closest_listed(widths: Sequence[float], heights: Sequence[float]) -> FrameValue:
    """The closest of the listed sides; a frame that is larger than all of them is made smaller first."""

    def value(frame: Frame) -> tuple[float, float]:
        width, height = frame.scaled(1024).sides
        scale = min(1.0, max(widths) / width, max(heights) / height)
        return _nearest(widths, width * scale), _nearest(heights, height * scale)

    return value


def _multiple(schema: Schema) -> int:
    if found := limit(schema, "multipleOf"):
        return int(found)
    written = _MULTIPLE.search(str(schema.get("description") or ""))
    return int(written[1]) if written else _MULTIPLE_DEFAULT


def _nearest(values: Sequence[float], wanted: float) -> float:
    return min(values, key=lambda value: abs(value - wanted))


# ----------------------------------------------------------------------------------------------- ratio and resolution


def _take_ratio(draft: Draft, makes: str) -> Param | None:
    """A field for the proportion, one for the resolution, or both."""
    ratio = _ratio(draft)
    resolution = _resolution(draft, makes)
    found = [each for each in (ratio, resolution) if each]
    if not found:
        return None
    for field, _ in found:
        draft.take((field.name,), is_any)
    to = tuple(field.name for field, _ in found)
    convert = [value for _, value in found]
    if ratio and "custom" in choices(ratio[0].schema) and (exact := _take_sides(draft)):
        return _with_exact_sides(to, convert, exact)
    return converted("frame", to=to, convert=_all_of(convert), default=_default_shape(found, makes))


def _ratio(draft: Draft) -> tuple[ProviderField, FrameValue] | None:
    """The field for the proportion, with the value for a frame."""
    field = draft.find(_RATIOS, is_any)
    if field is None:
        return None
    known = _known_shapes(choices(field.schema))
    if not known and not is_text(field.schema):
        return None
    convert: FrameValue = closest_label(known) if known else lambda frame: frame.short_ratio
    of_input = next((value for value in choices(field.schema) if str(value).lower() in _OF_INPUT), None)
    return field, convert if of_input is None else or_of_input(convert, of_input)


def _resolution(draft: Draft, makes: str) -> tuple[ProviderField, FrameValue] | None:
    """The field for the resolution, with the value for a frame; one that the model needs always has a value."""
    for name in _RESOLUTIONS:
        field = draft.find((name,), is_any)
        values = choices(field.schema) if field else []
        sides = megapixel_sides(values) if "megapixels" in name else resolution_sides(values, makes)
        if field and sides:
            unnamed = field.default if field.default in sides else next(iter(sides))
            return field, closest_side(sides, unnamed if field.is_required else None)
    return None


def _default_shape(found: Sequence[tuple[ProviderField, FrameValue]], makes: str) -> str | None:
    """The proportion of a video whose caller names none: the model's own, or one for a field that the model needs."""
    if makes != "video":
        return None
    for field, _ in found:
        if str(field.default) in _known_shapes(choices(field.schema)):
            return str(field.default)
    return _WIDE if any(field.is_required for field, _ in found) else None


def _all_of(convert: Sequence[FrameValue]) -> FrameValue:
    return convert[0] if len(convert) == 1 else lambda frame: tuple(each(frame) for each in convert)


def _with_exact_sides(to: Sequence[str], convert: Sequence[FrameValue], exact: Param) -> Param:
    """A ratio of a list, or `custom` with two sides in pixels for a size that the list does not have."""

    def value(frame: Frame) -> tuple[Any, ...]:
        rest = [each(frame) for each in convert[1:]]
        if not frame.exact or exact.convert is None:
            return (convert[0](frame), *rest, None, None)
        return ("custom", *rest, *exact.convert(frame))

    return converted("frame", to=(*to, *exact.to), convert=value)
