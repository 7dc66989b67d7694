"""How calls are sent from an event loop, and what becomes of responses that break off or are no gateway's."""

import pytest

from penstock.client.async_connection import AsyncConnection
from penstock.client.calls import get
from penstock.client.failures import NotConnected, Refused
from tests.ports import unused_port
from tests.stories.processes import Serving
from tests.unit.client.conftest import Network


async def test_the_key_goes_to_the_gateway_and_not_to_signed_urls(served: Serving, network: Network) -> None:
    connection = AsyncConnection(network.url, served.key, headers={"X-Service-Replay": "off"}, timeout=30)
    network.answers = [(200, {}, b"{}"), (200, {}, b"file")]
    await connection.send(get("/v1/balance"))
    assert [chunk async for chunk in connection.stream_file(f"{network.url}/m/med_1")] == [b"file"]
    (_, call), (_, file) = network.calls
    assert (call["authorization"], call["x-service-replay"]) == (f"Bearer {served.key}", "off")
    assert call["user-agent"].startswith("penstock-client/")
    assert "authorization" not in file
    await connection.close()


async def test_a_call_over_a_limit_is_sent_again_after_the_pause_that_is_asked_for(
    served: Serving, network: Network, short_pauses: list[float]
) -> None:
    connection = AsyncConnection(network.url, served.key, headers=None, timeout=30)
    network.answers = [(429, {"retry-after": "7"}, b"{}"), (200, {}, b'{"ok": 1}')]
    assert (await connection.send(get("/v1/balance"), 1)).body == {"ok": 1}
    assert short_pauses == [7.0]
    await connection.close()


async def test_what_is_no_gateway_is_said(served: Serving, network: Network) -> None:
    connection = AsyncConnection(network.url, served.key, headers=None, timeout=30)
    network.answers = [(200, {}, b"<html>"), (302, {"location": "https://elsewhere.test"}, b"")]
    network.answers += [(200, {"content-length": "10"}, b"half")]
    with pytest.raises(NotConnected, match="is not a Penstock gateway"):
        await connection.send(get("/v1/balance"))
    with pytest.raises(Refused, match="status 302"):
        await connection.send(get("/v1/balance"))
    with pytest.raises(NotConnected):
        await connection.send(get("/v1/balance"))
    await connection.close()
    nowhere = AsyncConnection(f"http://127.0.0.1:{unused_port()}", "pk_1", headers=None, timeout=30)
    with pytest.raises(NotConnected, match="no gateway answers at"):
        await nowhere.send(get("/v1/balance"))
    await nowhere.close()
