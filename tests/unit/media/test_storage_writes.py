"""Nothing is bought while files cannot be stored, and it shows when they can be again."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from penstock.api.endpoints import health
from penstock.errors import StorageUnavailable
from penstock.media.storage import Storage
from penstock.media.storage_writes import StorageWrites, probe
from tests.gateway import OpenGateway, RunningGateway
from tests.manual_clock import ManualClock


@contextmanager
def full_storage(running: RunningGateway) -> Iterator[None]:
    """A storage that takes no files: its folder is replaced by a file."""
    folder = running.gateway.settings.data / "media"
    folder.rename(folder.with_name("moved"))
    folder.touch()
    try:
        yield
    finally:
        folder.unlink()
        folder.with_name("moved").rename(folder)


async def test_one_image_is_lost_and_the_next_are_refused_before_they_are_bought(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        with full_storage(running):
            with pytest.raises(StorageUnavailable) as lost:
                await running.image()
            assert lost.value.should_retry is False
            for _ in range(3):
                with pytest.raises(StorageUnavailable, match="nothing was made") as refused:
                    await running.image()
                assert refused.value.should_retry is True
                running.clock.advance(2)
            assert len(running.lab.images) == 1
            ready = await health.ready(running.gateway, running.call())
            assert ready.json["warnings"] == ["Files cannot be stored: images are refused, and finished videos wait."]
        running.clock.advance(2)
        await running.image()
        assert (await health.ready(running.gateway, running.call())).json == {"status": "ready"}


async def test_the_log_says_once_when_it_begins_and_once_when_it_ends(bucket: Storage) -> None:
    clock = ManualClock()
    writes = StorageWrites(bucket, clock)
    with capture_logs() as lines:
        for _ in range(3):
            with pytest.raises(StorageUnavailable), writes.watching():
                raise StorageUnavailable("no")
        assert await writes.succeed()
        await writes.check()
    assert [line["log_level"] for line in lines] == ["error", "warning"]


async def test_a_probe_leaves_nothing_behind(bucket: Storage) -> None:
    assert await probe(bucket, 0)
    assert await bucket.list_files() == []


async def test_a_storage_that_is_never_written_is_not_probed(bucket: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(bucket), "create", None)
    assert await StorageWrites(bucket, ManualClock()).succeed()
