"""Effects for a whole image: light, colour, lines and brush; each is a function from image to image."""

from __future__ import annotations

import random
from collections.abc import Callable

from PIL import Image, ImageChops, ImageDraw, ImageEnhance, ImageFilter, ImageMath, ImageOps

from penstock_atelier.renderers.canvas import gradient, noise, tone_curve
from penstock_atelier.renderers.edit_words import EFFECT_WORDS
from penstock_atelier.renderers.palette import Colour, Palette, lighten, mix, rgb

Effect = Callable[[Image.Image, random.Random], Image.Image]


def grade(image: Image.Image, palette: Palette, strength: float = 0.5) -> Image.Image:
    """Colour the image with a palette: dark colours in the shadows, bright ones in the lights."""
    grey = ImageOps.grayscale(image)
    toned = ImageOps.colorize(grey, lighten(palette.sky[0], -0.06), palette.light, mid=palette.sky[2])
    return Image.blend(image, toned, strength)


def tint_image(image: Image.Image, colour: Colour) -> Image.Image:
    """Colour the image with one colour; light and shade stay."""
    grey = ImageOps.grayscale(image)
    toned = ImageOps.colorize(grey, mix(colour, (8, 8, 16), 0.82), mix(colour, (255, 252, 246), 0.82), mid=colour)
    return Image.blend(image, toned, 0.55)


def _channels(image: Image.Image, red: float, green: float, blue: float) -> Image.Image:
    tables = [min(255, round(value * factor)) for factor in (red, green, blue) for value in range(256)]
    return image.point(tables)


def warm(image: Image.Image, rng: random.Random) -> Image.Image:
    return _channels(image, 1.1, 1.01, 0.84)


def cool(image: Image.Image, rng: random.Random) -> Image.Image:
    return _channels(image, 0.86, 0.99, 1.12)


def night(image: Image.Image, rng: random.Random) -> Image.Image:
    """Make day look like night: darker, bluer, less saturated."""
    dark = (
        ImageEnhance.Color(image)
        .enhance(0.55)
        .point([round(255 * (value / 255) ** 1.5 * 0.62) for value in range(256)] * 3)
    )
    return ImageChops.screen(_channels(dark, 0.62, 0.8, 1.3), Image.new("RGB", image.size, (4, 8, 24)))


def grey(image: Image.Image, rng: random.Random) -> Image.Image:
    return ImageOps.autocontrast(ImageOps.grayscale(image), cutoff=0.5).convert("RGB")


def sepia(image: Image.Image, rng: random.Random) -> Image.Image:
    toned = ImageOps.colorize(ImageOps.grayscale(image), rgb("1f120a"), rgb("fbefd6"), mid=rgb("9a7650"))
    return vignette(toned, rng)


def blur(image: Image.Image, rng: random.Random) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(max(1.0, min(image.size) / 90)))


def sharpen(image: Image.Image, rng: random.Random) -> Image.Image:
    return image.filter(ImageFilter.UnsharpMask(max(1.0, min(image.size) / 500), percent=130, threshold=2))


def pencil(image: Image.Image, rng: random.Random) -> Image.Image:
    """Pencil lines on paper: grey divided by its own blurred copy."""
    tone = ImageOps.grayscale(image).filter(ImageFilter.MedianFilter(3))
    around = tone.filter(ImageFilter.GaussianBlur(max(1.5, min(image.size) / 160)))
    lines = ImageMath.lambda_eval(
        lambda of: of["convert"](of["min"](of["int"](of["tone"]) * 255 / (of["int"](of["around"]) + 1), 255), "L"),
        tone=tone,
        around=around,
    ).point([round(255 * (value / 255) ** 5.0) for value in range(256)])
    hatching = Image.blend(lines, ImageChops.multiply(lines, tone.point(tone_curve(20, 200))), 0.4)
    paper = noise(rng, image.size, (3, 3), 1).point([238 + value // 22 for value in range(256)])
    return ImageOps.colorize(ImageChops.multiply(hatching, paper), rgb("2a2a33"), rgb("fbf8f0"))


def poster(image: Image.Image, rng: random.Random) -> Image.Image:
    """Flat colours and dark outlines."""
    flat = _smooth(image, 5)
    colours = ImageEnhance.Color(ImageOps.posterize(flat, 3)).enhance(1.35)
    edges = ImageOps.grayscale(flat).filter(ImageFilter.FIND_EDGES).filter(ImageFilter.GaussianBlur(0.8))
    ImageDraw.Draw(edges).rectangle((0, 0, edges.width - 1, edges.height - 1), outline=0, width=3)
    colours.paste((24, 20, 30), mask=edges.point(tone_curve(22, 70, 230)))
    return colours


def _smooth(image: Image.Image, size: int) -> Image.Image:
    """Remove small details, keep edges. Median filters are slow, so large images are filtered small and enlarged."""
    shrink = max(1, round(max(image.size) / 640))
    small = image.reduce(shrink).filter(ImageFilter.MedianFilter(size)).filter(ImageFilter.MedianFilter(5))
    return small.resize(image.size, Image.Resampling.BICUBIC)


def painting(image: Image.Image, rng: random.Random) -> Image.Image:
    """Oil paint on canvas."""
    strokes = _smooth(image, 5)
    lively = ImageEnhance.Color(strokes.filter(ImageFilter.UnsharpMask(3, 140, 2))).enhance(1.2)
    weave = noise(rng, image.size, (max(2, image.width / 160), max(2, image.height / 500)), 2)
    relief = weave.filter(ImageFilter.EMBOSS).point([108 + round((value - 128) * 0.35) + 20 for value in range(256)])
    return ImageChops.overlay(lively, Image.merge("RGB", (relief, relief, relief)))


def watercolour(image: Image.Image, rng: random.Random) -> Image.Image:
    """Pale colours with stains, on white paper."""
    wash = _smooth(image, 7).filter(ImageFilter.GaussianBlur(1.2))
    pale = Image.blend(wash, Image.new("RGB", image.size, rgb("fdf9f1")), 0.24)
    pools = noise(rng, image.size, (image.width / 12, image.height / 12), 4)
    stains = pools.point([236 + value // 14 for value in range(256)])
    return ImageChops.multiply(ImageEnhance.Color(pale).enhance(1.25), Image.merge("RGB", (stains, stains, stains)))


def invert(image: Image.Image, rng: random.Random) -> Image.Image:
    return ImageOps.invert(image)


def brighten(image: Image.Image, rng: random.Random) -> Image.Image:
    return image.point([round(255 * (value / 255) ** 0.72) for value in range(256)] * 3)


def darken(image: Image.Image, rng: random.Random) -> Image.Image:
    return image.point([round(255 * (value / 255) ** 1.5) for value in range(256)] * 3)


def contrast(image: Image.Image, rng: random.Random) -> Image.Image:
    return image.point([round(value * 0.45 + smooth * 0.55) for value, smooth in enumerate(tone_curve(18, 237))] * 3)


def colourful(image: Image.Image, rng: random.Random) -> Image.Image:
    return ImageEnhance.Color(image).enhance(1.55)


def wash_out(image: Image.Image, rng: random.Random) -> Image.Image:
    return ImageEnhance.Color(image).enhance(0.6).point([round(34 + value * 0.83) for value in range(256)] * 3)


def pixels(image: Image.Image, rng: random.Random) -> Image.Image:
    across = max(2, min(image.size) // 48)
    small = image.reduce(across).quantize(24).convert("RGB")
    return small.resize((small.width * across, small.height * across), Image.Resampling.NEAREST).crop(
        (0, 0, *image.size)
    )


def glow(image: Image.Image, rng: random.Random) -> Image.Image:
    """Bright areas shine into what is around them."""
    lights = image.point(tone_curve(110, 255) * 3).filter(ImageFilter.BoxBlur(max(2, min(image.size) / 50)))
    return ImageChops.screen(image, _channels(lights, 0.55, 0.5, 0.5))


def vignette(image: Image.Image, rng: random.Random) -> Image.Image:
    rim = Image.radial_gradient("L").resize(image.size, Image.Resampling.BICUBIC)
    shade = rim.point([255 - round(150 * (value / 255) ** 2.2) for value in range(256)])
    return ImageChops.multiply(image, Image.merge("RGB", (shade, shade, shade)))


def duotone(image: Image.Image, rng: random.Random) -> Image.Image:
    return ImageOps.colorize(ImageOps.grayscale(image), rgb("14062e"), rgb("5ff2e6"), mid=rgb("d0246f"))


def mirror(image: Image.Image, rng: random.Random) -> Image.Image:
    return ImageOps.mirror(image)


def improve(image: Image.Image, rng: random.Random) -> Image.Image:
    """Balance the tones, and add a little colour and sharpness."""
    balanced = Image.blend(image, ImageOps.autocontrast(image, cutoff=0.6, preserve_tone=True), 0.7)
    lively = ImageEnhance.Color(balanced).enhance(1.14)
    return lively.filter(ImageFilter.UnsharpMask(max(1.0, min(image.size) / 400), 45, 3))


def horizon_light(image: Image.Image, palette: Palette) -> Image.Image:
    """Blend the colours of a palette's sky softly over the image, from the top to the bottom."""
    sky = gradient(palette.sky, image.size)
    return Image.blend(image, ImageChops.soft_light(image, sky), 0.6)


_EFFECTS: tuple[Effect, ...] = (
    warm,
    cool,
    night,
    grey,
    sepia,
    blur,
    sharpen,
    pencil,
    poster,
    painting,
    watercolour,
    invert,
    brighten,
    darken,
    contrast,
    colourful,
    wash_out,
    pixels,
    glow,
    vignette,
    duotone,
    mirror,
)
EFFECTS = {word: effect for effect in _EFFECTS for word in EFFECT_WORDS[effect.__name__].split()}
