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
        delays.add(A, clock.steady_ms() + seconds * 1000, keeps_connection=False)
    with pytest.raises(RateLimited, match="At most 3 delayed") as caught:
        delays.add(A, clock.steady_ms() + 1, keeps_connection=False)
    assert caught.value.headers["retry-after"] == "10"
    delays.add(A, clock.steady_ms(), keeps_connection=False)  # does not wait
    delays.add(B, clock.steady_ms() + 1000, keeps_connection=False)
    clock.advance(11)
    delays.add(A, clock.steady_ms() + 1000, keeps_connection=False)
    with pytest.raises(RateLimited):
        delays.add(A, clock.steady_ms() + 1000, keeps_connection=False)


def test_few_may_keep_a_connection() -> None:
    clock = ManualClock()
    delays = Delays(clock)
    for _ in range(50):
        delays.add(A, clock.steady_ms() + 60_000, keeps_connection=True)
    with pytest.raises(RateLimited, match="At most 50 delayed"):
        delays.add(A, clock.steady_ms() + 60_000, keeps_connection=True)
    delays.add(A, clock.steady_ms() + 60_000, keeps_connection=False)
    delays.add(B, clock.steady_ms() + 60_000, keeps_connection=True)


@sqlite_only
@pytest.mark.parametrize("path", ["image", "video"])
async def test_images_keep_connections_and_videos_do_not(open_gateway: OpenGateway, path: str) -> None:
    bodies = {
        "image": {"model": "image-1", "prompt": "a pear"},
        "video": {"model": "video-1", "prompt": "a train", "seconds": 4},
    }
    async with open_gateway() as running:
        clock = running.gateway.clock
        running.gateway.delays = Delays(clock, most_connected=1)
        running.gateway.delays.add(running.caller.org_id, clock.steady_ms() + 60_000, keeps_connection=True)
        call = running.call(bodies[path], headers={"x-service-replay": "mock", "x-service-replay-latency": "0,60000"})
        if path == "video":
            await endpoints.start_video(running.gateway, call)
        else:
            with pytest.raises(RateLimited, match="At most 1 delayed"):
                await endpoints.make_images(running.gateway, call)


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
