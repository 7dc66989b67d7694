"""Copy what cannot be made again, while the gateway runs."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from penstock.commands.terminal import Config, Data, chosen, with_store
from penstock.store.base import Store
from penstock.vault import SECRET_FILE, Vault


def backup(
    folder: Annotated[Path, typer.Argument(help="A new folder for the copy.")], data: Data = None, config: Config = None
) -> None:
    """Copy the database and the master secret, without which it says nothing."""
    these = chosen(data=data, config=config)
    folder.mkdir(mode=0o700, parents=True)

    async def work(store: Store, _: Vault) -> None:
        await store.backup(folder / "penstock.db")

    with_store(these, work)
    if (these.data / SECRET_FILE).exists():
        shutil.copy2(these.data / SECRET_FILE, folder / SECRET_FILE)
    typer.echo(f"Copied to {folder}. Media files are not part of it: copy {these.data / 'media'} now, or your bucket.")
