"""How calls are sent once, and what becomes of responses that break off or are no gateway's."""

from pathlib import Path

import pytest

from penstock.client.calls import Call, get
from penstock.client.connection import Connection, check_url
from penstock.client.failures import NotConnected, Refused
from tests.stories.processes import Serving
from tests.unit.client.conftest import Network


def test_the_key_goes_to_the_gateway_and_not_to_signed_urls(served: Serving, network: Network) -> None:
    connection = Connection(network.url, served.key, headers={"X-Service-Replay": "off"})
    network.answers = [(200, {}, b"{}"), (200, {}, b"file")]
    connection.send(get("/v1/balance"))
    assert b"".join(chunk for _, chunk in connection.stream_file(f"{network.url}/m/med_1")) == b"file"
    (_, call), (_, file) = network.calls
    assert (call["authorization"], call["x-service-replay"]) == (f"Bearer {served.key}", "off")
    assert call["user-agent"].startswith("penstock-client/")
    assert "authorization" not in file


def test_the_key_does_not_follow_a_redirect(served: Serving, network: Network) -> None:
    network.answers = [(307, {"location": "/elsewhere"}, b""), (200, {}, b"{}")]
    Connection(network.url, served.key).send(get("/v1/balance"))
    assert ["authorization" in headers for _, headers in network.calls] == [True, False]


def test_what_is_no_gateway_is_said(served: Serving, network: Network) -> None:
    connection = Connection(network.url, served.key)
    network.answers = [(200, {}, b"<html>"), (502, {}, b"<html>")]
    with pytest.raises(NotConnected, match="is not a Penstock gateway"):
        connection.send(get("/v1/balance"))
    with pytest.raises(Refused, match="status 502, and not as a Penstock gateway does"):
        connection.send(get("/v1/balance"))


def test_a_body_that_breaks_off_is_no_whole_file(served: Serving, network: Network, tmp_path: Path) -> None:
    network.answers = [(200, {"content-length": "10"}, b"half")]
    with pytest.raises(NotConnected, match="before the end"):
        list(Connection(network.url, served.key).stream_file(network.url))


def test_a_call_over_a_limit_is_sent_again_after_the_pause_that_is_asked_for(
    served: Serving, network: Network, short_pauses: list[float]
) -> None:
    network.answers = [(429, {"retry-after": "7"}, b"{}"), (503, {}, b"{}"), (200, {}, b'{"ok": 1}')]
    assert Connection(network.url, served.key).send(get("/v1/balance"), 2).body == {"ok": 1}
    assert short_pauses == [7.0, 1.0]


def test_only_urls_of_http_are_called() -> None:
    assert check_url("https://gateway.test/") == "https://gateway.test"
    with pytest.raises(ValueError, match="must begin with http"):
        check_url("file:///etc/passwd")
    with pytest.raises(NotConnected):
        Connection("http://127.0.0.1:1", "pk_1").send(Call("GET", "/"))
