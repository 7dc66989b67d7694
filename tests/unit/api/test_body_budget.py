"""Bodies that are being received share a number of bytes."""

import asyncio
from collections.abc import MutableMapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from penstock.api.asgi import AsgiApp
from penstock.api.body import Receive
from penstock.api.body_budget import BodyBudget
from penstock.errors import Unavailable
from penstock.generations import endpoints
from penstock.generations.plan import PlannedCall, make_plan
from penstock.schema import Caller
from penstock.settings import Settings
from penstock.values import OrgId
from tests.api.accounts import Account, another_account, first_account, opened
from tests.api.raw_http import RawConnection, Server, request, serving, until

KIB = 1024
SETTINGS = Settings(json_bytes=200 * KIB, form_bytes=200 * KIB, receiving_bytes=800 * KIB)


def caller(org: str, key: str) -> Caller:
    return Caller(org_id=OrgId(org), key_id=key)


def sender(size: int) -> Receive:
    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"x" * size, "more_body": True}

    return receive


async def test_a_key_an_organization_and_everybody_have_a_limit() -> None:
    budget = BodyBudget(SETTINGS)
    with budget.share(caller("a", "a1"), {}, sender(200 * KIB)) as first:
        await first.receive()
        with (
            budget.share(caller("a", "a1"), {}, sender(200 * KIB)) as again,
            pytest.raises(Unavailable),  # a quarter for the key
        ):
            await again.receive()
        with (
            budget.share(caller("a", "a2"), {}, sender(200 * KIB)) as second,
            budget.share(caller("a", "a3"), {}, sender(1)) as third,
        ):
            await second.receive()
            with pytest.raises(Unavailable):  # half for the organization
                await third.receive()
            with (
                budget.share(caller("b", "b1"), {}, sender(200 * KIB)) as b,
                budget.share(caller("", ""), {}, sender(200 * KIB)) as anonymous,
                budget.share(caller("c", "c1"), {}, sender(1)) as c,
            ):
                await b.receive()
                await anonymous.receive()
                with pytest.raises(Unavailable):
                    await c.receive()
    assert budget.used == 0


async def test_a_body_that_cannot_fit_is_refused_before_it_is_read() -> None:
    async def never_called() -> MutableMapping[str, Any]:
        raise AssertionError

    budget = BodyBudget(SETTINGS)
    with budget.share(caller("a", "a1"), {}, sender(150 * KIB)) as here:
        await here.receive()
        announced = {"content-length": str(100 * KIB)}
        with (
            budget.share(caller("a", "a1"), announced, never_called) as more,
            pytest.raises(Unavailable) as refused,
        ):
            await more.receive()
    assert refused.value.headers["retry-after"] == "1"
    assert refused.value.should_retry
    assert budget.used == 0


def test_the_bytes_for_all_bodies_are_enough_for_one() -> None:
    with pytest.raises(ValueError, match="receiving_bytes"):
        Settings(form_bytes=2, json_bytes=3, receiving_bytes=2)


# -------------------------------------------------------------------------------------------------------- real sockets

PATH = "/compat/v1/images/generations"
START = b'{"prompt":"'


async def begin(
    served: Server, stack: AsyncExitStack, account: Account, size: int, start: bytes = START, filler: bytes = b"x"
) -> RawConnection:
    """Send a part of a body."""
    connection = await stack.enter_async_context(await served.connect())
    headers = {"transfer-encoding": "chunked", "content-type": "application/json"}
    await connection.send(request("POST", PATH, key=account.plain.key, headers=headers))
    await connection.send(b"%x\r\n%s\r\n" % (size, start + filler * (size - len(start))))
    return connection


async def test_many_large_bodies_of_one_tenant_leave_room_for_another(tmp_path: Path) -> None:
    size = 200 * KIB
    async with opened(tmp_path, json_bytes=size, form_bytes=size, receiving_bytes=4 * size) as gateway:
        mine, theirs = await first_account(gateway), await another_account(gateway)
        app = AsgiApp(gateway)
        async with serving(app, gateway.settings) as served, AsyncExitStack() as stack:
            greedy = [await begin(served, stack, mine, 150 * KIB) for _ in range(10)]
            refused = 0
            for connection in greedy[1:]:
                response = await connection.read_response()
                assert (response.status, response.code) == (503, "UNAVAILABLE")
                assert (response.headers["retry-after"], response.headers["x-should-retry"]) == ("1", "true")
                refused += 1
            assert refused == 9
            assert app._budget.used <= 200 * KIB
            other = await begin(served, stack, theirs, 150 * KIB)
            await other.send(b'2\r\n"}\r\n0\r\n\r\n')
            assert (await other.read_response()).status == 400  # it has no model
            await greedy[0].send(b'2\r\n"}\r\n0\r\n\r\n')
            assert (await greedy[0].read_response()).status == 400
            await until(lambda: app._budget.used == 0)


async def test_a_body_counts_until_its_call_has_ended_or_money_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that calls which cost nothing cannot fill the memory while they wait, for example to have images checked."""
    entered, leave = asyncio.Event(), asyncio.Event()

    async def plan_later(*arguments: Any) -> PlannedCall:
        entered.set()
        await leave.wait()
        return await make_plan(*arguments)

    monkeypatch.setattr(endpoints, "make_plan", plan_later)
    size = 200 * KIB
    async with opened(tmp_path, json_bytes=size, form_bytes=size, receiving_bytes=4 * size) as gateway:
        mine = await first_account(gateway)
        app = AsgiApp(gateway)
        async with serving(app, gateway.settings) as served, AsyncExitStack() as stack:
            first = await begin(served, stack, mine, 150 * KIB, b'{"model":"nobody/has-it","prompt":"a fox"', b" ")
            await first.send(b"1\r\n}\r\n0\r\n\r\n")
            await asyncio.wait_for(entered.wait(), 30)
            assert app._budget.used > 150 * KIB
            second = await begin(served, stack, mine, 150 * KIB)
            assert (await second.read_response()).status == 503
            leave.set()
            assert (await first.read_response()).status == 404  # nobody has the model
            await until(lambda: app._budget.used == 0)


async def test_a_call_without_a_key_is_refused_before_its_body_is_read(tmp_path: Path) -> None:
    async with (
        opened(tmp_path) as gateway,
        serving(AsgiApp(gateway), gateway.settings) as served,
        await served.connect() as connection,
    ):
        headers = {"content-length": "1000000", "content-type": "application/json"}
        await connection.send(request("POST", PATH, headers=headers))
        assert (await connection.read_response()).code == "AUTHENTICATION_FAILED"


async def test_a_disconnected_client_gives_its_bytes_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway:
        mine = await first_account(gateway)
        app = AsgiApp(gateway)
        async with serving(app, gateway.settings) as served, AsyncExitStack() as stack:
            connection = await begin(served, stack, mine, 150 * KIB)
            await until(lambda: app._budget.used)
            connection.writer.transport.abort()
            await until(lambda: app._budget.used == 0)
