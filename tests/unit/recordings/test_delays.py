"""Delayed replays and mocks, which are free, are limited for each organization."""

import pytest

from penstock.errors import RateLimited
from penstock.generations import endpoints
from penstock.recordings.delays import Delays
from penstock.values import OrgId
from tests.gateway import OpenGateway, sqlite_only
from tests.manual_clock import ManualClock

A, B = OrgId("org_a"), OrgId("org_b")


def test_an_organization_may_have_so_many_that_wait() -> None:
    clock = ManualClock()
    delays = Delays(clock, most=3)
    for seconds in (10, 60, 60):
        delays.add(A, clock.steady_ms() + seconds * 1000)
    with pytest.raises(RateLimited, match="At most 3 delayed") as caught:
        delays.add(A, clock.steady_ms() + 1)
    assert caught.value.headers["retry-after"] == "10"
    delays.add(A, clock.steady_ms())  # does not wait
    delays.add(B, clock.steady_ms() + 1000)
    clock.advance(11)
    delays.add(A, clock.steady_ms() + 1000)
    with pytest.raises(RateLimited):
        delays.add(A, clock.steady_ms() + 1000)


@sqlite_only
@pytest.mark.parametrize("mode", ["replay-or-error", "mock"])
async def test_replays_and_mocks_count(open_gateway: OpenGateway, mode: str) -> None:
    video = {"model": "video-1", "prompt": "a train", "seconds": 4}
    async with open_gateway() as running:
        gateway = running.gateway
        recorded = await endpoints.start_video(gateway, running.call(video, headers={"x-service-replay": "record"}))
        await running.wait_for_request(recorded.json["id"])
        gateway.delays = Delays(gateway.clock, most=2)
        headers = {"x-service-replay": mode, "x-service-replay-latency": "100,60000"}
        for _ in range(2):
            await endpoints.start_video(gateway, running.call(video, headers=headers))
        with pytest.raises(RateLimited):
            await endpoints.start_video(gateway, running.call(video, headers=headers))
        await endpoints.start_video(gateway, running.call(video, headers={"x-service-replay": mode}))
