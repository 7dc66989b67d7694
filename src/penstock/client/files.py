"""Read the files that a call takes, and write those that it brings."""

import base64
import mimetypes
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from penstock.client.results import Generation

Input = str | bytes | PathLike[str]
"""An image or a video for a call: a `Path`, the bytes of a file, a URL, or a data URI."""

_URLS = ("https://", "http://", "data:")


def input_url(given: Input, kind: str = "image/png") -> str:
    """Return an input as the gateway takes it; `kind` is the type of bytes that have none.

    Raises ValueError for a text that is no URL: if it were the path of a file, whoever supplies texts to a program
    could read its files.
    """
    if isinstance(given, str):
        if not given.startswith(_URLS):
            raise ValueError("a text must be a URL or a data URI; give a file as a Path or as bytes")
        return given
    if not isinstance(given, bytes):
        path = Path(given).expanduser()
        kind = mimetypes.guess_type(path.name)[0] or kind  # the gateway looks into the file itself
        given = path.read_bytes()
    return f"data:{kind};base64,{base64.b64encode(given).decode()}"


def output_paths(made: Generation, first: Path) -> list[Path]:
    """Return where the files of a generation go. Raises ValueError if it has none."""
    if not made.files:
        raise ValueError(f"{made.id} has no files yet: wait for it")
    return numbered_paths(first, len(made.files))


def numbered_paths(first: Path, count: int) -> list[Path]:
    """Return the path itself for one file, and numbered ones for several."""
    if count == 1:
        return [first]
    return [first.with_name(f"{first.stem}-{number}{first.suffix}") for number in range(1, count + 1)]


class FileWriter:
    """Writes a file in parts. If they break off, what was at the path stays as it was.

    A pipe or a device gets the parts as they come; it is never replaced by a file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_file = path.is_file() or not path.exists()
        self._unfinished = path.with_name(f"{path.name}.part") if self._is_file else path
        self._file = self._unfinished.open("wb")
        self.size = 0

    def write(self, part: bytes) -> None:
        self._file.write(part)
        self.size += len(part)

    def __enter__(self) -> "FileWriter":
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        self._file.close()
        if self._is_file and failure is None:
            self._unfinished.replace(self._path)
        elif self._is_file:
            self._unfinished.unlink(missing_ok=True)


def write_parts(parts: Iterable[bytes], path: Path) -> int:
    """Write the parts of a file to `path`, and return its size."""
    with FileWriter(path) as writer:
        for part in parts:
            writer.write(part)
    return writer.size
