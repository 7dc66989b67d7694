"""A server with chats under way is killed: they end, and their money is available again."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.api.raw_http import RawConnection, request
from tests.fake_providers import faults
from tests.faults.rig import CREDIT, Running, rigged, until

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
