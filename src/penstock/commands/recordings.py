"""List, show, delete, export and import recordings."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import msgspec
import typer

from penstock.clock import Clock
from penstock.commands.data_folder import Config, Data, Org, load_settings, org_id, with_store
from penstock.commands.output import Json, report
from penstock.commands.owner import as_caller
from penstock.commands.recordings_check import check_recordings
from penstock.commands.tables import show_table
from penstock.imaging.workers import WorkerPool
from penstock.media.opening import open_storage
from penstock.recordings import files, folders
from penstock.recordings.recordings import Recordings
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.telemetry.logs import configure_logs
from penstock.values import iso
from penstock.vault import Vault

app = typer.Typer(no_args_is_help=True, help="List, show, export, import and delete recordings.")
app.command("check")(check_recordings)


@app.command("list")
def list_recordings(data: Data = None, config: Config = None, org: Org = None, as_json: Json = False) -> None:
    """List an organization's recordings, newest first."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> list[list[Any]]:
        rows = await _recordings(store, settings).all(await org_id(store, org, settings))
        return [[row.id, row.kind, row.model, iso(row.created_at_ms), row.duration_ms] for row in rows]

    columns = ["id", "kind", "model", "created", "duration ms"]
    show_table("Recordings", columns, with_store(settings, work), as_json)


@app.command("show")
def show_recording(
    recording_id: str, data: Data = None, config: Config = None, org: Org = None, as_json: Json = False
) -> None:
    """Print a recording without its media: as JSON to read, or with --json in one line."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> bytes:
        recordings = _recordings(store, settings)
        row = await recordings.get(await org_id(store, org, settings), recording_id)
        document, _ = await files.export_recording(recordings, row)
        encoded = msgspec.json.encode(document)
        return encoded if as_json else msgspec.json.format(encoded, indent=2)

    typer.echo(with_store(settings, work))


@app.command("delete")
def delete_recording(
    recording_id: str, data: Data = None, config: Config = None, org: Org = None, as_json: Json = False
) -> None:
    """Delete a recording and its media."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> None:
        await _recordings(store, settings).delete(await org_id(store, org, settings), recording_id)

    with_store(settings, work)
    report(f"deleted {recording_id}", as_json, id=recording_id, deleted=True)


@app.command("export")
def export_recordings(
    folder: Annotated[Path, typer.Option("--to", help="Folder to write to.")],
    recording_ids: Annotated[list[str] | None, typer.Argument(help="Ids of recordings; by default all.")] = None,
    data: Data = None,
    config: Config = None,
    org: Org = None,
    as_json: Json = False,
) -> None:
    """Write recordings to a folder as JSON files, with their media beside them."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> list[Path]:
        recordings = _recordings(store, settings)
        owner = await org_id(store, org, settings)
        paths = []
        for recording_id in recording_ids or [row.id for row in await recordings.all(owner)]:
            row = await recordings.get(owner, recording_id)
            exported = await files.export_recording(recordings, row)
            with as_caller():
                paths.append(folders.save_recording(folder, *exported))
        return paths

    paths = with_store(settings, work)
    report("\n".join(map(str, paths)), as_json, files=paths)


@app.command("import")
def import_recordings(
    paths: Annotated[list[Path], typer.Argument(help="JSON files, or folders of JSON files.")],
    data: Data = None,
    config: Config = None,
    org: Org = None,
    as_json: Json = False,
) -> None:
    """Import recordings from files and print their ids."""
    settings = load_settings(data=data, config=config)
    with as_caller():
        documents = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]

    async def work(store: Store, vault: Vault) -> list[str]:
        recordings = _recordings(store, settings)
        owner = await org_id(store, org, settings)
        now_ms = Clock().now_ms()
        async with WorkerPool() as pool:
            return [
                await files.import_recording(store, recordings, owner, *_load(document), now_ms, pool=pool)
                for document in documents
            ]

    imported = with_store(settings, work)
    report("\n".join(imported), as_json, ids=imported)


@app.command("serve")
def serve_recordings(
    folder: Annotated[Path, typer.Argument(help="The recordings of one test; it is made when they are recorded.")],
    record: Annotated[bool, typer.Option(help="Call providers, and replace the recordings.")] = False,
) -> None:
    """Serve a gateway that replays one folder, until its input ends. The first line of its output has its address."""
    from penstock.commands.replay_gateway import ReplayGateway, open_cassette, save_cassette

    configure_logs("warning", "auto")  # to stderr: stdout has the address

    with TemporaryDirectory(prefix="penstock-") as data:
        served = ReplayGateway(Path(data))
        try:
            mode = "record" if record else "replay-or-error"
            owner, key = served.call(open_cassette(served.gateway, folder, mode))
            address = {"base_url": served.base_url, "api_key": key, "recordings": str(folder)}
            sys.stdout.write(msgspec.json.encode(address).decode() + "\n")
            sys.stdout.flush()
            sys.stdin.read()
            if record:
                served.call(save_cassette(served.gateway, owner, folder, numbered=True))
        finally:
            served.stop()


def _load(document: Path) -> tuple[Any, dict[str, bytes]]:
    with as_caller():
        return folders.load_recording(document)


def _recordings(store: Store, settings: Settings) -> Recordings:
    return Recordings(store, open_storage(settings.media, settings.media_options, settings.data), Clock())
