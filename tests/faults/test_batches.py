"""kill -9 while batches run: every row ends once, is charged once, and the batch costs their sum."""

import asyncio
import random
from pathlib import Path

import pytest

from tests.faults.batch_rows import check_rows, has_status
from tests.faults.rig import rigged, until

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(3600)]

_CHAT_EVERY = 5
_LONGEST_SECONDS = 0.9  # a start takes longer than this, so most kills come while rows run
# What a chat that was killed before its hold was stored waits for on Postgres: longer than any call may take.
_SHORT_CALLS = {"PENSTOCK_UPSTREAM_SECONDS": "5", "PENSTOCK_STREAM_SECONDS": "5"}


def row(number: int) -> dict[str, object]:
    if number % _CHAT_EVERY == 0:
        messages = [{"role": "user", "content": f"one two {number}"}]
        return {"url": "/v1/chat/completions", "body": {"model": "lab/chat", "messages": messages}}
    body = {"model": "image-1", "prompt": f"pear {number}", "size": "64x64"}
    return {"url": "/v1/images/generations", "body": body}


async def test_a_batch_survives_kills_at_random_moments(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    """`--batch-rows 10000 --kills 20` is the large form."""
    kills: int = request.config.getoption("--kills")
    rows: int = request.config.getoption("--batch-rows")
    chance = random.Random(kills)
    async with rigged(tmp_path, database) as rig:
        async with rig.serve(**_SHORT_CALLS) as served:
            body = {"requests": [row(number) for number in range(1, rows + 1)], "concurrency": 16}
            made = await served.ask("POST", "/v1/batches", body)
            assert made.status == 200, made
            await asyncio.sleep(chance.uniform(0.05, _LONGEST_SECONDS))
            await served.kill()
        for _ in range(kills - 1):
            async with rig.serve(**_SHORT_CALLS) as served:
                await asyncio.sleep(chance.uniform(0.05, _LONGEST_SECONDS * max(1, rows // 1000)))
                await served.kill()
            assert await rig.breaches() == []
        async with rig.serve(**_SHORT_CALLS) as served:
            await until(lambda: has_status(rig, "completed"), 120 + rows / 10)
            await check_rows(rig, served, made.json["id"], rows)
