"""A process that is stopping or has no database is alive but not ready."""

from pathlib import Path

from penstock.api.asgi import AsgiApp
from penstock.api.endpoints import health
from tests.api.accounts import first_account, opened
from tests.api.raw_http import serving
from tests.gateway import OpenGateway, postgres_only


async def test_a_new_process_is_alive_and_ready(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        assert (await served.call("GET", "/healthz")).json == {"status": "ok"}
        response = await served.call("GET", "/readyz")
        assert (response.status, response.code) == (503, "UNAVAILABLE")  # nobody could call: there is no key
        await first_account(gateway)
        assert (await served.call("GET", "/readyz")).json == {"status": "ready"}


async def test_a_draining_process_is_alive_but_not_ready(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        await first_account(gateway)
        gateway.draining = True
        response = await served.call("GET", "/readyz")
        assert (response.status, response.code, response.headers["retry-after"]) == (503, "UNAVAILABLE", "1")
        assert (await served.call("GET", "/healthz")).status == 200


async def test_a_process_without_its_database_is_not_ready(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        await first_account(gateway)
        await gateway.store.close()
        assert (await served.call("GET", "/readyz")).status >= 500
        assert (await served.call("GET", "/healthz")).status == 200


@postgres_only
async def test_a_process_whose_clock_differs_from_the_database_is_ready_but_says_so(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        running.clock.jump(-60)
        response = await health.ready(running.gateway, running.call())
        assert response.json == {
            "status": "ready",
            "warnings": ["The clock of this machine is 60.0 s behind the database's."],
        }
