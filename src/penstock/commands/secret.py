"""Replace the master secret."""

import typer

from penstock.audit_log import Act, note_act
from penstock.clock import Clock
from penstock.commands.data_folder import Config, Data, load_settings, with_store
from penstock.commands.output import Json, report
from penstock.settings import Settings
from penstock.store.base import Store, Transaction
from penstock.vault import Vault, rotate_secret
from penstock.webhooks.events import WebhookSecrets

app = typer.Typer(no_args_is_help=True, help="Rotate the master secret.")
# The tables with a column `secret`, sealed for the id of its row: the queries that list and update it.
_SEALED_TABLES = (("list_accounts", "reseal_account"), ("list_destinations", "reseal_destination"))


@app.command("rotate")
def rotate(data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """Create a new master secret. It encrypts and signs from now on; what the older ones signed stays valid."""
    from penstock.app.opening import lock_data_folder  # imported here because it is slow, and a refused call needs none

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
        return count + sum([await reseal_rows(store, vault, *queries) for queries in _SEALED_TABLES])

    return with_store(settings, work)


async def reseal_rows(store: Store, vault: Vault, listing: str, update: str) -> int:
    """Encrypt the secrets of a table with the newest master secret; return how many were of an older one."""
    stale = [row for row in await store.slow(listing) if not vault.is_current(row["secret"])]

    async def work(tx: Transaction) -> int:
        count = 0
        for row in sorted(stale, key=lambda row: str(row["id"])):
            secret = vault.seal(vault.open(row["secret"], row["id"]), row["id"])
            count += await tx.run(update, id=row["id"], seen=row["secret"], secret=secret)
        return count

    return await store.write(work)


def _reseal_text(count: int) -> str:
    return f"Encrypted {count} secrets with the newest master secret."
