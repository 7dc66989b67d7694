"""A caller who hangs up while a replayed response is delayed leaves nothing behind."""

from typing import Any

import pytest

from penstock.gateway import Gateway
from penstock.generation_jobs.mailbox import Mailbox
from penstock.generations import endpoints
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


class Reads:
    """Counts the files that a gateway reads."""

    def __init__(self, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._read = gateway.media.read
        monkeypatch.setattr(gateway.media, "read", self._count_and_read)

    async def _count_and_read(self, media_id: str, size_bytes: int) -> Buffer:
        self.count += 1
        return await self._read(media_id, size_bytes)


@sqlite_only
async def test_images_are_read_after_the_delay(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served_api(open_gateway) as api:
        path = "/compat/v1/images/generations"
        live = await api.call("POST", path, IMAGE, headers={"x-service-replay": "record"})
        clock = api.running.clock
        reads = Reads(api.running.gateway, monkeypatch)
        headers = {"x-service-replay": "replay-or-error", "x-service-replay-latency": "21000,43000"}
        async with await api.served.connect() as connection:
            await connection.send(request("POST", path, key=api.running.key, body=IMAGE, headers=headers))
            await until(lambda: sleeps_for(clock, 21))
            clock.advance(21)
            await until(lambda: sleeps_for(clock, 22))
            assert reads.count == 0
            clock.advance(22)
            replayed = await connection.read_response()
        assert replayed.headers["x-service-replay-status"] == "replayed"
        assert replayed.json["data"] == live.json["data"]
        assert reads.count == 1


@sqlite_only
async def test_images_of_a_stream_are_read_after_the_delay(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that the job had in memory are not kept meanwhile: a delayed call costs nothing, and thousands may wait."""
    mailboxes: list[Mailbox] = []

    def remember(*arguments: Any) -> Mailbox:
        mailboxes.append(Mailbox(*arguments))
        return mailboxes[-1]

    async with served_api(open_gateway) as api:
        path = "/compat/v1/images/generations"
        live = await api.call("POST", path, IMAGE, headers={"x-service-replay": "record"})
        clock = api.running.clock
        monkeypatch.setattr(endpoints, "Mailbox", remember)
        reads = Reads(api.running.gateway, monkeypatch)
        headers = {"x-service-replay": "replay-or-error", "x-service-replay-latency": "0,43000"}
        async with await api.served.connect() as connection:
            body = {**IMAGE, "stream": True}
            await connection.send(request("POST", path, key=api.running.key, body=body, headers=headers))
            await until(lambda: sleeps_for(clock, 43))
            assert ([mailbox.end for mailbox in mailboxes], reads.count) == ([None], 0)
            clock.advance(43)
            replayed = await connection.read_response()
        assert live.json["data"][0]["b64_json"].encode() in replayed.body
