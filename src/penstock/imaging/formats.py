"""The image formats that callers can ask for, their limits, and the file name extensions of content types."""

from typing import Literal, get_args

OutputFormat = Literal["png", "jpeg", "gif", "webp", "avif"]
OUTPUT_FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)
CONTENT_TYPES: dict[str, str] = {name: f"image/{name}" for name in OUTPUT_FORMATS}
SVG_TYPE = "image/svg+xml"  # vector images are never converted, so only models that make them have this format
FORMATS: dict[str, str] = {SVG_TYPE: "svg", **{content_type: name for name, content_type in CONTENT_TYPES.items()}}
ALL_FORMATS: tuple[str, ...] = (*OUTPUT_FORMATS, "svg")
LOSSY = frozenset({"jpeg", "webp", "avif"})

MAX_PIXELS = 40_000_000
# An image with a longer side keeps its format. AVIF is limited because encoding it is slow, the others by the format.
MAX_SIDE = {"avif": 1600, "webp": 16_383, "jpeg": 65_500, "gif": 65_535}

Polarity = Literal["alpha", "white", "black"]  # how the area to edit is marked in a mask

_EXTENSIONS = {
    "image/jpeg": "jpg",
    SVG_TYPE: "svg",
    "audio/mpeg": "mp3",
    "text/plain": "txt",
    "application/x-subrip": "srt",
}


def disposition(content_type: str) -> str:
    """How a browser is to open a file: it saves a vector image, which is a document, and shows anything else."""
    return "attachment" if content_type == SVG_TYPE else "inline"


def extension(content_type: str) -> str:
    """Return the extension of a file name, without the dot: `jpg` for `image/jpeg`, `mp4` for `video/mp4`."""
    bare = content_type.partition(";")[0]
    return _EXTENSIONS.get(bare, bare.partition("/")[2])
