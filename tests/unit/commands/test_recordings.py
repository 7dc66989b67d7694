"""`penstock recordings`: list, show, delete, and export and import without loss."""

import asyncio
import json
from pathlib import Path
from typing import Any

from penstock.generations import endpoints
from tests.command_line import done, penstock
from tests.gateway import MASTER, Installation, OpenGateway, sqlite_only


async def record(open_gateway: OpenGateway, *prompts: str) -> list[str]:
    """Record an image for each prompt and return the ids of the recordings."""
    found = []
    async with open_gateway() as running:
        for prompt in prompts:
            body = {"model": "image-1", "prompt": prompt, "size": "64x64"}
            call = running.call(body, endpoint="/image", headers={"x-service-replay": "record"})
            response = await endpoints.make_images(running.gateway, call)
            found.append(response.headers["x-service-replay-recording"])
    return found


def contents(folder: Path) -> dict[str, Any]:
    """Return all files by name, without the time of import, which differs."""
    found = {path.name: json.loads(path.read_bytes()) for path in folder.glob("*.json")}
    without = {name: {**document, "recorded_at": None} for name, document in found.items()}
    return without | {path.name: path.read_bytes() for path in folder.glob("*.png")}


@sqlite_only
def test_recordings_are_listed_shown_and_deleted(open_gateway: OpenGateway, installation: Installation) -> None:
    first, second = asyncio.run(record(open_gateway, "a pear", "a plum"))
    where = ("--data", installation.data)
    rows = done("recordings", "list", *where, PENSTOCK_SECRET=MASTER).lines
    assert [row[0] for row in rows] == sorted([first, second], reverse=True)
    assert rows[0][1:3] == ["image", "image-1"]
    shown = json.loads(done("recordings", "show", first, *where, PENSTOCK_SECRET=MASTER).out)
    assert (shown["id"], shown["request"]["prompt"]) == (first, "a pear")
    assert done("recordings", "delete", first, *where, PENSTOCK_SECRET=MASTER).out == f"deleted {first}\n"
    assert [row[0] for row in done("recordings", "list", *where, PENSTOCK_SECRET=MASTER).lines] == [second]
    missing = penstock("recordings", "show", first, *where, PENSTOCK_SECRET=MASTER)
    assert (missing.status, missing.out) == (1, "")
    assert first in missing.err


@sqlite_only
def test_recordings_are_exported_and_imported_elsewhere(
    open_gateway: OpenGateway, installation: Installation, data_folder: Path, tmp_path: Path
) -> None:
    first, second = asyncio.run(record(open_gateway, "a pear", "a plum"))
    here, elsewhere = ("--data", installation.data), ("--data", data_folder)
    folder, again = tmp_path / "carried", tmp_path / "again"
    one = done("recordings", "export", first, "--to", folder, *here, PENSTOCK_SECRET=MASTER).out.splitlines()
    assert one == [str(folder / f"{first}.json")]
    done("recordings", "export", "--to", folder, *here, PENSTOCK_SECRET=MASTER)
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".json", ".png", ".png"]
    taken = done("recordings", "import", folder, *elsewhere).out.split()
    assert len(taken) == 2
    assert not {first, second} & set(taken)  # imports get ids of their own
    assert done("recordings", "import", folder, *elsewhere).out.split() == taken
    done("recordings", "export", "--to", again, *elsewhere)
    assert contents(again) == contents(folder)


def test_a_file_that_is_not_a_recording_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}')
    ended = penstock("recordings", "import", tmp_path / "x.json", "--data", tmp_path / "data")
    assert ended.status == 1
    assert len(ended.err.splitlines()) == 1
