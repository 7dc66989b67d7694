"""Back up the database and the master secret while the gateway runs."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from penstock.commands.terminal import Config, Data, load_settings, with_store
from penstock.store.base import Store
from penstock.vault import SECRET_FILE, Vault


def backup(
    folder: Annotated[Path, typer.Argument(help="Folder to create for the copy.")],
    data: Data = None,
    config: Config = None,
) -> None:
    """Copy the database and the master secret, which is needed to use it."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, _: Vault) -> None:
        folder.mkdir(mode=0o700, parents=True)
        await store.backup(folder / settings.sqlite_file.name)

    with_store(settings, work)
    if (settings.data / SECRET_FILE).exists():
        shutil.copy2(settings.data / SECRET_FILE, folder / SECRET_FILE)
    typer.echo(
        f"Copied to {folder}. Media files are not included: copy {settings.data / 'media'} or your bucket as well."
    )
