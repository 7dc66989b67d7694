"""Opening a data folder, a database and their secrets."""

from pathlib import Path

import msgspec
import pytest

from penstock.app.build import build_gateway
from penstock.app.opening import lock_data_folder, open_store_and_vault
from penstock.settings import Settings
from penstock.store.base import StorageMisconfigured
from penstock.values import OrgId
from penstock.vault import SecretRefused
from tests.gateway import MASTER, Installation, sqlite_only
from tests.manual_clock import ManualClock

ORG = OrgId("org_1")


@sqlite_only
async def test_the_data_folder_is_private(installation: Installation) -> None:
    async with build_gateway(Settings(data=installation.data), installation.clock, {}):
        assert installation.data.stat().st_mode & 0o077 == 0
        assert (installation.data / "secret.key").stat().st_mode & 0o077 == 0


def test_a_data_folder_is_used_by_one_process(tmp_path: Path) -> None:
    with (
        lock_data_folder(tmp_path),
        pytest.raises(RuntimeError, match="another gateway is running"),
        lock_data_folder(tmp_path),
    ):
        pass
    with lock_data_folder(tmp_path):
        pass


async def test_a_database_without_durable_writes_is_refused(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The tests' Postgres does not wait for the disk; a gateway does not start on it."""
    address = request.getfixturevalue("fresh_database")
    with pytest.raises(StorageMisconfigured, match="fsync"):
        async with build_gateway(Settings(data=tmp_path, database=address, secret=MASTER), ManualClock(), {}):
            pass


# --------------------------------------------------------------------------------------------------------- working


async def test_another_master_secret_is_refused(installation: Installation) -> None:
    usual = installation.own_settings()
    old, new = "v" * 43, "w" * 43
    for secret in (old, old, f"{new} {old}"):
        async with open_store_and_vault(msgspec.structs.replace(usual, secret=secret)):
            pass
    for secret in (new, ""):
        with pytest.raises(SecretRefused, match=r"secret\.key"):
            async with open_store_and_vault(msgspec.structs.replace(usual, secret=secret)):
                pass
    assert not (installation.data / "secret.key").exists()
