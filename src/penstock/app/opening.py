"""Open what a data folder and a database hold: their lock, their records and their secrets."""

import fcntl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from penstock.settings import Settings
from penstock.store.base import Store
from penstock.store.opening import open_store
from penstock.vault import Vault, open_vault

_FINGERPRINT = "secret_fingerprint"


@asynccontextmanager
async def open_store_and_vault(settings: Settings) -> AsyncIterator[tuple[Store, Vault]]:
    """Open the database and the secrets, which is all that most commands need.

    Raises SecretRefused if the database was written with another master secret; then no new one is created.
    """
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = await open_store(settings)
    try:
        yield store, await _open_vault_of(store, settings)
    finally:
        await store.close()


async def _open_vault_of(store: Store, settings: Settings) -> Vault:
    """Open the vault whose secret the database was written with; on the first start, note which one that is."""
    fact = await store.one("get_fact", name=_FINGERPRINT)
    if fact is None:
        first = open_vault(settings).fingerprint
        await store.write(lambda tx: tx.run("add_fact", name=_FINGERPRINT, value=first))
        fact = await store.one("get_fact", name=_FINGERPRINT)  # another process may have been faster
    assert fact is not None, "this process or another has added it"
    return open_vault(settings, fingerprint=fact["value"])


@contextmanager
def lock_data_folder(data: Path) -> Iterator[None]:
    """Lock a data folder for this process. Raises RuntimeError when another gateway runs on it."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (data / "penstock.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(f"another gateway is running on the data folder {data}") from None
        yield
