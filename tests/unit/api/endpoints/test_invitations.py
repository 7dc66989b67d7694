"""Invitations over HTTP: admins invite into their organization, and need an issuer."""

from pathlib import Path

import pytest

from penstock.accounts.idempotency import key_digest
from penstock.api.asgi import AsgiApp
from tests.api.accounts import another_account, first_account, opened
from tests.api.raw_http import serving
from tests.api.running import running

ROW = {"email": "anna@studio.example", "role": "member"}


async def test_admins_invite_into_their_organization(tmp_path: Path) -> None:
    pytest.importorskip("jwt", reason="needs the extra oidc")
    table = {"issuer": "https://issuer.invalid", "client_id": "penstock"}
    async with opened(tmp_path, public_url="https://media.example", oidc=table) as gateway:
        mine, theirs = await first_account(gateway), await another_account(gateway)
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            made = await served.call("POST", "/v1/invitations", key=theirs.admin.key, body=ROW)
            assert made.json["org_id"] == theirs.org_id
            assert made.json["url"].startswith("https://media.example/auth/login?invitation=")
            for more in ({"org_id": mine.org_id}, {"role": "operator", "org_id": "*"}):
                refused = await served.call("POST", "/v1/invitations", key=theirs.admin.key, body={**ROW, **more})
                assert refused.status == 403
            [listed] = (await served.call("GET", "/v1/invitations", key=mine.admin.key)).json["data"]
            assert "url" not in listed
            other = await gateway.keys.create_key(mine.org_id, scopes=["admin"])
            path = f"/v1/invitations/{listed['id']}"
            assert (await served.call("GET", "/v1/invitations", key=other.key)).json["data"] == []
            assert (await served.call("DELETE", path, key=other.key)).status == 404
            assert (await served.call("DELETE", path, key=theirs.admin.key)).status == 204
            assert (await served.call("POST", "/v1/invitations", key=theirs.plain.key, body=ROW)).status == 403


async def test_an_invitation_that_is_sent_twice_is_one_and_its_link_is_shown_once(tmp_path: Path) -> None:
    pytest.importorskip("jwt", reason="needs the extra oidc")
    table = {"issuer": "https://issuer.invalid", "client_id": "penstock"}
    async with opened(tmp_path, public_url="https://media.example", oidc=table) as gateway:
        mine = await first_account(gateway)
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            first, again = [
                await served.call(
                    "POST", "/v1/invitations", key=mine.admin.key, body=ROW, headers={"idempotency-key": "anna"}
                )
                for _ in range(2)
            ]
            assert again.json == {**first.json, "url": None}
            assert (again.status, again.headers["idempotent-replayed"]) == (200, "true")
            stored = await gateway.store.one("get_idempotency_response", **_stored(mine.org_id, "anna"), now_ms=0)
            assert stored is not None
            assert first.json["url"].partition("=")[2] not in stored["response"]
            assert len((await served.call("GET", "/v1/invitations", key=mine.admin.key)).json["data"]) == 1


def _stored(org_id: str, key: str) -> dict[str, object]:
    return {"org_id": org_id, "key_digest": key_digest("POST /v1/invitations", key)}


async def test_without_an_issuer_nobody_can_be_invited(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        assert (await here.admin("POST", "/v1/invitations", ROW)).status == 400
