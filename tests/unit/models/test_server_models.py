"""Servers are asked for their models once in a while, and a server that is down is no error."""

import asyncio
from typing import Any

from penstock.models.catalog import Catalog
from penstock.models.server_models import ServerModels
from penstock.providers import discover
from penstock.settings import Settings
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure
from tests.manual_clock import ManualClock


class FakeUpstream:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_down = False

    async def read_list(self, candidate: Candidate, template: str, read: Any, *, seconds: float) -> Any:
        self.asked.append(candidate.provider.slug)
        await asyncio.sleep(0)
        if self.is_down:
            raise AttemptFailed(Failure("unsent", "down", sent=False))
        return read({"data": [{"id": "a"}, {"id": "b/c"}, {"id": 7}]})


def opened(upstream: Any, clock: ManualClock, **environ: str) -> ServerModels:
    return ServerModels(Catalog(discover(), Settings(), environ), upstream, clock)


async def test_calls_at_the_same_time_ask_once_and_a_minute_later_again() -> None:
    upstream, clock = FakeUpstream(), ManualClock()
    models = opened(upstream, clock, VLLM_URL="http://vllm.test", OLLAMA_URL="http://ollama.test")
    both = await asyncio.gather(models.describe_all(), models.describe_all())
    assert sorted(upstream.asked) == ["ollama", "vllm"]
    assert {model["id"] for model in both[0]} == {"vllm/a", "vllm/b/c", "ollama/a", "ollama/b/c"}
    assert (await models.describe("vllm/b/c"))["providers"] == ["vllm"]
    assert len(upstream.asked) == 2
    clock.advance(61)
    await models.describe_all()
    assert len(upstream.asked) == 4


async def test_a_server_that_is_down_has_no_models_and_is_asked_again_soon() -> None:
    upstream, clock = FakeUpstream(), ManualClock()
    models = opened(upstream, clock, LLAMACPP_URL="http://llama.test")
    upstream.is_down = True
    assert await models.describe_all() == []
    upstream.is_down = False
    assert await models.describe_all() == []
    clock.advance(11)
    assert len(await models.describe_all()) == 2


async def test_without_servers_nobody_is_asked() -> None:
    upstream = FakeUpstream()
    assert await opened(upstream, ManualClock()).describe_all() == []
    assert upstream.asked == []
