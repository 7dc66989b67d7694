"""Children are forked, killed and awaited through the process that forks them."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from penstock.imaging import workers
from penstock.imaging.children import Children
from penstock.imaging.messages import Confined, Done, Work
from penstock.values import OrgId
from tests.api.raw_http import until
from tests.unit.imaging.images import png

ORG = OrgId("org_1")


@asynccontextmanager
async def opened() -> AsyncIterator[Children]:
    children = Children(1 << 30, workers.TASKS)
    try:
        async with asyncio.timeout(60):
            yield children
    finally:
        await children.close()


async def test_a_child_runs_tasks_and_ends_when_it_is_killed() -> None:
    async with opened() as children:
        child = await children.start(ORG)
        files = await child.send(Work("image.normalise_input", {"data": png()}, 10))
        assert isinstance(await child.receive(files), Confined)
        assert isinstance(await child.receive(files), Done)
        child.kill()
        assert await child.wait() in (-signal.SIGKILL, 0)
        assert not child.is_alive()


async def test_the_status_of_a_child_is_reported() -> None:
    async with opened() as children:
        child = await children.start(ORG)
        os.kill(child.pid, signal.SIGXCPU)
        assert await child.wait() == -signal.SIGXCPU
        child.kill()


async def test_many_start_at_once_and_each_is_another() -> None:
    async with opened() as children:
        started = await asyncio.gather(*(children.start(ORG) for _ in range(5)))
        assert len({child.pid for child in started}) == 5
        for child in started:
            child.kill()
        # The end of its input may be quicker than the signal.
        assert {await child.wait() for child in started} <= {-signal.SIGKILL, 0}


async def test_a_start_that_nobody_waits_for_leaves_no_child() -> None:
    async with opened() as children:
        first = await children.start(ORG)
        starting = asyncio.create_task(children.start(ORG))
        await asyncio.sleep(0)
        assert children._starts, "the order is given"
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await until(lambda: set(children._exits) == {first.pid})
        first.kill()
        await first.wait()


async def test_children_end_with_the_process_that_forks_them() -> None:
    async with opened() as children:
        child = await children.start(ORG)
        await children.close()
        assert await child.wait() == -signal.SIGKILL
        child.kill()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
async def test_a_child_has_its_own_socket_and_no_other() -> None:
    """With that of the process that forks, it could have other children killed."""
    async with opened() as children:
        child = await children.start(ORG)
        files = await child.send(Work("image.normalise_input", {"data": png()}, 10))
        await child.receive(files)
        await child.receive(files)
        open_files = {path.name: str(path.readlink()) for path in Path(f"/proc/{child.pid}/fd").iterdir()}
        assert len({name for name in open_files.values() if name.startswith("socket:")}) == 1
        child.kill()
        await child.wait()
