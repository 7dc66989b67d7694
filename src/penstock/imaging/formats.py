"""The image formats that callers can ask for, and the file name extensions of content types."""

from typing import Literal, get_args

OutputFormat = Literal["png", "jpeg", "gif", "webp", "avif"]
OUTPUT_FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)
CONTENT_TYPES: dict[str, str] = {name: f"image/{name}" for name in OUTPUT_FORMATS}
FORMATS: dict[str, str] = {content_type: name for name, content_type in CONTENT_TYPES.items()}

_EXTENSIONS = {"image/jpeg": "jpg"}


def extension(content_type: str) -> str:
    """Return the extension of a file name, without the dot: `jpg` for `image/jpeg`, `mp4` for `video/mp4`."""
    return _EXTENSIONS.get(content_type, content_type.partition("/")[2])
