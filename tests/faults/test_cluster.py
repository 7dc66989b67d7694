"""Servers, workers and processes of one server on one database, killed at random under calls of every kind."""

import asyncio
import random
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.faults.callers import Callers
from tests.faults.rig import Rig, Running, rigged, until
from tests.gateway import postgres_only

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]

UNKNOWN = frozenset({"UPSTREAM_OUTCOME_UNKNOWN"})
# Longer than elsewhere: with four processes on a busy machine, one that is only slow must not be taken for dead.
LEASES = {"PENSTOCK_LEASE_SECONDS": "6"}
_NEVER_SECONDS = 86_400


@dataclass(slots=True)
class Place:
    """A place in the cluster: a process that is started again whenever it was killed."""

    is_server: bool
    process: Running | None = field(default=None, init=False)
    _is_over: bool = field(default=False, init=False)

    async def keep_running(self, rig: Rig, callers: Callers) -> None:
        while not self._is_over:
            async with self._start(rig) as process:
                self.process = process
                if self.is_server:
                    await callers.call(process)
                if not self._is_over:
                    await process.died(_NEVER_SECONDS)
                self.process = None

    async def stop(self) -> None:
        self._is_over = True
        if self.process:
            await self.process.kill()

    def _start(self, rig: Rig) -> AbstractAsyncContextManager[Running]:
        if self.is_server:
            return rig.serve(**LEASES, PENSTOCK_WORKER="false")
        return rig.work(**LEASES)

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
            callers.have_enough = True
            await asyncio.gather(*(place.stop() for place in places))
            await asyncio.gather(*tasks)
    with capsys.disabled():
        sys.stdout.write(f"\n{kills} kills: {dict(found)}\n")
    assert not callers.refused
    assert callers.fewest() > kills


@postgres_only
async def test_processes_of_one_server_killed_at_random(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    """The others go on, replacements come, and everything that was answered is recorded and charged once."""
    kills: int = request.config.getoption("--kills")
    chance = random.Random(kills)
    async with rigged(tmp_path, database) as rig, rig.serve(**LEASES, PENSTOCK_PROCESSES="3") as server:
        supervisor = psutil.Process(server.process.pid)
        callers = Callers(rig, share_port=True)
        calling = asyncio.create_task(callers.call(server))
        try:
            for _ in range(kills):
                await until(lambda: len(supervisor.children()) == 3)
                await asyncio.sleep(chance.uniform(0.05, 2.0))
                chance.choice(supervisor.children()).kill()
                assert await rig.breaches() == []
            await until(lambda: callers.fewest() > kills)
        finally:
            callers.have_enough = True
            await calling
        await callers.check(server, kills, UNKNOWN)
        assert server.process.returncode is None, "the supervisor lives"
        assert await server.stop() == 0
    assert not callers.refused
