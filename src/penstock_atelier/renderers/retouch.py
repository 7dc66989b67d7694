"""Edit images as the words of a prompt ask: change the look, remove, add, combine; only within the mask."""

from __future__ import annotations

import math
import random

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from penstock.imaging import convert
from penstock_atelier.renderers import canvas, creatures, effects, heal, landmarks, scene, sky, things
from penstock_atelier.renderers.canvas import Layer, Scene, Size
from penstock_atelier.renderers.edit_words import ADDING, BEHIND, BLENDING, REMOVING
from penstock_atelier.renderers.enlarge import scale
from penstock_atelier.renderers.palette import PALETTES, Palette, choose_palette, mix
from penstock_atelier.renderers.sketch import check_size
from penstock_atelier.renderers.words import Brief, Subject, read

Box = tuple[int, int, int, int]


def edit_image(
    images: list[bytes], prompt: str, mask: bytes | None, width: int, height: int, seed: int
) -> convert.ImageFile:
    """A PNG of exactly this size, made from one or more images.

    Raises BadImage for an image or a mask that cannot be used, and for a size outside the limits.
    """
    sources = [convert.decode(data) for data in images]
    hole = _hole(sources[0], mask)
    edited = _edit_sources(sources, hole, prompt, seed, width / height)
    if edited.size != (width, height):
        check_size(width, height)
    return convert.encode(_extend_to(edited, (width, height), canvas.seeded_rng(prompt, seed, "frame")), "png")


def _hole(source: Image.Image, mask: bytes | None) -> Image.Image | None:
    """White where to edit: as the mask says, else where the image is fully transparent; None where there is neither.

    Raises BadImage for a mask without transparency or of another size.
    """
    if mask is None:
        if source.mode != "RGBA":
            return None
        alpha = source.getchannel("A")
        if alpha.histogram()[0] == 0:
            return None
    else:
        shape = convert.decode(mask, ("png",))
        if shape.size != source.size:
            raise convert.BadImage("The mask and the image must have the same dimensions.")
        if shape.mode != "RGBA":
            raise convert.BadImage("The mask has no transparency: fully transparent pixels mark the area to edit.")
        alpha = shape.getchannel("A")
    return alpha.point(lambda value: 0 if value else 255)


def _edit_sources(
    sources: list[Image.Image], hole: Image.Image | None, prompt: str, seed: int, shape: float
) -> Image.Image:
    first = sources[0]
    rng = canvas.seeded_rng(prompt, seed, "retouch")
    ground = first.convert("RGB")
    brief = read(prompt)
    words = set(brief.words)
    if len(sources) > 1 and hole is None:
        combined = _combine([source.convert("RGB") for source in sources], words, shape)
        palette = choose_palette(brief.palette, (), rng)
        return _apply_effects(combined, brief, words - ADDING, palette, rng, light=bool(words & ADDING))
    if len(sources) > 1 and hole is not None:
        changed = _fill_hole_with(ground, sources[1].convert("RGB"), hole)
    else:
        changed = _edit_image_by_words(ground, hole, prompt, words, seed, rng)
    if hole is None:
        if first.mode == "RGBA":
            changed.putalpha(first.getchannel("A"))
        return changed
    return _limit_to_hole(first, changed, hole)


def _limit_to_hole(first: Image.Image, changed: Image.Image, hole: Image.Image) -> Image.Image:
    """The changed image inside the hole, the first image outside; the seam is softened on the inner side only."""
    reach = max(1.0, min(first.size) / 200)
    soft = hole.filter(ImageFilter.MinFilter(3)).filter(ImageFilter.GaussianBlur(reach))
    inner = ImageChops.darker(soft, hole)
    if first.mode == "RGBA":  # a transparent pixel has no colour that the new ones could blend with
        inner = Image.composite(inner, hole, first.getchannel("A").point(lambda value: 255 if value else 0))
        changed = changed.convert("RGBA")
    return Image.composite(changed.convert(first.mode), first, inner)


def _edit_image_by_words(
    image: Image.Image,
    hole: Image.Image | None,
    prompt: str,
    words: set[str],
    seed: int,
    rng: random.Random,
) -> Image.Image:
    """Remove what the words say, then add, then apply effects; improve the image when they ask for nothing known."""
    brief = read(prompt)
    palette = choose_palette(brief.palette, (), rng)
    adding = bool(words & ADDING)
    drawable = bool(brief.scenery or brief.creatures or brief.placed or brief.things or brief.sky)
    result = image
    touched = False
    if hole is not None and words & REMOVING:
        result = heal.fill(result, hole, rng)
        touched = True
    elif drawable and (words & BEHIND if hole is None else not adding):
        painted = canvas.finish(canvas.flatten(scene.compose(prompt, image.size, seed)), rng)
        result = painted if hole else Image.composite(image, painted, _middle_mask(image.size))
        touched = True
    if adding and drawable and not touched:
        result = _add_subjects(result, brief, palette, hole, rng)
        touched = True
    styled = _apply_effects(result, brief, words - ADDING, palette, rng, light=touched)
    if styled is result and not touched:
        return effects.improve(image, rng)
    return styled


def _apply_effects(
    image: Image.Image, brief: Brief, words: set[str], palette: Palette, rng: random.Random, *, light: bool
) -> Image.Image:
    """Apply every effect that the words name, each once.

    With `light`, colours, palette and weather are left out: something was added that should stay recognisable.
    """
    result = image
    wanted = {effects.EFFECTS[word]: None for word in sorted(words) if word in effects.EFFECTS}
    if {"black", "white"} <= words:
        wanted[effects.grey] = None
    elif brief.colours and not light:
        result = effects.tint_image(result, brief.colours[0])
    for effect in wanted:
        result = effect(result, rng)
    if (
        brief.palette in PALETTES
        and not light
        and brief.palette not in ("mono", "neon", "day")
        and effects.night not in wanted
    ):
        result = effects.horizon_light(effects.grade(result, palette, 0.25 if wanted else 0.42), palette)
    weather = [subject for subject in brief.sky if subject.name in ("snow", "rain", "fog", "lightning")]
    if weather and not light:
        result = _draw_over(result, sky.paint_weather(brief, palette, image.size, rng))
    return result


def _draw_over(image: Image.Image, layers: list[Layer]) -> Image.Image:
    """The image with layers in front of it."""
    below = Layer(image.convert("RGBA"))
    return canvas.flatten(Scene(*image.size, (below, *layers)))


def _fill_hole_with(image: Image.Image, other: Image.Image, hole: Image.Image) -> Image.Image:
    """The second image, fitted into the masked area of the first."""
    box = hole.getbbox() or (0, 0, *image.size)
    result = image.copy()
    result.paste(_crop_to_fit(other, (box[2] - box[0], box[3] - box[1])), (box[0], box[1]))
    return result


def _add_subjects(
    image: Image.Image, brief: Brief, palette: Palette, hole: Image.Image | None, rng: random.Random
) -> Image.Image:
    """Draw what the words name, in the masked area or where such a thing usually is."""
    size = image.size
    names = {subject.name for subject in brief.sky}
    layers = sky.paint_sky_objects(names, palette, (size[0], round(size[1] * 0.75)), rng)
    box = hole.getbbox() if hole is not None else None
    for subject in brief.sky:
        if subject.name in ("sun", "moon"):
            layers += _sun_or_moon(subject, brief, palette, box, size, rng)
    if "clouds" in names:
        layers += sky.paint_clouds(brief, palette, (size[0], round(size[1] * 0.6)), rng)
    standing = [subject for subject in (*brief.creatures, *brief.placed, *brief.things) for _ in range(subject.count)]
    if brief.has("forest"):
        standing.append(Subject("oak", brief.colours[0] if brief.colours else None))
    for number, subject in enumerate(standing[:9]):
        layers.append(_figure(subject, number, len(standing), box, size, rng))
    return _draw_over(image, [*layers, *sky.paint_weather(brief, palette, size, rng)])


def _sun_or_moon(
    subject: Subject, brief: Brief, palette: Palette, box: Box | None, size: Size, rng: random.Random
) -> list[Layer]:
    """In the masked area, or in the upper part of the image."""
    is_moon = subject.name == "moon"
    if box is not None:
        centre = ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
        radius = min(box[2] - box[0], box[3] - box[1]) * 0.3
    else:
        centre = (size[0] * rng.choice((0.25, 0.75)), size[1] * 0.2)
        radius = min(size) * 0.065
    colour = subject.colour or mix(PALETTES["night" if is_moon else "golden"].light, (255, 255, 255), 0.2)
    return sky.paint_light(brief, sky.Light(centre, radius, colour, is_moon), size, palette)


def _figure(subject: Subject, number: int, count: int, box: Box | None, size: Size, rng: random.Random) -> Layer:
    """One of several subjects side by side, in the box or where such a thing usually is."""
    if box is None:
        side = min(size) * 0.36 / math.sqrt(count)
        floats = subject.name in landmarks.AIRBORNE or subject.name == "butterfly"
        box = (0, 0, size[0], round(size[1] * 0.6)) if floats else (0, round(size[1] * 0.5), size[0], size[1])
    else:
        side = min(box[3] - box[1], (box[2] - box[0]) / count) * 0.98
    x = box[0] + (box[2] - box[0]) * (number + 0.5) / count
    y = box[3] - side * 0.5 if subject.name not in landmarks.AIRBORNE else (box[1] + box[3]) / 2
    draw = creatures.draw_creature if subject.name in creatures.KNOWN else things.draw_thing
    sprite = draw(subject.name, max(8, round(side)), subject.colour, rng)
    return Layer(sprite, round(x - sprite.width / 2), round(y - sprite.height / 2))


def _middle_mask(size: Size) -> Image.Image:
    """White where the subject of an image usually is, fading to black around it."""
    shape = Image.new("L", size)
    wide, high = size[0] * 0.36, size[1] * 0.42
    across, down = size[0] * 0.5, size[1] * 0.58
    ImageDraw.Draw(shape).ellipse((across - wide, down - high, across + wide, down + high * 1.6), fill=255)
    return shape.filter(ImageFilter.GaussianBlur(min(size) * 0.05))


def _combine(sources: list[Image.Image], words: set[str], shape: float) -> Image.Image:
    """Blend the images or insert the others into the first if the words say so; else put them on an album page."""
    first = sources[0]
    if words & BLENDING:
        result = first
        for number, other in enumerate(sources[1:], 2):
            result = Image.blend(result, _crop_to_fit(other, first.size), 1 / number)
        return result
    return _insert_others(first, sources[1:]) if words & ADDING else _album(sources, shape)


def _insert_others(first: Image.Image, others: list[Image.Image]) -> Image.Image:
    """The first image with the middle of each other image along its bottom, side by side."""
    result = first.copy()
    share = first.width / len(others)
    side = round(min(share * 0.9, first.height * 0.68))
    for number, other in enumerate(others):
        left = round(share * (number + 0.5) - side / 2)
        result.paste(_crop_to_fit(other, (side, side)), (left, first.height - side), _middle_mask((side, side)))
    return result


def _album(sources: list[Image.Image], shape: float) -> Image.Image:
    """All images on paper, in as many rows as fit the shape (width by height) best."""
    sheets = [_album_sheet(sources, per_row) for per_row in range(1, min(6, len(sources)) + 1)]
    sheet = min(sheets, key=lambda sheet: abs(math.log(sheet.width / sheet.height / shape)))
    size = (max(sheet.width, round(sheet.height * shape)), max(sheet.height, round(sheet.width / shape)))
    paper = Image.new("RGB", size, sheet.getpixel((0, 0)))
    paper.paste(sheet, ((size[0] - sheet.width) // 2, (size[1] - sheet.height) // 2))
    return paper


def _album_sheet(sources: list[Image.Image], per_row: int) -> Image.Image:
    """Rows of images, each row filled from edge to edge, nothing cropped."""
    width = max(640, min(2048, sources[0].width))
    gap = max(4, width // 60)
    rows = [sources[start : start + per_row] for start in range(0, len(sources), per_row)]
    heights = []
    for row in rows:
        shapes = sum(source.width / source.height for source in row)
        heights.append(min(width, max(8, round((width - gap * (len(row) + 1)) / shapes))))
    paper = Image.new(
        "RGB", (width, sum(heights) + gap * (len(rows) + 1)), mix((247, 243, 234), _mean_colour(sources[0]), 0.12)
    )
    top = gap
    for row, height in zip(rows, heights, strict=True):
        left = gap
        for number, source in enumerate(row):
            wide = round(source.width / source.height * height) if number < len(row) - 1 else width - gap - left
            print_image = _crop_to_fit(source, (max(8, wide), height))
            _paste_print(paper, print_image, left, top, gap)
            left += print_image.width + gap
        top += height + gap
    return paper


def _paste_print(paper: Image.Image, image: Image.Image, left: int, top: int, gap: int) -> None:
    """Paste an image and, below it, a soft shadow."""
    shadow = Image.new("L", (image.width + gap * 2, image.height + gap * 2))
    shadow.paste(95, (gap, gap, gap + image.width, gap + image.height))
    soft = shadow.filter(ImageFilter.BoxBlur(gap / 3)).filter(ImageFilter.BoxBlur(gap / 3))
    paper.paste((60, 50, 46), (left - gap + gap // 5, top - gap + gap // 4), soft)
    paper.paste(image, (left, top))


def _mean_colour(image: Image.Image) -> tuple[int, int, int]:
    red, green, blue = image.resize((1, 1), Image.Resampling.BOX).tobytes()
    return red, green, blue


def _crop_to_fit(image: Image.Image, size: Size) -> Image.Image:
    """The image at exactly this size: cropped around its middle to the shape, then scaled."""
    if image.size == size:
        return image
    shape = size[0] / size[1]
    wide, high = image.width, image.height
    if wide / high > shape:
        wide = max(1, round(high * shape))
    else:
        high = max(1, round(wide / shape))
    left, top = (image.width - wide) // 2, (image.height - high) // 2
    return scale(image.crop((left, top, left + wide, top + high)), size)


def _extend_to(image: Image.Image, size: Size, rng: random.Random) -> Image.Image:
    """The whole image at exactly this size: where the shape differs, its edges are continued."""
    factor = min(size[0] / image.width, size[1] / image.height)
    wide, high = max(1, round(image.width * factor)), max(1, round(image.height * factor))
    left, top = (size[0] - wide) // 2, (size[1] - high) // 2
    if max(left, top) <= min(size) // 40 or image.mode != "RGB":
        return _crop_to_fit(image, size)
    inner = scale(image, (wide, high))
    edge = max(1, min(wide, high) // 60)
    ground = Image.new("RGB", size)
    if left:
        beside = ((0, 0, edge, high), (wide - edge, 0, wide, high))
        strips = [inner.crop(box).resize((1, high), Image.Resampling.BOX) for box in beside]
        ground.paste(strips[0].resize((left, high)), (0, 0))
        ground.paste(strips[1].resize((size[0] - left - wide, high)), (left + wide, 0))
    else:
        beside = ((0, 0, wide, edge), (0, high - edge, wide, high))
        strips = [inner.crop(box).resize((wide, 1), Image.Resampling.BOX) for box in beside]
        ground.paste(strips[0].resize((wide, top)), (0, 0))
        ground.paste(strips[1].resize((wide, size[1] - top - high)), (0, top + high))
    ground.paste(inner, (left, top))
    soft = heal.add_grain(ground.filter(ImageFilter.GaussianBlur(min(size) / 50)), rng)
    soft.paste(inner, (left, top), _feather_mask((wide, high), edge, upright=bool(left)))
    return soft


def _feather_mask(size: Size, edge: int, *, upright: bool) -> Image.Image:
    """White, and fading to black at two opposite sides."""
    inset = (edge, 0, size[0] - edge, size[1]) if upright else (0, edge, size[0], size[1] - edge)
    shape = Image.new("L", size)
    shape.paste(255, inset)
    return shape.filter(ImageFilter.BoxBlur((edge / 2, 0) if upright else (0, edge / 2)))
