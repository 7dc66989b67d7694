"""What people sign in with is opened from the settings, without asking the issuer."""

from pathlib import Path

import pytest

from penstock.net.client import HttpClient
from penstock.people.opening import SECRET, open_people
from penstock.people.sign_in import SignIn
from penstock.settings import Settings
from tests.gateway import OpenGateway


async def test_an_issuer_that_is_down_does_not_stop_the_start(open_gateway: OpenGateway, tmp_path: Path) -> None:
    pytest.importorskip("jwt", reason="needs the extra oidc")
    async with open_gateway() as running:
        gateway = running.gateway
        assert gateway.sign_in is None
        table = {
            "issuer": "https://issuer.invalid",
            "client_id": "x",
            "roles": [{"role": "admin", "org": "no", "group": "g"}],
        }
        settings = Settings(data=tmp_path, public_url="https://media.example", oidc=table)
        parts = (gateway.store, gateway.keys, gateway.vault, running.clock)
        client = HttpClient()
        opened = await open_people(settings, {SECRET: "s"}, client, *parts)
        await client.close()
        assert isinstance(opened.sign_in, SignIn)
        assert opened.sign_in.host == "issuer.invalid"
