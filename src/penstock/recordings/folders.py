"""Write recording files and their media to folders, and read them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from penstock.recordings.files import RecordingFile


def save_recording(
    folder: Path, document: RecordingFile | dict[str, Any], files: Sequence[tuple[str, bytes]], name: str | None = None
) -> Path:
    """Write a recording file, indented so that it reads well in a diff, and its media files. Returns its path.

    The files are named by the id of the recording, or by `name`, as is any other document beside recordings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(document, RecordingFile):
        own = name or document.id
        names = [f"{own}{file.removeprefix(document.id)}" for file, _ in files]
        media = zip(document.files, names, strict=True)
        document = msgspec.structs.replace(
            document, files=tuple(msgspec.structs.replace(file, file=own_name) for file, own_name in media)
        )
        for own_name, (_, content) in zip(names, files, strict=True):
            (folder / own_name).write_bytes(content)
        name = own
    path = folder / f"{name}.json"
    text = msgspec.json.format(msgspec.json.encode(document), indent=2)
    path.write_bytes(text + b"\n")
    return path


def load_recording(path: Path) -> tuple[Any, dict[str, bytes]]:
    """Read a recording file and the media files beside it. Names that lead to another folder are ignored."""
    document = msgspec.json.decode(path.read_bytes())
    names = [file.get("file") for file in document.get("files", ()) if isinstance(file, dict)]
    local = [name for name in names if isinstance(name, str) and name == Path(name).name]
    return document, {name: (path.parent / name).read_bytes() for name in local if (path.parent / name).is_file()}
