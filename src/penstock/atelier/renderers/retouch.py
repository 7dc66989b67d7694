"""Edit uploaded pictures as the words ask: grade, blur, draw over, remove, add, combine; only within the mask."""

from __future__ import annotations

import math
import random

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from penstock.atelier.renderers import canvas, creatures, effects, heal, landmarks, scene, sky, things
from penstock.atelier.renderers.canvas import Layer, Scene, Size
from penstock.atelier.renderers.enlarge import scale
from penstock.atelier.renderers.palette import PALETTES, Palette, choose, mix
from penstock.atelier.renderers.sketch import check_size
from penstock.atelier.renderers.words import Brief, Subject, read
from penstock.imaging import convert

Box = tuple[int, int, int, int]
MOST_IMAGES = 16
_ADDING = frozenset({"add", "put", "place", "insert", "draw", "include", "with", "give", "paint"})
_REMOVING = frozenset({"remove", "erase", "delete", "clean", "clear", "heal", "inpaint", "rid"})
_BEHIND = frozenset({"background", "backdrop", "behind"})
_BLENDING = frozenset({"blend", "exposure", "overlay", "merge", "mix", "fuse"})


def edit(
    images: list[bytes],
    prompt: str,
    mask: bytes | None = None,
    width: int | None = None,
    height: int | None = None,
    seed: int = 0,
) -> convert.ImageFile:
    """A PNG; as large as the first image where no size is asked."""
    if not 1 <= len(images) <= MOST_IMAGES:
        raise convert.BadImage(f"Send from 1 to {MOST_IMAGES} images.")
    sources = [convert.decode(data) for data in images]
    hole = _hole(sources[0], mask)
    shape = width / height if width and height else None
    made = _edited(sources, hole, prompt, seed, shape)
    size = (width or made.width, height or made.height)
    if size != made.size:
        check_size(*size)
    return convert.encode(_framed(made, size, canvas.dice(prompt, seed, "frame")), "png")


def _hole(source: Image.Image, mask: bytes | None) -> Image.Image | None:
    """White where to edit: by the mask, else where the image itself is fully transparent, else everywhere."""
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


def _edited(
    sources: list[Image.Image], hole: Image.Image | None, prompt: str, seed: int, shape: float | None
) -> Image.Image:
    first = sources[0]
    chance = canvas.dice(prompt, seed, "retouch")
    ground = first.convert("RGB")
    brief = read(prompt)
    words = set(brief.words)
    if len(sources) > 1 and hole is None:
        combined = _combined([source.convert("RGB") for source in sources], words, shape)
        palette = choose(brief.palette, (), chance)
        return _styled(combined, brief, words - _ADDING, palette, chance, light=bool(words & _ADDING))
    if len(sources) > 1 and hole is not None:
        changed = _filled_with(ground, sources[1].convert("RGB"), hole)
    else:
        changed = _changed(ground, hole, prompt, words, seed, chance)
    if hole is None:
        if first.mode == "RGBA":
            changed.putalpha(first.getchannel("A"))
        return changed
    return _within(first, changed, hole)


def _within(first: Image.Image, changed: Image.Image, hole: Image.Image) -> Image.Image:
    """Outside the mask every pixel stays as it was; the seam is softened on the inner side only."""
    reach = max(1.0, min(first.size) / 200)
    soft = hole.filter(ImageFilter.MinFilter(3)).filter(ImageFilter.GaussianBlur(reach))
    inner = ImageChops.darker(soft, hole)
    if first.mode == "RGBA":  # there is nothing below a transparent pixel that the new ones could run into
        inner = Image.composite(inner, hole, first.getchannel("A").point(lambda value: 255 if value else 0))
        changed = changed.convert("RGBA")
    return Image.composite(changed.convert(first.mode), first, inner)


def _changed(
    image: Image.Image,
    hole: Image.Image | None,
    prompt: str,
    words: set[str],
    seed: int,
    chance: random.Random,
) -> Image.Image:
    """The words decide: first what goes, then what comes, then how it looks."""
    brief = read(prompt)
    palette = choose(brief.palette, (), chance)
    adding = bool(words & _ADDING)
    drawable = bool(brief.scenery or brief.creatures or brief.placed or brief.things or brief.sky)
    result = image
    touched = False
    if hole is not None and words & _REMOVING:
        result, touched = heal.fill(result, hole, chance), True
    elif drawable and (words & _BEHIND if hole is None else not adding):
        painted = canvas.finish(canvas.flatten(scene.compose(prompt, "", image.size, seed)), chance)
        result, touched = painted if hole else Image.composite(image, painted, _middle(image.size)), True
    if adding and drawable and not touched:
        result, touched = _added(result, brief, palette, hole, chance), True
    styled = _styled(result, brief, words - _ADDING, palette, chance, light=touched)
    if styled is result and not touched:
        return effects.improve(image, chance)
    return styled


def _styled(
    image: Image.Image, brief: Brief, words: set[str], palette: Palette, chance: random.Random, *, light: bool
) -> Image.Image:
    """Every look that is asked for, each once; `light` when something was painted that should stay recognisable."""
    result = image
    wanted = {effects.EFFECTS[word]: None for word in sorted(words) if word in effects.EFFECTS}
    if {"black", "white"} <= words:
        wanted[effects.grey] = None
    elif brief.colours and not light:
        result = effects.tinge(result, brief.colours[0])
    for effect in wanted:
        result = effect(result, chance)
    if (
        brief.palette in PALETTES
        and not light
        and brief.palette not in ("mono", "neon", "day")
        and effects.night not in wanted
    ):
        result = effects.horizon_light(effects.grade(result, palette, 0.25 if wanted else 0.42), palette)
    weather = [subject for subject in brief.sky if subject.name in ("snow", "rain", "fog", "lightning")]
    if weather and not light:
        result = _over(result, sky.paint_weather(brief, palette, image.size, chance))
    return result


def _over(image: Image.Image, layers: list[Layer]) -> Image.Image:
    below = Layer(image.convert("RGBA"))
    return canvas.flatten(Scene(*image.size, (below, *layers)))


def _filled_with(image: Image.Image, other: Image.Image, hole: Image.Image) -> Image.Image:
    """The second picture, fitted into the masked area of the first."""
    box = hole.getbbox() or (0, 0, *image.size)
    result = image.copy()
    result.paste(_fitted(other, (box[2] - box[0], box[3] - box[1])), (box[0], box[1]))
    return result


def _added(
    image: Image.Image, brief: Brief, palette: Palette, hole: Image.Image | None, chance: random.Random
) -> Image.Image:
    """Elements of the sketcher, in the masked area or where such a thing would be."""
    size = image.size
    names = {subject.name for subject in brief.sky}
    layers = sky.paint_wonders(names, palette, (size[0], round(size[1] * 0.75)), chance)
    box = hole.getbbox() if hole is not None else None
    for subject in brief.sky:
        if subject.name in ("sun", "moon"):
            layers += _luminary(subject, brief, palette, box, size, chance)
    if "clouds" in names:
        layers += sky.paint_clouds(brief, palette, (size[0], round(size[1] * 0.6)), chance)
    standing = [subject for subject in (*brief.creatures, *brief.placed, *brief.things) for _ in range(subject.count)]
    if brief.has("forest"):
        standing.append(Subject("oak", brief.colours[0] if brief.colours else None))
    for number, subject in enumerate(standing[:9]):
        layers.append(_figure(subject, number, len(standing), box, size, chance))
    return _over(image, [*layers, *sky.paint_weather(brief, palette, size, chance)])


def _luminary(
    subject: Subject, brief: Brief, palette: Palette, box: Box | None, size: Size, chance: random.Random
) -> list[Layer]:
    is_moon = subject.name == "moon"
    if box is not None:
        centre = ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
        radius = min(box[2] - box[0], box[3] - box[1]) * 0.3
    else:
        centre = (size[0] * chance.choice((0.25, 0.75)), size[1] * 0.2)
        radius = min(size) * 0.065
    colour = subject.colour or mix(PALETTES["night" if is_moon else "golden"].light, (255, 255, 255), 0.2)
    return sky.paint_light(brief, sky.Light(centre, radius, colour, is_moon), size, palette)


def _figure(subject: Subject, number: int, count: int, box: Box | None, size: Size, chance: random.Random) -> Layer:
    if box is None:
        side = min(size) * 0.36 / math.sqrt(count)
        floats = subject.name in landmarks.AIRBORNE or subject.name == "butterfly"
        box = (0, 0, size[0], round(size[1] * 0.6)) if floats else (0, round(size[1] * 0.5), size[0], size[1])
    else:
        side = min(box[3] - box[1], (box[2] - box[0]) / count) * 0.98
    x = box[0] + (box[2] - box[0]) * (number + 0.5) / count
    y = box[3] - side * 0.5 if subject.name not in landmarks.AIRBORNE else (box[1] + box[3]) / 2
    draw = creatures.portrait if subject.name in creatures.KNOWN else things.sprite
    picture = draw(subject.name, max(8, round(side)), subject.colour, chance)
    return Layer(picture, round(x - picture.width / 2), round(y - picture.height / 2))


def _middle(size: Size) -> Image.Image:
    """White where a picture's subject usually is, softly black around it."""
    shape = Image.new("L", size)
    wide, high = size[0] * 0.36, size[1] * 0.42
    across, down = size[0] * 0.5, size[1] * 0.58
    ImageDraw.Draw(shape).ellipse((across - wide, down - high, across + wide, down + high * 1.6), fill=255)
    return shape.filter(ImageFilter.GaussianBlur(min(size) * 0.05))


def _combined(sources: list[Image.Image], words: set[str], shape: float | None) -> Image.Image:
    """Blended if the words say so, or set into the first; else laid out on paper like prints in an album."""
    first = sources[0]
    if words & _BLENDING:
        result = first
        for number, other in enumerate(sources[1:], 2):
            result = Image.blend(result, _fitted(other, first.size), 1 / number)
        return result
    return _set_in(first, sources[1:]) if words & _ADDING else _album(sources, shape)


def _set_in(first: Image.Image, others: list[Image.Image]) -> Image.Image:
    """What is in the middle of the others, side by side along the bottom of the first."""
    result = first.copy()
    share = first.width / len(others)
    side = round(min(share * 0.9, first.height * 0.68))
    for number, other in enumerate(others):
        left = round(share * (number + 0.5) - side / 2)
        result.paste(_fitted(other, (side, side)), (left, first.height - side), _middle((side, side)))
    return result


def _album(sources: list[Image.Image], shape: float | None) -> Image.Image:
    """In as many rows as fit the shape best; what is left of that is paper."""
    sheets = [_sheet(sources, per_row) for per_row in range(1, min(6, len(sources)) + 1)]
    wanted = shape or 4 / 3
    sheet = min(sheets, key=lambda one: abs(math.log(one.width / one.height / wanted)))
    if shape is None:
        return sheet
    size = (max(sheet.width, round(sheet.height * shape)), max(sheet.height, round(sheet.width / shape)))
    paper = Image.new("RGB", size, sheet.getpixel((0, 0)))
    paper.paste(sheet, ((size[0] - sheet.width) // 2, (size[1] - sheet.height) // 2))
    return paper


def _sheet(sources: list[Image.Image], per_row: int) -> Image.Image:
    """Rows of prints, each row filled from edge to edge, nothing cropped."""
    width = max(640, min(2048, sources[0].width))
    gap = max(4, width // 60)
    rows = [sources[start : start + per_row] for start in range(0, len(sources), per_row)]
    heights = []
    for row in rows:
        shapes = sum(source.width / source.height for source in row)
        heights.append(min(width, max(8, round((width - gap * (len(row) + 1)) / shapes))))
    paper = Image.new(
        "RGB", (width, sum(heights) + gap * (len(rows) + 1)), mix((247, 243, 234), _mean(sources[0]), 0.12)
    )
    top = gap
    for row, height in zip(rows, heights, strict=True):
        left = gap
        for number, source in enumerate(row):
            wide = round(source.width / source.height * height) if number < len(row) - 1 else width - gap - left
            print_ = _fitted(source, (max(8, wide), height))
            _lay(paper, print_, left, top, gap)
            left += print_.width + gap
        top += height + gap
    return paper


def _lay(paper: Image.Image, picture: Image.Image, left: int, top: int, gap: int) -> None:
    """With the soft shadow that a print throws."""
    shadow = Image.new("L", (picture.width + gap * 2, picture.height + gap * 2))
    shadow.paste(95, (gap, gap, gap + picture.width, gap + picture.height))
    soft = shadow.filter(ImageFilter.BoxBlur(gap / 3)).filter(ImageFilter.BoxBlur(gap / 3))
    paper.paste((60, 50, 46), (left - gap + gap // 5, top - gap + gap // 4), soft)
    paper.paste(picture, (left, top))


def _mean(image: Image.Image) -> tuple[int, int, int]:
    red, green, blue = image.resize((1, 1), Image.Resampling.BOX).tobytes()
    return red, green, blue


def _fitted(image: Image.Image, size: Size) -> Image.Image:
    """Exactly this size: cropped around the middle to the shape, then scaled."""
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


def _framed(image: Image.Image, size: Size, chance: random.Random) -> Image.Image:
    """Exactly this size and nothing lost: where the shape is another one, the picture's edges go on."""
    factor = min(size[0] / image.width, size[1] / image.height)
    wide, high = max(1, round(image.width * factor)), max(1, round(image.height * factor))
    left, top = (size[0] - wide) // 2, (size[1] - high) // 2
    if max(left, top) <= min(size) // 40 or image.mode != "RGB":
        return _fitted(image, size)
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
    soft = heal.grained(ground.filter(ImageFilter.GaussianBlur(min(size) / 50)), chance)
    soft.paste(inner, (left, top), _feathered((wide, high), edge, upright=bool(left)))
    return soft


def _feathered(size: Size, edge: int, *, upright: bool) -> Image.Image:
    """White, and fading to black at two opposite sides."""
    inset = (edge, 0, size[0] - edge, size[1]) if upright else (0, edge, size[0], size[1] - edge)
    shape = Image.new("L", size)
    shape.paste(255, inset)
    return shape.filter(ImageFilter.BoxBlur((edge / 2, 0) if upright else (0, edge / 2)))
