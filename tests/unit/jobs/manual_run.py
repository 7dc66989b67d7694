"""Videos that are accepted, and jobs that end when a test says so."""

import asyncio

from penstock.jobs.running import RunningJob
from penstock.schema import Caller
from tests.gateway import RunningGateway


class ManualRun:
    """Takes the place of `run_generation`: each job waits until the test says how it ends."""

    def __init__(self) -> None:
        self.started: list[RunningJob] = []
        self.ended: list[str] = []
        self._ends: dict[str, asyncio.Future[None]] = {}

    async def __call__(self, job: RunningJob) -> None:
        self.started.append(job)
        end = self._ends[job.id] = asyncio.get_running_loop().create_future()
        await end
        self.ended.append(job.id)

    def finish(self, request_id: str) -> None:
        self._ends[request_id].set_result(None)

    def fail(self, request_id: str, problem: Exception) -> None:
        self._ends[request_id].set_exception(problem)

    @property
    def ids(self) -> list[str]:
        return [job.id for job in self.started]


async def accept_videos(running: RunningGateway, count: int = 1, caller: Caller | None = None) -> list[str]:
    """Videos that nobody runs yet, in the order of their ids."""
    ids = []
    for _ in range(count):
        running.clock.advance(0.001)
        ids.append((await running.video(seconds=1, caller=caller)).json["id"])
    return ids


async def let_others_run(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def get_row(running: RunningGateway, request_id: str) -> dict[str, int]:
    found = await running.gateway.store.one("get_generation", id=request_id, org_id=running.caller.org_id)
    assert found is not None
    return found
