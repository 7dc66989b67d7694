"""Back up the database, the master secret and, on demand, the stored files while the gateway runs."""

import asyncio
import shutil
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from penstock.commands.data_folder import Config, Data, load_settings, with_store
from penstock.commands.output import Json, report
from penstock.commands.owner import as_caller
from penstock.media.copying import CopiedFiles, copy_files
from penstock.media.opening import open_storage
from penstock.media.rows import list_file_digests
from penstock.media.storage import Storage
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.store.opening import open_store
from penstock.vault import SECRET_FILE

_MAX_SHOWN = 20


def backup(
    folder: Annotated[Path, typer.Argument(help="Folder to create for the copy.")],
    data: Data = None,
    config: Config = None,
    media: Annotated[
        bool, typer.Option("--media", help="Copy the stored files too, also those in an object store.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Copy the database and the master secret, which is needed to use it.

    A database on Postgres is backed up by Postgres' own tools; with --media the files are copied here.
    """
    settings = load_settings(data=data, config=config)
    storage = open_storage(settings.media, settings.media_options, settings.data) if media else None
    with as_caller():  # who also owns the copy; nothing is written to the data folder
        copied = with_store(settings, lambda store, _: _copy(store, settings, folder, storage))
        if (settings.data / SECRET_FILE).exists():
            shutil.copy2(settings.data / SECRET_FILE, folder / SECRET_FILE)
    if copied is None:
        source = settings.media or settings.data / "media"
        text = f"Copied to {folder}. Stored files are not included: add --media, or copy {source} as well."
        report(text, as_json, folder=folder, media=None)
        return
    text = f"Copied to {folder}, with {copied.files} files of {copied.size_bytes} bytes."
    report(text, as_json, folder=folder, media=msgspec.to_builtins(copied))
    _report("deleted before they could be copied, or missing", copied.missing)
    _report("damaged: their bytes are not those that were stored", copied.damaged)
    if copied.damaged:
        raise typer.Exit(1)


async def _copy(store: Store, settings: Settings, folder: Path, storage: Storage | None) -> CopiedFiles | None:
    """Copy the database first: a file that is stored afterwards belongs to nothing in the copy."""
    is_dumped_elsewhere = storage is not None and store.dialect == "postgres"
    await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True)
    if not is_dumped_elsewhere:
        await store.backup(folder / settings.sqlite_file.name)
    if storage is None:
        return None
    if is_dumped_elsewhere:
        files = await list_file_digests(store)
    else:
        copy = await open_store(msgspec.structs.replace(settings, data=folder))
        try:
            files = await list_file_digests(copy)
        finally:
            await copy.close()
    return await copy_files(storage, files, folder / "media")


def _report(what: str, ids: list[str]) -> None:
    if ids:
        more = "" if len(ids) <= _MAX_SHOWN else ", …"
        typer.echo(f"{len(ids)} files {what}: {', '.join(ids[:_MAX_SHOWN])}{more}", err=True)
