"""An organization may have a quarter of the places while half of them are taken."""

import asyncio
from pathlib import Path

import pytest

from penstock.api.asgi import AsgiApp
from penstock.api.call_shares import CallShares
from penstock.api.route import Route
from penstock.errors import RateLimited
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.values import OrgId
from tests.api.accounts import first_account, opened
from tests.api.raw_http import request, serving, until

A, B, C = OrgId("org_a"), OrgId("org_b"), OrgId("org_c")


def test_one_that_is_alone_has_half_of_the_places() -> None:
    shares = CallShares()
    for _ in range(50):
        shares.enter(A, 100)
    with pytest.raises(RateLimited, match="in progress"):
        shares.enter(A, 100)
    for _ in range(25):
        shares.enter(B, 100)
    with pytest.raises(RateLimited):
        shares.enter(B, 100)
    for _ in range(25):
        shares.enter(C, 100)
    shares.leave(A)
    with pytest.raises(RateLimited):
        shares.enter(A, 100)


def test_what_has_ended_is_not_counted() -> None:
    shares = CallShares()
    for _ in range(1000):
        shares.leave(shares.enter(A, 4))
    assert not shares._calls


def test_calls_of_no_organization_are_not_counted() -> None:
    shares = CallShares()
    for _ in range(1000):
        assert not shares.enter(OrgId(""), 4)
    shares.leave(OrgId(""))


async def test_calls_of_one_organization_leave_places_for_others(tmp_path: Path) -> None:
    opens = asyncio.Event()

    async def wait(gateway: Gateway, call: Call) -> Response:
        await opens.wait()
        return Response(json={})

    async with opened(tmp_path) as gateway:
        key = (await first_account(gateway)).plain.key
        app = AsgiApp(gateway, [Route("GET", "/wait", wait, "Wait")])
        async with serving(app, gateway.settings, most=4) as served, asyncio.timeout(60):
            waiting = [await served.connect() for _ in range(2)]
            for connection in waiting:
                await connection.send(request("GET", "/wait", key=key))
            await until(lambda: sum(app._shares._calls.values()) == 2)
            refused = await served.call("GET", "/wait", key=key)
            assert (refused.status, refused.headers["retry-after"]) == (429, "1")
            opens.set()
            for connection in waiting:
                assert (await connection.read_response()).status == 200
                connection.writer.close()
            assert (await served.call("GET", "/wait", key=key)).status == 200
            assert not app._shares._calls
