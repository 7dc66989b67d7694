"""A caller who hangs up while a replayed response is delayed leaves nothing behind."""

import pytest

from penstock.long_bodies.buffers import Buffer
from tests.api.http_calls import served_api
from tests.api.raw_http import request, until
from tests.gateway import OpenGateway, sqlite_only
from tests.manual_clock import ManualClock

IMAGE = {"model": "image-1", "prompt": "a pear", "size": "64x64", "response_format": "b64_json"}


def sleeps_for(clock: ManualClock, seconds: float) -> bool:
    """Whether somebody waits for exactly this time from now on, which nothing else in the gateway does."""
    due = clock.monotonic() + seconds
    return any(not woken.done() and abs(at - due) < 0.01 for at, _, woken in clock._sleepers)


@sqlite_only
async def test_a_caller_who_hangs_up_during_the_delay_frees_the_call(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        path = "/compat/v1/images/generations"
        assert (await api.call("POST", path, IMAGE, headers={"x-service-replay": "record"})).status == 200
        clock = api.running.clock
        headers = {"x-service-replay": "replay-or-error", "x-service-replay-latency": "50000,60000"}
        async with await api.served.connect() as connection:
            await connection.send(request("POST", path, key=api.running.key, body=IMAGE, headers=headers))
            await until(lambda: sleeps_for(clock, 50))
        await until(lambda: not sleeps_for(clock, 50))


@sqlite_only
async def test_images_are_read_after_the_delay(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = 0
    async with served_api(open_gateway) as api:
        path = "/compat/v1/images/generations"
        live = await api.call("POST", path, IMAGE, headers={"x-service-replay": "record"})
        clock = api.running.clock
        read = api.running.gateway.media.read

        async def count_and_read(media_id: str, size_bytes: int) -> Buffer:
            nonlocal reads
            reads += 1
            return await read(media_id, size_bytes)

        monkeypatch.setattr(api.running.gateway.media, "read", count_and_read)
        headers = {"x-service-replay": "replay-or-error", "x-service-replay-latency": "21000,43000"}
        async with await api.served.connect() as connection:
            await connection.send(request("POST", path, key=api.running.key, body=IMAGE, headers=headers))
            await until(lambda: sleeps_for(clock, 21))
            clock.advance(21)
            await until(lambda: sleeps_for(clock, 22))
            assert reads == 0
            clock.advance(22)
            replayed = await connection.read_response()
        assert replayed.headers["x-service-replay-status"] == "replayed"
        assert replayed.json["data"] == live.json["data"]
        assert reads == 1
