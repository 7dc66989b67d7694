"""Check, clean and convert images."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import msgspec
from PIL import Image, ImageCms, ImageOps

from penstock.imaging.formats import CONTENT_TYPES, MAX_PIXELS, MAX_SIDE, OUTPUT_FORMATS, OutputFormat, Polarity
from penstock.imaging.sniff import sniff, unconverted

# All of this runs in a child process (see workers.py), because it decodes; `sniff` and `unconverted` only read headers.

# Pixels times scans of a JPEG: 25 scans of the largest image. Encoders write 1, or about 10 in a progressive file.
MAX_SCANNED_PIXELS = 25 * MAX_PIXELS
INPUT_FORMATS = ("png", "jpeg", "webp")
PROVIDER_FORMATS = (*OUTPUT_FORMATS, "bmp")
# What Pillow reports about pixels; a file that has no other metadata is used as it is.
_PIXEL_METADATA = frozenset(
    {"transparency", "gamma", "srgb", "chromaticity", "dpi", "aspect", "interlace", "background"}
)
_JFIF_METADATA = frozenset(
    {"jfif", "jfif_version", "jfif_unit", "jfif_density", "adobe", "adobe_transform", "progressive"}
)
_WEBP_METADATA = frozenset({"loop", "duration", "timestamp"})
_ORIENTATION = 0x0112
_SHRUNK_SIDE_MAX = 8192
_SHRUNK_QUALITIES = (95, 85)
# JPEG segments with metadata: all application segments but JFIF and Adobe's colour transform, and comments.
_METADATA_SEGMENTS = frozenset({*range(0xE1, 0xEE), 0xEF, 0xFE})
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # neither stuffing nor restart nor padding
_START_OF_SCAN = 0xDA
_END_OF_IMAGE = 0xD9

Image.MAX_IMAGE_PIXELS = MAX_PIXELS


class BadImage(ValueError):
    """The bytes are not an image that can be used; the message is shown to the caller."""

    kind: ClassVar[str] = "refused"


class Grid(msgspec.Struct, frozen=True):
    """The pixels of a tiny copy of an image: a byte each for red, green and blue, row by row."""

    data: bytes


class ImageFile(msgspec.Struct, frozen=True):
    """An encoded image."""

    data: bytes
    content_type: str
    width: int
    height: int


def convert(data: bytes, output_format: OutputFormat, output_compression: int = 100) -> ImageFile:
    """Convert an image to another format, upright and without metadata.

    An image that has the format already, or is too large to be converted, is returned as it is.
    """
    _check_output(output_format, output_compression)
    found = unconverted(data, output_format, output_compression)
    if found is not None:
        return ImageFile(data, *found)
    image = decode(data, PROVIDER_FORMATS)
    if max(image.size) > MAX_SIDE.get(output_format, MAX_PIXELS):  # of a format that callers cannot get
        output_format = "png"
    return encode(image, output_format, output_compression)


def normalise_input(data: bytes) -> ImageFile:
    """Decode an input image completely, and return it upright and without metadata in the same format."""
    with _open(data, INPUT_FORMATS) as image:
        if _frame_count(image) != 1:
            raise BadImage("The image is animated; send a single frame.")
        name = _format_name(image)
        image.load()
        if _has_no_metadata(image, data):
            return ImageFile(data, CONTENT_TYPES[name], *image.size)
        is_upright = image.getexif().get(_ORIENTATION, 1) == 1
        if image.format == "JPEG" and image.mode != "CMYK" and is_upright and "icc_profile" not in image.info:
            return ImageFile(_strip_jpeg(data), CONTENT_TYPES[name], *image.size)
        pixels = to_upright_srgb(image)
    if name == "webp" and b"VP8L" in data[:64]:
        return _save(pixels, "webp", lossless=True)
    return encode(pixels, name, 96)


def limit_bytes(data: bytes, max_bytes: int) -> ImageFile:
    """Encode an input image again, with as little loss as it takes to have at most so many bytes.

    The result is a JPEG, or WebP if the image has transparent parts. First the quality is reduced, then the dimensions.
    """
    image = decode(data)
    image.thumbnail((_SHRUNK_SIDE_MAX, _SHRUNK_SIDE_MAX))
    while min(image.size) > 1:
        for quality in _SHRUNK_QUALITIES:
            shrunk = encode(image, "webp" if image.mode == "RGBA" else "jpeg", quality)
            if len(shrunk.data) <= max_bytes:
                return shrunk
        image = image.resize((image.width * 3 // 4, image.height * 3 // 4), Image.Resampling.LANCZOS)
    raise BadImage(f"The image cannot be made as small as {max_bytes} bytes.")


def convert_mask(data: bytes, polarity: Polarity) -> ImageFile:
    """Convert a mask, which is fully transparent where to edit, to the form that a provider takes.

    The polarity says how the area to edit is marked: by transparency (`alpha`), or by `white` or `black` pixels.
    Raises BadImage for a mask that marks nothing.
    """
    with _open(data, ("png",)) as image:
        alpha = image.convert("RGBA").getchannel("A")
    if alpha.histogram()[0] == 0:
        raise BadImage("The mask has no fully transparent pixels, which mark the area to edit.")
    unedited = alpha.point(lambda value: 255 if value else 0)
    if polarity == "black":
        return _save(unedited, "png")
    if polarity == "white":
        return _save(ImageOps.invert(unedited), "png")
    return _save(Image.merge("RGBA", (unedited, unedited, unedited, unedited)), "png")


def decode(data: bytes, formats: tuple[str, ...] = INPUT_FORMATS) -> Image.Image:
    """Decode the first frame, as `to_upright_srgb` returns it."""
    with _open(data, formats) as image:
        return to_upright_srgb(image)


def to_upright_srgb(image: Image.Image) -> Image.Image:
    """Rotate an image as its EXIF says and convert it to sRGB, mode L, RGB or RGBA, without metadata."""
    profile = image.info.get("icc_profile")
    rotated = ImageOps.exif_transpose(image)
    has_alpha = rotated.has_transparency_data
    if rotated.mode.startswith("I"):  # 16 bits, which Pillow itself would clip to 255
        rotated = rotated.convert("I").point([value >> 8 for value in range(1 << 16)], "L")
    if isinstance(profile, bytes) and rotated.mode in ("RGB", "RGBA", "CMYK", "L"):
        rotated = _to_srgb(rotated, profile)
    grey = rotated.mode in ("1", "L")
    plain = rotated.convert("RGBA" if has_alpha else "L" if grey else "RGB")
    if has_alpha and plain.getchannel("A").getextrema() == (255, 255):  # an opaque alpha channel only costs space
        plain = plain.convert("RGB")
    plain.info = {}
    return plain


def encode(image: Image.Image, output_format: str, output_compression: int = 100) -> ImageFile:
    """Encode an image; `output_compression` is the quality of lossy formats, with full colour resolution from 90 on."""
    quality = output_compression
    fine = quality >= 90
    if output_format == "jpeg":
        # Without `optimize`: its buffer is too small for noise at quality 100, and Pillow fails.
        return _save(_on_white(image), "jpeg", quality=quality, subsampling=0 if fine else 2)
    if output_format == "webp":
        # Method 4 takes twice as long for little gain, except at quality 100, where files become a third smaller.
        effort = 4 if quality == 100 and image.width * image.height <= 8_000_000 else 2
        return _save(image, "webp", quality=quality, method=effort, alpha_quality=100 if fine else 80)
    if output_format == "avif":
        # One thread, because the pool already has a child process for every core.
        return _save(image, "avif", quality=quality, subsampling="4:4:4" if fine else "4:2:0", speed=8, max_threads=1)
    if output_format == "gif":
        return _encode_gif(image)
    return _save(image, "png", compress_level=1)  # 5 % larger than by default, in half the time


def shrink(data: bytes, side: int) -> ImageFile:
    """A small copy of an image as JPEG; neither side is longer than `side`. Raises BadImage."""
    image = decode(data, OUTPUT_FORMATS)
    image.thumbnail((side, side))
    return encode(image, "jpeg", 80)


def thumbnail(data: bytes, width: int) -> ImageFile:
    """A copy of an image as WebP: at most so wide, twice as high, and as large as the image. Raises BadImage."""
    image = decode(data, OUTPUT_FORMATS)
    image.thumbnail((width, 2 * width))
    return encode(image, "webp", 80)


def grid(data: bytes, side: int) -> Grid:
    """A tiny square copy of an image, to compare it with others; what is transparent is white. Raises BadImage."""
    image = decode(data, OUTPUT_FORMATS).convert("RGBA")
    white = Image.new("RGBA", image.size, (255, 255, 255, 255))
    white.alpha_composite(image)
    return Grid(white.convert("RGB").resize((side, side)).tobytes())


def _check_output(output_format: str, output_compression: int) -> None:
    if output_format not in CONTENT_TYPES:
        raise BadImage(f"Unknown output format; the formats are {', '.join(OUTPUT_FORMATS)}.")
    if not 1 <= output_compression <= 100:
        raise BadImage("The output compression must be from 1 to 100.")


@contextmanager
def _open(data: bytes, formats: tuple[str, ...]) -> Iterator[Image.Image]:
    """Open an image after checking its size; every error in its data, now or inside the context, becomes BadImage."""
    names = ", ".join(formats)
    found = sniff(data)
    if found is None or found.content_type.removeprefix("image/") not in formats:
        raise BadImage(f"The file is not one of {names}.")
    if found.width * found.height > MAX_PIXELS:
        raise BadImage(f"The image has more than {MAX_PIXELS // 1_000_000} million pixels.")
    if found.content_type == "image/jpeg":
        _check_scans(data, found.width * found.height)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=[name.upper() for name in formats]) as image:
                yield image
    except (BadImage, MemoryError):
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise BadImage(f"The image has more than {MAX_PIXELS // 1_000_000} million pixels.") from None
    except Exception as error:  # decoders raise errors of many classes on broken files
        raise BadImage(f"The file is a broken {found.content_type.removeprefix('image/')} image.") from error


def _format_name(image: Image.Image) -> str:
    # Pillow calls a JPEG with a second view behind it "MPO"; phones write such files. The first view is the photograph.
    name = (image.format or "").lower()
    return "jpeg" if name == "mpo" else name


def _frame_count(image: Image.Image) -> int:
    return 1 if image.format == "MPO" else int(getattr(image, "n_frames", 1))


def _has_no_metadata(image: Image.Image, data: bytes) -> bool:
    """Whether a file has no metadata that Pillow reports, and no bytes after its end."""
    if set(image.info) - _PIXEL_METADATA - _JFIF_METADATA - _WEBP_METADATA or image.format == "MPO":
        return False
    if getattr(image, "text", None) or getattr(image, "private_chunks", None):
        return False
    if image.format == "WEBP":
        return int.from_bytes(data[4:8], "little") + 8 == len(data)
    return data.endswith(b"\xff\xd9" if image.format == "JPEG" else b"IEND\xaeB`\x82")


def _strip_jpeg(data: bytes) -> bytes:
    """Remove comments and application segments from a JPEG without encoding it again, which would cost quality.

    The file must have been decoded before, so that its segments are known to be well-formed.
    """
    kept = [data[start:end] for marker, start, end in _segments(data) if marker not in _METADATA_SEGMENTS]
    return b"".join([data[:2], *kept, b"\xff\xd9"])


def _segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the marker, start and end of each segment of a JPEG up to its end; a scan includes its data."""
    start = _next_marker(data, 2)
    while start + 4 <= len(data) and data[start + 1] != _END_OF_IMAGE:
        marker = data[start + 1]
        end = start + 2 + (0 if marker in _WITHOUT_LENGTH else int.from_bytes(data[start + 2 : start + 4], "big"))
        following = _next_marker(data, end)
        yield marker, start, following if marker == _START_OF_SCAN else end
        start = following


def _next_marker(data: bytes, start: int) -> int:
    found = _MARKER.search(data, start)
    return found.start() if found else len(data)


def _check_scans(data: bytes, pixels: int) -> None:
    """Raise BadImage for a JPEG whose scans would take long to decode: each goes over all pixels in a few bytes."""
    scans = sum(marker == _START_OF_SCAN for marker, _, _ in _segments(data))
    if scans * pixels > MAX_SCANNED_PIXELS:
        allowed = MAX_SCANNED_PIXELS // pixels
        raise BadImage(f"The JPEG has {scans} scans; at its size it may have at most {allowed}.")


def _to_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        target = ImageCms.createProfile("sRGB")
        mode = "RGB" if image.mode == "CMYK" else image.mode
        converted = None if mode == "L" else ImageCms.profileToProfile(image, source, target, outputMode=mode)
    except (ImageCms.PyCMSError, OSError, ValueError):
        converted = None  # a broken or unsupported profile: use the pixel values as they are
    return image if converted is None else converted


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode != "RGBA":
        return image
    background = Image.new("RGB", image.size, "white")
    background.paste(image, mask=image.getchannel("A"))
    return background


def _encode_gif(image: Image.Image) -> ImageFile:
    colours = 255 if image.mode == "RGBA" else 256
    solid = _on_white(image).convert("RGB")
    # The palette is chosen from a smaller copy: several times faster, with the same result to the eye.
    palette = solid.reduce(4).quantize(colours) if min(solid.size) > 512 else solid.quantize(colours)
    solid = solid.quantize(colours, palette=palette, dither=Image.Dither.FLOYDSTEINBERG)
    if image.mode != "RGBA":
        return _save(solid, "gif", optimize=False)
    # One palette entry means transparent; GIF has no partial transparency, so soft edges become hard.
    solid.paste(255, mask=image.getchannel("A").point(lambda value: 0 if value >= 128 else 255))
    return _save(solid, "gif", transparency=255, optimize=False)


def _save(image: Image.Image, name: str, **options: Any) -> ImageFile:
    buffer = io.BytesIO()
    image.save(buffer, format=name.upper(), **options)
    return ImageFile(buffer.getvalue(), CONTENT_TYPES[name], *image.size)
