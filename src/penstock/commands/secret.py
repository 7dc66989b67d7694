"""Replace the master secret."""

import typer

from penstock.audit_log import Act, note_act
from penstock.clock import Clock
from penstock.commands.data_folder import Config, Data, load_settings, with_store
from penstock.commands.output import Json, report
from penstock.destinations.destinations import reseal_destinations
from penstock.models.vendor_accounts import reseal_accounts
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.vault import Vault, rotate_secret
from penstock.webhooks.events import WebhookSecrets

app = typer.Typer(no_args_is_help=True, help="Rotate the master secret.")


@app.command("rotate")
def rotate(data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """Create a new master secret. It encrypts and signs from now on; what the older ones signed stays valid."""
    from penstock.app import (
        lock_data_folder,  # imported here because it is slow, and a refused rotation needs none of it
    )

    settings = load_settings(data=data, config=config)
    with_store(settings, _nothing)  # refuses a folder without data, and a secret that is not that of the database
    rotate_secret(settings)
    with_store(settings, _note_rotation)
    try:
        with lock_data_folder(settings.data):
            count = _reseal(settings)
            report(f"There is a new master secret. {_reseal_text(count)}", as_json, rotated=True, resealed=count)
    except RuntimeError:
        text = (
            "There is a new master secret. Restart the gateway to use it, then run `penstock secret reseal` to encrypt "
            "with it what is stored."
        )
        report(text, as_json, rotated=True, resealed=0)


@app.command("reseal")
def reseal(data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """Encrypt with the newest master secret what is stored encrypted: webhook secrets, keys of accounts and buckets."""
    count = _reseal(load_settings(data=data, config=config))
    report(_reseal_text(count), as_json, resealed=count)


async def _note_rotation(store: Store, vault: Vault) -> None:
    await note_act(store, Clock().now_ms(), Act("master_secret.rotated", "master secret"))


async def _nothing(store: Store, vault: Vault) -> None:
    return None


def _reseal(settings: Settings) -> int:
    async def work(store: Store, vault: Vault) -> int:
        await note_act(store, Clock().now_ms(), Act("master_secret.resealed", "master secret"))
        count = await WebhookSecrets(store, vault, Clock()).reseal()
        return count + await reseal_accounts(store, vault) + await reseal_destinations(store, vault)

    return with_store(settings, work)


def _reseal_text(count: int) -> str:
    return f"Encrypted {count} secrets with the newest master secret."
