"""Building a gateway from its settings."""

import asyncio

from structlog.testing import capture_logs

from penstock.app.background import run_background_work
from penstock.app.build import build_gateway
from penstock.app.first_start import ensure_first_key
from penstock.imaging import confinement
from penstock.values import OrgId
from tests.fake_providers.scripted import png
from tests.gateway import Installation, sqlite_only

ORG = OrgId("org_1")


@sqlite_only
async def test_the_log_says_once_how_child_processes_are_confined(installation: Installation) -> None:
    with capture_logs() as lines:
        async with build_gateway(installation.own_settings(), installation.clock, {}) as gateway:
            for _ in range(2):
                await gateway.worker_pool.run("image.normalise_input", for_org=ORG, data=png(8, 8))
    (line,) = [line for line in lines if line["event"] == "confinement of child processes"]
    assert sorted([*line["active"], *line["missing"]]) == sorted(confinement.PROTECTIONS)
    assert line["log_level"] == ("warning" if line["missing"] else "info")


# ---------------------------------------------------------------------------------------------------------- first start


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
    async with build_gateway(installation.own_settings(), installation.clock, {}):
        assert not folder.exists()
        assert not (installation.data / "tmp" / "download").exists()
        assert not half.exists()


async def test_nothing_is_left_running(installation: Installation) -> None:
    """The fixture in tests/conftest.py fails a test that leaves tasks behind."""
    async with build_gateway(installation.own_settings(), installation.clock, {}) as gateway:
        await ensure_first_key(gateway)
        async with run_background_work(gateway):
            await asyncio.sleep(0)
        assert gateway.jobs.running == 0
