"""Enlarge an image: Lanczos in linear light, then a little sharpening."""

from __future__ import annotations

from collections.abc import Iterator

from PIL import Image, ImageFilter, ImageMath

from penstock.imaging import convert
from penstock.imaging.formats import MAX_PIXELS
from penstock_atelier.renderers.canvas import Size

MIN_FACTOR = 1.0
MAX_FACTOR = 8.0
_BAND_PIXELS = 2_000_000  # worked on at once, so that the largest result needs little more memory than itself

# Averaging display values makes fine bright detail darker, so resampling works on amounts of light, 0 to 65535.
_TO_LIGHT = [
    65535 * (value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4) for value in range(256)
]


def _display_value(light: int) -> int:
    share = light / 65535
    return round(255 * (12.92 * share if share <= 0.0031308 else 1.055 * share ** (1 / 2.4) - 0.055))


_TO_DISPLAY = [_display_value(light) for light in range(65536)]


def enlarge_image(data: bytes, factor: float) -> convert.ImageFile:
    """A PNG with each side `factor` times as long. Raises BadImage for a factor or result outside the limits."""
    if not MIN_FACTOR <= factor <= MAX_FACTOR:
        raise convert.BadImage(f"The scale factor must be from {MIN_FACTOR:g} to {MAX_FACTOR:g}.")
    source = convert.decode(data)
    width, height = round(source.width * factor), round(source.height * factor)
    if width * height > MAX_PIXELS:
        millions = MAX_PIXELS // 1_000_000
        raise convert.BadImage(f"{width}x{height} would be more than {millions} million pixels; use a smaller factor.")
    return convert.encode(scale(source, (width, height)), "png")


def scale(image: Image.Image, size: Size) -> Image.Image:
    """An L, RGB or RGBA image at another size, larger or smaller."""
    if image.size == size:
        return image
    if image.mode != "RGBA":
        resampled = Image.merge(image.mode, [_resample(channel, None, size) for channel in image.split()])
        return _sharpen(resampled, image.size)
    # The colour of transparent pixels must not show at the edge of visible ones: colours are multiplied by alpha before
    # resampling and divided by it after.
    alpha = image.getchannel("A")
    colours = Image.merge("RGB", [_resample(channel, alpha, size) for channel in image.split()[:3]])
    wide = alpha.resize(size, Image.Resampling.LANCZOS)
    solid = wide.point(lambda value: 255 if value == 255 else 0).filter(ImageFilter.MinFilter(5))
    whole = Image.composite(_sharpen(colours, image.size), colours, solid)
    whole.putalpha(wide)
    return whole


def _resample(channel: Image.Image, alpha: Image.Image | None, size: Size) -> Image.Image:
    light = channel.point(_TO_LIGHT, "F")
    weight = None if alpha is None else alpha.point([value / 255 for value in range(256)], "F")
    if weight is not None:
        light = ImageMath.lambda_eval(lambda of: of["light"] * of["weight"], light=light, weight=weight)
    result = Image.new("L", size)
    for top, bottom in _bands(size):
        box = (0.0, top * channel.height / size[1], float(channel.width), bottom * channel.height / size[1])
        band = light.resize((size[0], bottom - top), Image.Resampling.LANCZOS, box=box)
        if weight is not None:
            share = weight.resize((size[0], bottom - top), Image.Resampling.LANCZOS, box=box)
            band = ImageMath.lambda_eval(lambda of: of["band"] / of["max"](of["share"], 0.004), band=band, share=share)
        # Lanczos overshoots at edges; the table clips.
        result.paste(band.convert("I").point(_TO_DISPLAY, "L"), (0, top))
    return result


def _bands(size: Size) -> Iterator[tuple[int, int]]:
    rows = max(1, _BAND_PIXELS // size[0])
    for top in range(0, size[1], rows):
        yield top, min(size[1], top + rows)


def _sharpen(image: Image.Image, before: Size) -> Image.Image:
    factor = image.width / before[0]
    if factor <= 1.05:
        return image
    return image.filter(ImageFilter.UnsharpMask(0.5 + 0.35 * min(4.0, factor), percent=60, threshold=2))
