"""Say where files come from, without a gateway."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.commands.data_folder import Config, Data, load_settings
from penstock.commands.output import Json, print_json
from penstock.commands.tables import show_table
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.package_extras import check_extra
from penstock.provenance.opening import read_anchors
from penstock.provenance.reading import read_origin
from penstock.provenance.sealer import TASKS
from penstock.values import OrgId

_MAX_BYTES = 200_000_000  # of more, a child process might not have the memory


def verify(
    files: Annotated[list[Path], typer.Argument(help="Images, videos or audio files.")],
    data: Data = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Show where files come from; exit with status 1 if one was changed after it was signed."""
    check_extra("provenance", "Reading Content Credentials")
    anchors = read_anchors(load_settings(data=data, config=config))
    found = asyncio.run(_read(files, anchors))
    if as_json:
        print_json([{"file": str(file), **said} for file, said in found])
    else:
        show_table("Files", ["file", "verdict", "state", "signer", "steps"], [_row(file, said) for file, said in found])
    if any(said["verdict"] == "tampered" for _, said in found):
        raise typer.Exit(1)


async def _read(files: list[Path], anchors: str) -> list[tuple[Path, dict[str, Any]]]:
    found = []
    async with WorkerPool(tasks=TASKS) as pool:
        for file in files:
            if file.stat().st_size > _MAX_BYTES:
                raise RuntimeError(f"{file} has more than {_MAX_BYTES // 1_000_000} MB.")
            try:
                origin = await read_origin(file.read_bytes(), pool, anchors=anchors, for_org=OrgId(""))
            except WorkFailed as problem:
                raise RuntimeError(f"{file} could not be read: {problem.message}") from problem
            found.append((file, origin.shown(is_known=False)))
    return found


def _row(file: Path, said: dict[str, Any]) -> list[Any]:
    credentials = said["credentials"] or {}
    return [file, said["verdict"], credentials.get("state"), credentials.get("signer"), _steps(credentials)]


def _steps(credentials: dict[str, Any]) -> str:
    """Each statement of the chain, that of the file itself first: what was done, and by which model or signer."""
    steps = []
    for link in credentials.get("chain", ()):
        actions = " and ".join(action.removeprefix("c2pa.") for action in link["actions"]) or "signed"
        steps.append(f"{actions} ({link.get('model') or link.get('signer') or 'unknown'})")
    return ", ".join(steps)
