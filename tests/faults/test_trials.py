"""kill -9 while a trial runs and people vote on it: each output is paid once, and each vote is counted once."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.api.raw_http import RawResponse
from tests.faults.batch_rows import check_rows, has_status
from tests.faults.rig import Rig, Running, rigged, until

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(3600)]

_MODELS = ["image-1", "atelier/sketch"]
_MOST_PROMPTS = 200
_LONGEST_SECONDS = 0.9


class Voter:
    """Somebody who votes on one pair after another, and votes again on a pair whose vote was cut off."""

    def __init__(self) -> None:
        self.link = ""
        self.known_as: str | None = None
        self.votes = 0  # that are answered
        self._cut_off: dict[str, Any] | None = None

    async def vote(self, served: Running) -> bool:
        """Vote on a pair; whether there was one."""
        if self._cut_off is None:
            shown = await self._ask(served, "/vote/pair", {"link": self.link, **self._name()})
            self.known_as = shown.json["voter"]
            if shown.json["pair"] is None:
                return False
            self._cut_off = {"pair": shown.json["pair"], "choice": "left"}
        await self._ask(served, "/vote", self._cut_off)
        self._cut_off = None
        self.votes += 1
        return True

    async def vote_until_killed(self, served: Running) -> None:
        while True:
            try:
                if not await self.vote(served):
                    await asyncio.sleep(0.05)  # until there are more outputs
            except (OSError, EOFError, TimeoutError):
                return

    def _name(self) -> dict[str, str]:
        return {"voter": self.known_as} if self.known_as else {}

    async def _ask(self, served: Running, path: str, body: dict[str, Any]) -> RawResponse:
        said = await served.ask("POST", path, body)
        assert said.status == 200, said
        return said


async def make_trial(served: Running, prompts: int) -> dict[str, Any]:
    """A trial whose budget is used up before it has ended."""
    body: dict[str, Any] = {
        "models": _MODELS,
        "prompts": [f"pear {number}" for number in range(prompts)],
        "parameters": {"size": "64x64"},
    }
    estimate = await served.ask("POST", "/v1/trials?dryRun=true", body)
    made = await served.ask("POST", "/v1/trials", {**body, "max_cost": estimate.json["estimated_cost"] / 2})
    assert made.status == 200, made
    trial: dict[str, Any] = made.json
    return trial


@asynccontextmanager
async def served_to(voter: Voter, rig: Rig) -> AsyncIterator[Running]:
    """A server that is killed at the end, while somebody votes."""
    async with rig.serve() as served:
        voting = asyncio.create_task(voter.vote_until_killed(served))
        yield served
        await served.kill()
        await voting


async def kill_often(rig: Rig, voter: Voter, chance: random.Random, kills: int) -> None:
    for _ in range(kills):
        async with served_to(voter, rig):
            await asyncio.sleep(chance.uniform(0.05, _LONGEST_SECONDS))
        assert await rig.breaches() == []


async def test_a_trial_survives_kills_at_random_moments_and_goes_on_with_a_larger_budget(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    kills: int = request.config.getoption("--kills")
    prompts = min(_MOST_PROMPTS, request.config.getoption("--batch-rows") // len(_MODELS))
    chance, voter = random.Random(kills), Voter()
    async with rigged(tmp_path, database) as rig:
        async with rig.serve() as served:
            trial = await make_trial(served, prompts)
            link = await served.ask("POST", f"/v1/trials/{trial['id']}/link", {})
            voter.link = link.json["url"].partition("#")[2]
            await served.kill()
        await kill_often(rig, voter, chance, kills // 2)
        async with served_to(voter, rig) as served:
            await until(lambda: has_status(rig, "paused"), 120)
        async with served_to(voter, rig) as served:
            paused = (await served.ask("GET", f"/v1/trials/{trial['id']}")).json
            assert (paused["status"], paused["reason"]) == ("paused", "max_cost")
            assert 0 < paused["cost"] <= trial["max_cost"]
            resumed = await served.ask("POST", f"/v1/batches/{trial['batch_id']}/resume", {"max_cost": 1000})
            assert resumed.status == 200, resumed
        await kill_often(rig, voter, chance, kills - kills // 2)
        async with rig.serve() as served:
            await until(lambda: has_status(rig, "completed"), 120)
            while await voter.vote(served):
                pass
            await check_rows(rig, served, trial["batch_id"], prompts * len(_MODELS))
            ended = (await served.ask("GET", f"/v1/trials/{trial['id']}")).json
            assert (ended["votes"], ended["voters"], voter.votes) == (prompts, 1, prompts)
