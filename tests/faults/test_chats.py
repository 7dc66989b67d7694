"""A server with chats under way is killed or stands still: they end, and their money is available again."""

import asyncio
import signal
import threading
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.api.raw_http import RawConnection, request
from tests.fake_providers import faults
from tests.faults.rig import CREDIT, Running, rigged, until
from tests.gateway import postgres_only

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

CHAT = {"model": "lab/chat", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 20}


async def start_stream(served: Running, key: str) -> RawConnection:
    """Return the connection when the first event has arrived."""
    connection = RawConnection(*await asyncio.open_connection("127.0.0.1", served.port))
    body = {**CHAT, "stream": True}
    await connection.send(request("POST", "/compat/v1/chat/completions", key=key, body=body))
    assert b" 200 " in await connection.reader.readuntil(b"\r\n")
    await connection.reader.readuntil(b"data: ")
    return connection


async def test_chats_of_a_killed_server_end_and_do_not_lock_their_key_out(tmp_path: Path, database: str) -> None:
    """The next server ends them when the lease has expired, which is short here: no hour has to pass."""
    async with rigged(tmp_path, database) as rig, AsyncExitStack() as streams:
        async with rig.serve() as served:
            limited = (await served.ask("POST", "/v1/keys", {"concurrent_requests": 3})).json["key"]
            rig.lab.chats.always(faults.stalled_stream())
            for _ in range(3):
                await streams.enter_async_context(await start_stream(served, limited))
            await served.kill()
        rows = await rig.rows("SELECT status FROM requests")
        assert [row["status"] for row in rows] == ["processing"] * 3
        rig.lab.chats.always(faults.ok)
        async with rig.serve() as served:

            async def ended() -> bool:
                return await rig.rows("SELECT id FROM requests WHERE status = 'processing'") == []

            await until(ended)
            assert (await served.ask("GET", "/v1/balance")).json["available"]["amount"] == CREDIT
            served.key = limited
            assert (await served.ask("POST", "/compat/v1/chat/completions", CHAT)).status == 200
        assert await rig.breaches() == []


@postgres_only
async def test_a_chat_of_a_server_that_was_taken_for_dead_is_a_loss(tmp_path: Path, database: str) -> None:
    """It stood still for longer than its lease, as a virtual machine that is moved; then the provider's answer came."""
    released = threading.Event()
    async with rigged(tmp_path, database) as rig, rig.serve() as first, rig.serve() as second:
        rig.lab.chats.next(faults.waiting(released))
        calling = asyncio.create_task(first.ask("POST", "/compat/v1/chat/completions", CHAT))
        try:
            await rig.lab.chats.reached(1)
            first.process.send_signal(signal.SIGSTOP)

            async def failed() -> bool:
                return await rig.rows("SELECT id FROM requests WHERE status = 'upstream_failure'") != []

            await until(failed)
        finally:
            released.set()
            first.process.send_signal(signal.SIGCONT)
        assert (await calling).status == 200

        async def lost() -> bool:
            return await rig.rows("SELECT ref FROM transfers WHERE kind = 'loss'") != []

        await until(lost)
        await until(lambda: "taken for dead" in first.said)
        assert (await second.ask("GET", "/v1/balance")).json["available"]["amount"] == CREDIT
        assert await rig.breaches() == []
