"""Bodies that are being received share a number of bytes."""

from collections.abc import MutableMapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from penstock.api.asgi import AsgiApp
from penstock.api.body import Receive
from penstock.api.receiving import BodyBudget
from penstock.errors import Unavailable
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
    with budget.receiving(caller("a", "a1"), {}, sender(200 * KIB)) as receive_first:
        await receive_first()
        with (
            budget.receiving(caller("a", "a1"), {}, sender(200 * KIB)) as receive_again,
            pytest.raises(Unavailable),  # a quarter for the key
        ):
            await receive_again()
        with (
            budget.receiving(caller("a", "a2"), {}, sender(200 * KIB)) as receive_second,
            budget.receiving(caller("a", "a3"), {}, sender(1)) as receive_third,
        ):
            await receive_second()
            with pytest.raises(Unavailable):  # half for the organization
                await receive_third()
            with (
                budget.receiving(caller("b", "b1"), {}, sender(200 * KIB)) as receive_b,
                budget.receiving(caller("", ""), {}, sender(200 * KIB)) as receive_anonymous,
                budget.receiving(caller("c", "c1"), {}, sender(1)) as receive_c,
            ):
                await receive_b()
                await receive_anonymous()
                with pytest.raises(Unavailable):
                    await receive_c()
    assert budget.used == 0


async def test_a_body_that_cannot_fit_is_refused_before_it_is_read() -> None:
    async def never_called() -> MutableMapping[str, Any]:
        raise AssertionError

    budget = BodyBudget(SETTINGS)
    with budget.receiving(caller("a", "a1"), {}, sender(150 * KIB)) as receive:
        await receive()
        announced = {"content-length": str(100 * KIB)}
        with (
            budget.receiving(caller("a", "a1"), announced, never_called) as receive_more,
            pytest.raises(Unavailable) as refused,
        ):
            await receive_more()
    assert refused.value.headers["retry-after"] == "1"
    assert refused.value.should_retry
    assert budget.used == 0


def test_the_bytes_for_all_bodies_are_enough_for_one() -> None:
    with pytest.raises(ValueError, match="receiving_bytes"):
        Settings(form_bytes=2, json_bytes=3, receiving_bytes=2)


# -------------------------------------------------------------------------------------------------------- real sockets

PATH = "/compat/v1/images/generations"
START = b'{"prompt":"'


async def begin(served: Server, stack: AsyncExitStack, account: Account, size: int) -> RawConnection:
    """Send a part of a body."""
    connection = await stack.enter_async_context(await served.connect())
    headers = {"transfer-encoding": "chunked", "content-type": "application/json"}
    await connection.send(request("POST", PATH, key=account.plain.key, headers=headers))
    await connection.send(b"%x\r\n%s\r\n" % (size, START + b"x" * (size - len(START))))
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
