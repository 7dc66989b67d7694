"""A gateway is built from its settings, set up once, and stopped with nothing left running."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from penstock.app import (
    build_gateway,
    ensure_first_key,
    ensure_first_org,
    lock_data_folder,
    open_store_and_vault,
    run_background_work,
)
from penstock.imaging import confinement
from penstock.settings import Settings
from penstock.store.base import StorageMisconfigured
from penstock.values import OrgId, nanos
from penstock.vault import SecretRefused
from tests.fake_providers import faults
from tests.fake_providers.scripted import png
from tests.gateway import MASTER, Installation, OpenGateway, sqlite_only, two_providers
from tests.manual_clock import ManualClock

ORG = OrgId("org_1")


def settings(installation: Installation, **changes: object) -> Settings:
    return Settings(data=installation.data, database=installation.database, secret=MASTER, **changes)  # type: ignore[arg-type]


@sqlite_only
async def test_the_log_says_once_how_child_processes_are_confined(installation: Installation) -> None:
    with capture_logs() as lines:
        async with build_gateway(settings(installation), installation.clock, {}) as gateway:
            for _ in range(2):
                await gateway.worker_pool.run("image.normalise_input", for_org=ORG, data=png(8, 8))
    (line,) = [line for line in lines if line["event"] == "confinement of child processes"]
    assert sorted([*line["active"], *line["missing"]]) == sorted(confinement.PROTECTIONS)
    assert line["log_level"] == ("warning" if line["missing"] else "info")


# ---------------------------------------------------------------------------------------------------------- first start


async def test_the_first_start_returns_the_key_once(installation: Installation) -> None:
    async with build_gateway(settings(installation, starting_credit_usd="2.5"), installation.clock, {}) as gateway:
        first, again = await ensure_first_key(gateway), await ensure_first_key(gateway)
        assert first.key is not None
        assert again.key is None
        assert again.org_id == first.org_id
        caller = await gateway.keys.authenticate(f"Bearer {first.key}")
        assert (caller.org_id, caller.scopes) == (first.org_id, frozenset({"admin", "operator", "metrics"}))
        balance = await gateway.balances.get(first.org_id)
        assert nanos(balance["available"]["amount"]) == nanos("2.5")
        assert first.key not in repr(first)


async def test_ten_first_starts_at_once(installation: Installation) -> None:
    """They create one organization, one credit and one valid key."""
    async with (
        build_gateway(settings(installation), installation.clock, {}) as gateway,
        build_gateway(settings(installation), installation.clock, {}) as other,
    ):
        welcomes = await asyncio.gather(*(ensure_first_key(process) for process in (gateway, other) * 5))
        assert len({welcome.org_id for welcome in welcomes}) == 1
        (key,) = [welcome.key for welcome in welcomes if welcome.key]
        await gateway.keys.authenticate(f"Bearer {key}")
        page = await gateway.keys.list_records(welcomes[0].org_id, status="active")
        assert len(page.data) == 1
        row = await gateway.store.one("get_balance", org_id=welcomes[0].org_id)
        assert row is not None
        assert row["available"] == nanos("10")


async def test_an_organization_made_by_a_command_gets_its_key_at_the_start(installation: Installation) -> None:
    async with open_store_and_vault(settings(installation)) as (store, _):
        org_id = await ensure_first_org(store, settings(installation), ManualClock())
    async with build_gateway(settings(installation), installation.clock, {}) as gateway:
        welcome = await ensure_first_key(gateway)
        assert welcome.org_id == org_id
        assert welcome.key is not None


# ------------------------------------------------------------------------------------------------------------ the parts


@sqlite_only
async def test_the_data_folder_is_private(installation: Installation) -> None:
    async with build_gateway(Settings(data=installation.data), installation.clock, {}):
        assert installation.data.stat().st_mode & 0o077 == 0
        assert (installation.data / "secret.key").stat().st_mode & 0o077 == 0


@sqlite_only
async def test_unfinished_files_of_a_killed_process_are_deleted(installation: Installation) -> None:
    """An unfinished file in the storage, an unfinished download, a scratch folder with part of a video."""
    folder = installation.data / "tmp" / "video"
    folder.mkdir(parents=True)
    (folder / "video.mp4").write_bytes(b"half")
    (installation.data / "tmp" / "download").write_bytes(b"half")
    (installation.data / "media" / "ab").mkdir(parents=True)
    half = installation.data / "media" / "ab" / "med_1.cafe.part"
    half.write_bytes(b"half")
    async with build_gateway(settings(installation), installation.clock, {}):
        assert not folder.exists()
        assert not (installation.data / "tmp" / "download").exists()
        assert not half.exists()


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


async def test_unfinished_generations_of_the_last_process_are_resumed(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs:
        async with open_gateway(labs=labs, works=False, worker=False) as running:
            ids = [(await running.video(seconds=1)).json["id"] for _ in range(5)]
        async with open_gateway(labs=labs) as running:
            assert {(await running.wait_for_video(video_id))["status"] for video_id in ids} == {"completed"}


@sqlite_only
async def test_a_process_that_is_no_worker_runs_no_videos(open_gateway: OpenGateway) -> None:
    """It accepts them, and makes images while callers wait."""
    async with open_gateway(worker=False) as running:
        video_id = (await running.video()).json["id"]
        assert await running.image()
        for _ in range(20):
            running.clock.advance(30)
            assert (await running.record(video_id))["status"] == "pending"
        assert len(running.lab.videos) == 0
        await running.cancel(video_id)


async def test_stopping_gives_running_videos_back(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs:
        labs[0].videos.always(faults.never_ends)
        async with open_gateway(labs=labs) as running:
            for _ in range(3):
                await running.video(seconds=1)
            await labs[0].videos.reached(3)
            leases = await running.rows("SELECT id FROM generations WHERE lease_until_ms > 0")
        async with open_gateway(labs=labs, works=False) as running:
            assert len(leases) == 3
            rows = await running.rows("SELECT lease_until_ms, crashes FROM generations")
            assert [(row["lease_until_ms"], row["crashes"]) for row in rows] == [(0, 0)] * 3


_SWEEPS = {
    "erase drained accounts",
    "release abandoned chats",
    "remove expired payloads",
    "check orphans",
    "delete expired media",
    "delete expired uploads",
    "delete old batches",
    "delete old trials",
    "look for alerts",
    "delete stray files",
}
_LEASES = {
    "refresh accounts",
    "refresh destinations",
    "renew leases",
    "renew lease of chats",
    "log the head of the audit log",
}


_WORK = {"deliver webhooks", "look for batches"}


@sqlite_only
@pytest.mark.parametrize(
    ("worker", "sweeps", "expected"),
    [
        (True, True, {*_LEASES, *_SWEEPS, *_WORK}),
        (True, False, {*_LEASES, *_WORK}),
        (False, True, _LEASES),
    ],
)
async def test_the_work_that_is_repeated(
    installation: Installation, worker: bool, sweeps: bool, expected: set[str]
) -> None:
    """Of each task by its name: without one of them something would never be renewed, released or deleted."""
    chosen = settings(installation, worker=worker, alert_url="https://ops.example/alerts")
    async with build_gateway(chosen, installation.clock, {}) as gateway:
        before = asyncio.all_tasks()
        async with run_background_work(gateway, sweeps=sweeps):
            started = asyncio.all_tasks() - before
            begun = {task for task in started if task.get_name() not in expected}
            if begun:
                await asyncio.wait(begun, timeout=30)  # what the work has begun soon ends
            assert {task.get_name() for task in started if not task.done()} == expected


async def test_the_lease_of_chats_is_renewed(open_gateway: OpenGateway) -> None:
    """Otherwise another process would soon end the chats of this one."""
    async with open_gateway() as running:
        (row,) = await running.rows("SELECT lease_until_ms FROM processes")

        async def is_renewed() -> bool:
            (now,) = await running.rows("SELECT lease_until_ms FROM processes")
            return bool(now["lease_until_ms"] > row["lease_until_ms"])

        await running.wait_until(is_renewed)


async def test_nothing_is_left_running(installation: Installation) -> None:
    """The fixture in tests/conftest.py fails a test that leaves tasks behind."""
    async with build_gateway(settings(installation), installation.clock, {}) as gateway:
        await ensure_first_key(gateway)
        async with run_background_work(gateway):
            await asyncio.sleep(0)
        assert gateway.jobs.running == 0


async def test_another_master_secret_is_refused(installation: Installation) -> None:
    usual = settings(installation)
    old, new = "v" * 43, "w" * 43
    for secret in (old, old, f"{new} {old}"):
        async with open_store_and_vault(msgspec.structs.replace(usual, secret=secret)):
            pass
    for secret in (new, ""):
        with pytest.raises(SecretRefused, match=r"secret\.key"):
            async with open_store_and_vault(msgspec.structs.replace(usual, secret=secret)):
                pass
    assert not (installation.data / "secret.key").exists()
