"""Read dimensions, check and convert images, outside the event loop."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import msgspec
from PIL import Image, ImageCms, ImageDraw, ImageOps

from penstock.imaging.formats import CONTENT_TYPES, OUTPUT_FORMATS, OutputFormat
from penstock.imaging.sniff import Sniffed, sniff

# Everything that decodes runs in a child (see pool.py). On the event loop only `sniff`, `unchanged` and
# `same_dimensions` are used: they read headers and touch no pixel.

Polarity = Literal["alpha", "white", "black"]

MOST_PIXELS = 40_000_000
INPUT_FORMATS = ("png", "jpeg", "webp")
LOSSY = frozenset({"jpeg", "webp", "avif"})
# A picture with a longer side keeps the format it came in: ours to avoid slow AVIF, the formats' own limits otherwise.
LONGEST_SIDE = {"avif": 1600, "webp": 16_383, "jpeg": 65_500, "gif": 65_535}
# Facts about pixels, which Pillow keeps beside facts about people and places; files with only these go through as is.
_HARMLESS = frozenset({"transparency", "gamma", "srgb", "chromaticity", "dpi", "aspect", "interlace", "background"})
_JFIF = frozenset({"jfif", "jfif_version", "jfif_unit", "jfif_density", "adobe", "adobe_transform", "progressive"})
_WEBP = frozenset({"loop", "duration", "timestamp"})
_ORIENTATION = 0x0112
# JPEG: segments that tell more than the picture (all but JFIF and Adobe's colour transform), and bytes after 0xFF.
_TELLING = frozenset({*range(0xE1, 0xEE), 0xEF, 0xFE})
_NO_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})
_NOT_MARKERS = frozenset({0x00, *range(0xD0, 0xD8), 0xFF})

Image.MAX_IMAGE_PIXELS = MOST_PIXELS


class BadImage(ValueError):
    """The bytes are not a picture that we take; the message is for the caller."""

    kind: ClassVar[str] = "refused"


class Measure(msgspec.Struct, frozen=True):
    format: str
    width: int
    height: int
    frames: int
    has_alpha: bool


class ImageFile(msgspec.Struct, frozen=True):
    data: bytes
    content_type: str
    width: int
    height: int


def measure(data: bytes) -> Measure:
    """Format, upright size, frames and transparency, from the headers alone."""
    with _opened(data, OUTPUT_FORMATS) as image:
        width, height = image.size
        # Asking a PNG for EXIF it has not shown yet would decode all of it.
        if "exif" in image.info and image.getexif().get(_ORIENTATION, 1) >= 5:
            width, height = height, width
        return Measure(_format(image), width, height, _frames(image), image.has_transparency_data)


def unchanged(data: bytes, output_format: OutputFormat, output_compression: int = 100) -> Sniffed | None:
    """What the bytes are, if `convert` would hand back the same; so that most files need no child at all."""
    found = sniff(data)
    if found is None or found.width == 0:
        return None
    too_long = max(found.width, found.height) > LONGEST_SIDE.get(output_format, MOST_PIXELS)
    same = found.content_type == CONTENT_TYPES[output_format]
    return found if too_long or (same and (output_compression == 100 or output_format not in LOSSY)) else None


def convert(data: bytes, output_format: OutputFormat, output_compression: int = 100) -> ImageFile:
    """The picture in another format, upright and without metadata; the same bytes where nothing has to change."""
    _check_output(output_format, output_compression)
    found = unchanged(data, output_format, output_compression)
    if found is not None:
        return ImageFile(data, *found)
    return encode(decode(data, OUTPUT_FORMATS), output_format, output_compression)


def normalise_input(data: bytes) -> ImageFile:
    """A caller's upload, fully decoded once, upright and free of metadata; in its own format."""
    with _opened(data, INPUT_FORMATS) as image:
        if _frames(image) != 1:
            raise BadImage("The image is animated; send a single frame.")
        name = _format(image)
        image.load()
        if _is_clean(image, data):
            return ImageFile(data, CONTENT_TYPES[name], *image.size)
        is_upright = image.getexif().get(_ORIENTATION, 1) == 1
        if image.format == "JPEG" and image.mode != "CMYK" and is_upright and "icc_profile" not in image.info:
            return ImageFile(_bare_jpeg(data), CONTENT_TYPES[name], *image.size)
        pixels = upright(image)
    if name == "webp" and b"VP8L" in data[:64]:
        return _saved(pixels, "webp", lossless=True)
    return encode(pixels, name, 96)


def mask_for(data: bytes, polarity: Polarity) -> ImageFile:
    """A caller's mask, alpha 0 where to edit, in the polarity a provider wants: `white` and `black` name the edit."""
    with _opened(data, ("png",)) as image:
        if not image.has_transparency_data:
            raise BadImage("The mask has no transparency: fully transparent pixels mark the area to edit.")
        alpha = image.convert("RGBA").getchannel("A")
    keep = alpha.point(lambda value: 255 if value else 0)
    if polarity == "black":
        return _saved(keep, "png")
    if polarity == "white":
        return _saved(ImageOps.invert(keep), "png")
    return _saved(Image.merge("RGBA", (keep, keep, keep, keep)), "png")


def same_dimensions(first: bytes, second: bytes) -> bool:
    """Whether two normalised pictures (a source and its mask) cover each other pixel by pixel."""
    one, other = sniff(first), sniff(second)
    return one is not None and other is not None and one[1:] == other[1:]


def decode(data: bytes, formats: tuple[str, ...] = INPUT_FORMATS) -> Image.Image:
    """The first frame as upright sRGB pixels, mode L, RGB or RGBA."""
    with _opened(data, formats) as image:
        return upright(image)


def upright(image: Image.Image) -> Image.Image:
    """Turned as its EXIF says, in sRGB, mode L, RGB or RGBA, carrying no metadata."""
    profile = image.info.get("icc_profile")
    turned = ImageOps.exif_transpose(image)
    has_alpha = turned.has_transparency_data
    if turned.mode.startswith("I"):  # 16 bits; Pillow would cut off the bright part
        turned = turned.convert("I").point([value >> 8 for value in range(1 << 16)], "L")
    if isinstance(profile, bytes) and turned.mode in ("RGB", "RGBA", "CMYK", "L"):
        turned = _to_srgb(turned, profile)
    grey = turned.mode in ("1", "L")
    plain = turned.convert("RGBA" if has_alpha else "L" if grey else "RGB")
    if has_alpha and plain.getchannel("A").getextrema() == (255, 255):  # an alpha channel that hides nothing only costs
        plain = plain.convert("RGB")
    plain.info = {}
    return plain


def encode(image: Image.Image, output_format: str, output_compression: int = 100) -> ImageFile:
    """Quality 1..100 counts for the lossy formats; 100 also keeps colour at full resolution."""
    quality = output_compression
    fine = quality >= 90
    if output_format == "jpeg":
        # Not optimised: Pillow guesses the space for that, and on noise at quality 100 it guesses too little and fails.
        return _saved(_on_white(image), "jpeg", quality=quality, subsampling=0 if fine else 2)
    if output_format == "webp":
        # More effort takes twice as long and gains little, except at the highest quality, where it gains a third.
        effort = 4 if quality == 100 and image.width * image.height <= 8_000_000 else 2
        return _saved(image, "webp", quality=quality, method=effort, alpha_quality=100 if fine else 80)
    if output_format == "avif":
        # One thread: the pool already has a child for every core.
        return _saved(image, "avif", quality=quality, subsampling="4:4:4" if fine else "4:2:0", speed=8, max_threads=1)
    if output_format == "gif":
        return _gif(image)
    return _saved(image, "png", compress_level=1)  # a twentieth larger than usual, twice as soon


def sample_image(width: int, height: int) -> bytes:
    """A PNG of a grey disc on white, for trying a provider that needs an image."""
    image = Image.new("RGB", (width, height), "white")
    ImageDraw.Draw(image).ellipse((width // 4, height // 4, width * 3 // 4, height * 3 // 4), "grey")
    return encode(image, "png").data


def _check_output(output_format: str, output_compression: int) -> None:
    if output_format not in CONTENT_TYPES:
        raise BadImage(f"Unknown output format; known are {', '.join(OUTPUT_FORMATS)}.")
    if not 1 <= output_compression <= 100:
        raise BadImage("The output compression must be from 1 to 100.")


@contextmanager
def _opened(data: bytes, formats: tuple[str, ...]) -> Iterator[Image.Image]:
    """An image whose size was checked before any pixel; every fault of the bytes found inside becomes BadPicture."""
    names = ", ".join(formats)
    found = sniff(data)
    if found is None or found.content_type.removeprefix("image/") not in formats:
        raise BadImage(f"The file is not one of {names}.")
    if found.width * found.height > MOST_PIXELS:
        raise BadImage(f"The image has more than {MOST_PIXELS // 1_000_000} million pixels.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=[name.upper() for name in formats]) as image:
                yield image
    except (BadImage, MemoryError):
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise BadImage(f"The image has more than {MOST_PIXELS // 1_000_000} million pixels.") from None
    except Exception as error:  # decoders raise whatever they like on broken files
        raise BadImage(f"The file is a broken {found.content_type.removeprefix('image/')} picture.") from error


def _format(image: Image.Image) -> str:
    # Phones append a second view to their JPEGs, which makes them "MPO"; the first view is the photograph.
    name = (image.format or "").lower()
    return "jpeg" if name == "mpo" else name


def _frames(image: Image.Image) -> int:
    return 1 if image.format == "MPO" else int(getattr(image, "n_frames", 1))


def _is_clean(image: Image.Image, data: bytes) -> bool:
    """Whether a file holds pixels and nothing else that Pillow can see, not even behind its end."""
    if set(image.info) - _HARMLESS - _JFIF - _WEBP or image.format == "MPO":
        return False
    if getattr(image, "text", None) or getattr(image, "private_chunks", None):
        return False
    if image.format == "WEBP":
        return int.from_bytes(data[4:8], "little") + 8 == len(data)
    return data.endswith(b"\xff\xd9" if image.format == "JPEG" else b"IEND\xaeB`\x82")


def _bare_jpeg(data: bytes) -> bytes:
    """A JPEG that was decoded before, less its comments and application segments: losing them must cost no quality."""
    kept = [data[:2]]
    start = 2
    while start + 4 <= len(data) and data[start + 1] != 0xD9:
        marker = data[start + 1]
        end = start + 2 + (0 if marker in _NO_LENGTH else int.from_bytes(data[start + 2 : start + 4], "big"))
        if marker == 0xDA:  # a scan: its pixels go on to the next marker that is neither stuffing nor restart
            end = _next_marker(data, end)
        if marker not in _TELLING:
            kept.append(data[start:end])
        start = _next_marker(data, end)
    return b"".join([*kept, b"\xff\xd9"])


def _next_marker(data: bytes, start: int) -> int:
    while (start := data.find(b"\xff", start)) >= 0:
        if start + 1 < len(data) and data[start + 1] not in _NOT_MARKERS:
            return start
        start += 1
    return len(data)


def _to_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        target = ImageCms.createProfile("sRGB")
        mode = "RGB" if image.mode == "CMYK" else image.mode
        converted = None if mode == "L" else ImageCms.profileToProfile(image, source, target, outputMode=mode)
    except (ImageCms.PyCMSError, OSError, ValueError):
        converted = None  # a broken or foreign profile: the numbers as they are serve better than no picture
    return image if converted is None else converted


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode != "RGBA":
        return image
    ground = Image.new("RGB", image.size, "white")
    ground.paste(image, mask=image.getchannel("A"))
    return ground


def _gif(image: Image.Image) -> ImageFile:
    colours = 255 if image.mode == "RGBA" else 256
    solid = _on_white(image).convert("RGB")
    # Colours chosen from a smaller copy are as good and several times sooner found.
    palette = solid.reduce(4).quantize(colours) if min(solid.size) > 512 else solid.quantize(colours)
    solid = solid.quantize(colours, palette=palette, dither=Image.Dither.FLOYDSTEINBERG)
    if image.mode != "RGBA":
        return _saved(solid, "gif", optimize=False)
    # One palette entry means transparent; soft edges become hard ones, as GIF has no other.
    solid.paste(255, mask=image.getchannel("A").point(lambda value: 0 if value >= 128 else 255))
    return _saved(solid, "gif", transparency=255, optimize=False)


def _saved(image: Image.Image, name: str, **options: Any) -> ImageFile:
    buffer = io.BytesIO()
    image.save(buffer, format=name.upper(), **options)
    return ImageFile(buffer.getvalue(), CONTENT_TYPES[name], *image.size)
