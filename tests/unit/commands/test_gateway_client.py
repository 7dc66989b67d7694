"""Which gateway a command calls, with which key, and what happens when there is none."""

from pathlib import Path

import pytest

from penstock.client.failures import CallFailed
from penstock.commands.gateway_client import GatewayClient
from tests.command_line import penstock
from tests.ports import unused_port
from tests.stories.processes import Installation, Serving


def test_the_data_folder_names_its_gateway_and_has_a_key(
    served_installation: Installation, served: Serving, folder: Path
) -> None:
    """The commands that a person gives in another terminal need neither a URL nor a key."""
    for name in ("one.png", "two.png"):
        ended = penstock("image", "a fox", "--size", "256x256", "-o", name, "--data", served_installation.data)
        assert ended.status == 0, ended.err
    keys = [
        row for row in penstock("keys", "list", "--data", served_installation.data).lines if row[1] == "command line"
    ]
    assert len(keys) == 1, "the second command uses the key of the first"
    penstock("keys", "revoke", keys[0][0], "--data", served_installation.data)
    assert (
        penstock("image", "a fox", "--size", "256x256", "-o", "3.png", "--data", served_installation.data).status == 0
    )


def test_a_key_of_the_data_folder_goes_to_no_other_gateway(served_installation: Installation, served: Serving) -> None:
    ended = penstock("image", "a fox", "--data", served_installation.data, PENSTOCK_URL="http://elsewhere.invalid")
    assert (ended.status, "a key is needed for http://elsewhere.invalid" in ended.err) == (1, True)


def test_a_gateway_that_does_not_run_is_named() -> None:
    url = f"http://127.0.0.1:{unused_port()}"
    ended = penstock("image", "a fox", "--url", url, "--key", "pk_1")
    assert ended.status == 1
    assert f"no gateway answers at {url}: start one with `penstock serve`" in ended.err


@pytest.mark.parametrize(
    "request_id", ["../webhooks/secret", "..%2Fkeys", "req_1/payloads", "req_1?x=y", "", "key_" + "0" * 32]
)
def test_only_an_id_of_a_request_is_asked_for(request_id: str) -> None:
    """Agents say which one: with another path they would read what no tool offers them, such as the webhook secret."""
    with pytest.raises(CallFailed, match="the id of a request is needed"):
        GatewayClient("http://127.0.0.1:1", "none").get_request(request_id)
