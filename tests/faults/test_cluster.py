"""Two servers and two workers on one database, killed at random under videos, images and chats."""

import asyncio
import random
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.clock import cancel_and_wait
from tests.faults.callers import Callers
from tests.faults.rig import Rig, Running, rigged, until
from tests.gateway import postgres_only

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]

UNKNOWN = frozenset({"UPSTREAM_OUTCOME_UNKNOWN"})


@dataclass(slots=True)
class Place:
    """A place in the cluster: a process that is started again whenever it was killed."""

    is_server: bool
    process: Running | None = field(default=None, init=False)

    async def keep_running(self, rig: Rig, callers: Callers) -> None:
        while True:
            async with self._start(rig) as process:
                self.process = process
                if self.is_server:
                    await callers.call(process)
                await process.process.wait()
                self.process = None

    def _start(self, rig: Rig) -> AbstractAsyncContextManager[Running]:
        return rig.serve(PENSTOCK_WORKER="false") if self.is_server else rig.work()

    def runs(self) -> bool:
        return self.process is not None


@postgres_only
async def test_a_cluster_killed_at_random(
    tmp_path: Path, database: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everything that was answered is recorded and charged once. `--kills 100` runs for some minutes."""
    kills: int = request.config.getoption("--kills")
    chance = random.Random(kills)
    places = [Place(is_server=True), Place(is_server=True), Place(is_server=False), Place(is_server=False)]
    async with rigged(tmp_path, database) as rig:
        callers = Callers(rig)
        tasks = [asyncio.create_task(places[0].keep_running(rig, callers))]
        try:
            await until(places[0].runs)  # it creates the database and the key
            tasks += [asyncio.create_task(place.keep_running(rig, callers)) for place in places[1:]]
            await until(lambda: all(place.runs() for place in places))
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(0.05, 2.0))
                await until(lambda: sum(place.runs() for place in places) > 1)
                victims = [place.process for place in places if place.process]
                await chance.choice(victims).kill()
                assert await rig.breaches() == []
            callers.have_enough = True
            await until(lambda: all(place.runs() for place in places))
            assert places[0].process
            found = await callers.check(places[0].process, kills, UNKNOWN)
        finally:
            await cancel_and_wait(tasks)
    with capsys.disabled():
        sys.stdout.write(f"\n{kills} kills: {dict(found)}\n")
    assert not callers.refused
    assert min(len(callers.videos), len(callers.images), len(callers.recorded)) > kills
