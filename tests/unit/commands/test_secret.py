"""`penstock secret`: a new master secret, and what is stored encrypted with it."""

import asyncio
from pathlib import Path

from penstock.app.first_start import ensure_first_org
from penstock.app.opening import lock_data_folder, open_store_and_vault
from penstock.clock import Clock
from penstock.settings import Settings
from penstock.vault import SECRET_FILE
from penstock.webhooks.events import WebhookSecrets
from tests.command_line import done, penstock


def webhook_secret(data: Path) -> str:
    async def read() -> str:
        settings = Settings(data=data)
        async with open_store_and_vault(settings) as (store, vault):
            return await WebhookSecrets(store, vault, Clock()).get_secret(
                await ensure_first_org(store, settings, Clock())
            )

    return asyncio.run(read())


def test_a_new_secret_encrypts_what_is_stored_and_keeps_keys_valid(data_folder: Path) -> None:
    secret = webhook_secret(data_folder)
    key = done("keys", "create", "--data", data_folder).out.strip()
    before = (data_folder / SECRET_FILE).read_text().split()
    assert "Encrypted 1 secrets" in done("secret", "rotate", "--data", data_folder).out
    after = (data_folder / SECRET_FILE).read_text().split()
    assert after[1:] == before
    assert (data_folder / SECRET_FILE).stat().st_mode & 0o077 == 0
    assert webhook_secret(data_folder) == secret
    assert "Encrypted 0 secrets" in done("secret", "reseal", "--data", data_folder).out
    assert key[-4:] in done("keys", "list", "--data", data_folder).out


def test_a_running_gateway_must_be_restarted_first(data_folder: Path) -> None:
    webhook_secret(data_folder)
    with lock_data_folder(data_folder):
        printed = done("secret", "rotate", "--data", data_folder).out
    assert "Restart the gateway" in printed
    assert "Encrypted 1 secrets" in done("secret", "reseal", "--data", data_folder).out


def test_a_secret_of_the_settings_is_not_replaced(data_folder: Path) -> None:
    ended = penstock("secret", "rotate", "--data", data_folder, PENSTOCK_SECRET=(data_folder / SECRET_FILE).read_text())
    assert ended.status == 1
    assert "The master secret comes from the settings" in ended.err
