"""List, show, delete, export and import recordings."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from penstock.clock import Clock
from penstock.commands.terminal import Config, Data, Org, chosen, org_id, show, with_store
from penstock.media.storage import open_storage
from penstock.recordings import files
from penstock.recordings.recordings import Recordings
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.values import iso
from penstock.vault import Vault

app = typer.Typer(no_args_is_help=True, help="Recordings, for tests that cost nothing.")


@app.command("list")
def list_recordings(data: Data = None, config: Config = None, org: Org = None) -> None:
    """List an organization's recordings, newest first."""
    these = chosen(data=data, config=config)

    async def work(store: Store, vault: Vault) -> list[list[Any]]:
        rows = await _replay(store, these).all(await org_id(store, org, these))
        return [[row["id"], row["kind"], row["model"], iso(row["created_at_ms"]), row["duration_ms"]] for row in rows]

    show("Recordings", ["id", "kind", "model", "recorded", "took ms"], with_store(these, work))


@app.command("show")
def show_recording(recording_id: str, data: Data = None, config: Config = None, org: Org = None) -> None:
    """Print what a recording asked for and got, as JSON."""
    these = chosen(data=data, config=config)

    async def work(store: Store, vault: Vault) -> bytes:
        replay = _replay(store, these)
        row = await replay.get(await org_id(store, org, these), recording_id)
        transcript, _ = await files.written(replay, row, inline=False)
        return msgspec.json.format(msgspec.json.encode(transcript), indent=2)

    typer.echo(with_store(these, work))


@app.command("delete")
def delete_recording(recording_id: str, data: Data = None, config: Config = None, org: Org = None) -> None:
    """Delete a recording and its media."""
    these = chosen(data=data, config=config)

    async def work(store: Store, vault: Vault) -> None:
        await _replay(store, these).delete(await org_id(store, org, these), recording_id)

    with_store(these, work)
    typer.echo(f"deleted {recording_id}")


@app.command("export")
def export_recordings(
    folder: Annotated[Path, typer.Option("--to", help="Folder for the files.")],
    recording_ids: Annotated[list[str] | None, typer.Argument(help="Which; all of them unless said.")] = None,
    data: Data = None,
    config: Config = None,
    org: Org = None,
) -> None:
    """Write recordings as JSON with their media beside it."""
    these = chosen(data=data, config=config)

    async def work(store: Store, vault: Vault) -> list[Path]:
        replay, owner = _replay(store, these), await org_id(store, org, these)
        if recording_ids:
            rows = [await replay.get(owner, one) for one in recording_ids]
        else:
            rows = await replay.all(owner)
        return [files.save(folder, *await files.written(replay, row, inline=False)) for row in rows]

    for path in with_store(these, work):
        typer.echo(path)


@app.command("import")
def import_recordings(
    paths: Annotated[list[Path], typer.Argument(help="JSON files, or folders of them.")],
    data: Data = None,
    config: Config = None,
    org: Org = None,
) -> None:
    """Take recordings in and print their ids."""
    these = chosen(data=data, config=config)
    documents = [one for path in paths for one in (sorted(path.glob("*.json")) if path.is_dir() else [path])]

    async def work(store: Store, vault: Vault) -> list[str]:
        replay, owner = _replay(store, these), await org_id(store, org, these)
        now_ms = Clock().now_ms()
        return [await files.taken_in(store, replay, owner, *files.load(document), now_ms) for document in documents]

    for taken in with_store(these, work):
        typer.echo(taken)


def _replay(store: Store, these: Settings) -> Recordings:
    return Recordings(store, open_storage(these.media, these.media_options, these.data), Clock())
