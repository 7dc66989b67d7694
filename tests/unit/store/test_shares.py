"""Shares of the connections: of one organization's writes, of all writes, and what is left for reads."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest

from penstock.chat.endpoint import complete_chat
from penstock.errors import Problem, StorageUnavailable
from penstock.store.base import Row
from penstock.store.queries import Query
from penstock.store.shares import WriteShares
from penstock.values import OrgId
from tests.api.raw_http import until
from tests.fake_providers import faults
from tests.gateway import OpenGateway, caller_with, postgres_only, sqlite_only


async def test_one_organization_has_half_of_the_connections() -> None:
    shares = WriteShares(8, wait_seconds=0.01)
    async with AsyncExitStack() as stack:
        for _ in range(4):
            await stack.enter_async_context(shares.take(OrgId("org_a")))
        with pytest.raises(StorageUnavailable):
            await stack.enter_async_context(shares.take(OrgId("org_a")))
        await stack.enter_async_context(shares.take(OrgId("org_b")))
        await stack.enter_async_context(shares.take(None))
        with pytest.raises(StorageUnavailable):  # two connections are left for reads
            await stack.enter_async_context(shares.take(OrgId("org_c")))
    assert shares._by_org == {}
    async with shares.take(OrgId("org_a")):
        pass


async def test_a_single_connection_is_shared_in_turn() -> None:
    shares = WriteShares(1, wait_seconds=10)
    done = []

    async def write(org_id: OrgId) -> None:
        async with shares.take(org_id):
            done.append(org_id)

    await asyncio.gather(write(OrgId("org_a")), write(OrgId("org_b")))
    assert done == ["org_a", "org_b"]


async def test_slow_reads_of_one_organization_leave_turns_for_others(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise all lists and sums of others would wait until those of one organization, however many, are read."""
    async with open_gateway(works=False) as running:
        store = running.gateway.store
        name = "_read_again" if store.dialect == "postgres" else "_read_slowly"
        read_really = getattr(store, name)
        begun: list[str] = []
        ends = asyncio.Semaphore(0)

        async def read(query: Query, values: Row) -> Any:
            if query.name != "list_credits":
                return await read_really(query, values)
            begun.append(values["org_id"])
            await ends.acquire()
            return []

        monkeypatch.setattr(store, name, read)
        org_ids = ["org_a"] * 20 + ["org_b"]
        reads = [asyncio.create_task(store.slow("list_credits", org_id=org_id, limit=1)) for org_id in org_ids]
        await until(lambda: len(begun) == 2)
        ends.release()
        await until(lambda: len(begun) == 3)
        assert begun == ["org_a", "org_a", "org_b"]
        for _ in reads:
            ends.release()
        await asyncio.gather(*reads)


@postgres_only
@pytest.mark.parametrize("limits", [{}, {"concurrent_requests": 100}], ids=["together", "one by one"])
async def test_a_locked_balance_delays_its_own_organization_only(
    open_gateway: OpenGateway, limits: dict[str, Any]
) -> None:
    """Calls of a key with limits are accepted one by one: without shares, they would wait on every connection."""
    async with open_gateway(works=False, database_connections=4) as running:
        other = await running.create_caller_in_new_org()
        caller = caller_with(running.caller, **limits)
        database = running.gateway.settings.database
        lock = f"SELECT id FROM orgs WHERE id = '{running.caller.org_id}' FOR UPDATE"  # noqa: S608
        async with await psycopg.AsyncConnection.connect(database) as outsider:
            await outsider.execute(lock.encode())
            stuck = [asyncio.create_task(running.video(caller=caller)) for _ in range(8)]
            waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            transactions = 2 if limits else 1  # acceptances that come at once share one, unless they are counted
            while len(await running.rows(waiting)) < transactions:
                pass
            for _ in range(3):
                assert (await running.video(caller=other)).status == 202
                assert await running.gateway.balances.get(running.caller.org_id)
                assert await running.gateway.ready()
            assert not any(task.done() for task in stuck)
            await outsider.rollback()
        responses = await asyncio.gather(*stuck)
        assert {response.status for response in responses} == {202}


@sqlite_only
async def test_writes_that_change_one_balance_use_the_share_of_its_organization(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:
        store = running.gateway.store
        org_id = running.caller.org_id
        write = store.write
        shares: list[str | None] = []

        async def note_and_write(work: Any, *, org_id: OrgId | None = None, **options: Any) -> Any:
            shares.append(org_id)
            return await write(work, org_id=org_id, **options)

        monkeypatch.setattr(store, "write", note_and_write)
        limited = caller_with(running.caller, concurrent_requests=5)
        await running.image(caller=limited)
        assert shares.count(org_id) == 1, "an acceptance that is counted"
        body = {"model": "lab/chat", "messages": [{"role": "user", "content": "hi"}]}
        await complete_chat(running.gateway, running.call(body, caller=limited))
        assert shares.count(org_id) == 2, "a chat that is counted"
        running.lab.images.always(faults.broken)
        with pytest.raises(Problem):
            await running.image()
        assert shares.count(org_id) == 2, "a failure, which shares its transaction with other ends"
