"""A served gateway with two organizations."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from penstock.api.asgi import AsgiApp
from penstock.gateway import Gateway
from tests.api.accounts import Account, another_account, first_account, opened
from tests.api.raw_http import RawResponse, Server, serving
from tests.manual_clock import ManualClock


class RunningGateway:
    """A served gateway with two organizations."""

    def __init__(self, served: Server, gateway: Gateway, mine: Account, theirs: Account) -> None:
        self.served, self.gateway, self.mine, self.theirs = served, gateway, mine, theirs

    async def get(self, path: str, account: Account | None = None) -> RawResponse:
        return await self.served.call("GET", path, key=(account or self.mine).plain.key)

    async def admin(self, method: str, path: str, body: Any = None) -> RawResponse:
        return await self.served.call(method, path, key=self.mine.admin.key, body=body)

    async def refused(self, count: int, account: Account | None = None) -> list[str]:
        """Make refused calls, for a model that does not exist; return their ids, newest first."""
        found: list[str] = []
        for _ in range(count):
            response = await self.served.call(
                "POST",
                "/compat/v1/images/generations",
                key=(account or self.mine).plain.key,
                body={"prompt": "fox", "model": "no/such"},
            )
            assert response.code == "MODEL_NOT_FOUND"
            found.insert(0, response.headers["x-request-id"])
            assert isinstance(self.gateway.clock, ManualClock)
            self.gateway.clock.advance(60)
        return found


@asynccontextmanager
async def running(folder: Path, **options: Any) -> AsyncIterator[RunningGateway]:
    async with opened(folder, **{"clock": ManualClock(), **options}) as gateway:
        mine, theirs = await first_account(gateway), await another_account(gateway)
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            yield RunningGateway(served, gateway, mine, theirs)


def ids(response: RawResponse) -> list[str]:
    assert response.status == 200, response
    assert response.json["object"] == "list"
    return [row["id"] for row in response.json["data"]]
