"""Signing in with an issuer over HTTP: to the issuer with a cookie, and back with a session or a reason."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.api.asgi import AsgiApp
from penstock.gateway import Gateway
from penstock.people.sign_in import SignIn
from tests.api.accounts import Account, first_account, opened
from tests.api.raw_http import RawResponse, Server, serving

pytest.importorskip("jwt", reason="needs the extra oidc")
from tests.fake_providers.issuer import CLIENT_ID, SECRET, FakeIssuer, fake_issuer

PUBLIC = "https://media.example"
PAGE = {"x-penstock-page": "1", "sec-fetch-site": "same-origin"}
ROLES = [
    {"role": "admin", "org": "default", "group": "leads"},
    {"role": "operator", "org": "*", "email": "zoe@studio.example"},
]


class Here:
    """A served gateway, its issuer and its first organization."""

    def __init__(self, served: Server, gateway: Gateway, issuer: FakeIssuer, mine: Account) -> None:
        self.served, self.gateway, self.issuer, self.mine = served, gateway, issuer, mine

    async def sign_in(self, next_page: str = "/", **claims: Any) -> RawResponse:
        """What the browser gets when it comes back."""
        self.issuer.claims = claims
        begun = await self.served.call("GET", f"/auth/login?next={next_page}")
        assert begun.status == 302
        answer = self.issuer.authorize(begun.headers["location"], f"{PUBLIC}/auth/callback")
        return await self.come_back(begun, **answer)

    async def come_back(self, begun: RawResponse, **answer: str) -> RawResponse:
        query = "&".join(f"{name}={value}" for name, value in answer.items())
        cookie = {"cookie": begun.headers["set-cookie"].partition(";")[0]}
        return await self.served.call("GET", f"/auth/callback?{query}", headers=cookie)

    async def call(self, method: str, path: str, cookie: RawResponse, body: Any = None) -> RawResponse:
        headers = {"cookie": cookie.headers["set-cookie"].partition(";")[0], **PAGE}
        return await self.served.call(method, path, headers=headers, body=body)


@asynccontextmanager
async def running(folder: Path, **options: Any) -> AsyncIterator[Here]:
    with fake_issuer() as issuer:
        table = {
            "issuer": issuer.url,
            "client_id": CLIENT_ID,
            "button": "Sign in with Studio",
            "roles": ROLES,
            **options,
        }
        async with opened(folder, public_url=PUBLIC, oidc=table) as gateway:
            assert isinstance(gateway.sign_in, SignIn)
            gateway.sign_in._issuer._secret = SECRET
            mine = await first_account(gateway)
            async with serving(AsgiApp(gateway), gateway.settings) as served:
                yield Here(served, gateway, issuer, mine)


async def test_a_person_signs_in_acts_and_signs_out_everywhere(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        ways = (await here.served.call("GET", "/auth/options")).json
        assert ways == {"object": "sign_in", "key": True, "oidc": {"button": "Sign in with Studio"}, "proxy": None}
        back = await here.sign_in("/%23/requests", email="anna@studio.example", email_verified=True, groups=["leads"])
        assert (back.status, back.headers["location"]) == (302, "/#/requests")
        sent = back.headers["set-cookie"]
        assert sent.startswith("__Host-penstock=")
        assert sent.endswith("Path=/; HttpOnly; SameSite=Lax; Secure")
        found = (await here.call("GET", "/v1/session", back)).json
        assert (found["user"]["email"], found["key"]["scopes"]) == ("anna@studio.example", ["admin"])
        assert found["user"]["organizations"] == [{"id": here.mine.org_id, "name": "default", "role": "admin"}]
        made = await here.call("POST", "/v1/keys", back, {"name": "of anna"})
        assert made.status == 200
        [event] = (await here.call("GET", f"/v1/audit?target={made.json['id']}", back)).json["data"]
        assert event["actor"] == found["user"]["id"]
        other = await here.sign_in(groups=["leads"])
        assert (await here.call("DELETE", "/v1/session?everywhere=true", back)).status == 204
        for session in (back, other):
            assert (await here.call("GET", "/v1/session", session)).status == 401


async def test_who_has_no_role_waits_until_an_admin_gives_one(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        admin = await here.sign_in(sub="lead", groups=["leads"])
        refused = await here.sign_in(sub="ben", email="ben@studio.example", email_verified=True)
        assert refused.headers["location"] == "/#/?refused=no-access"
        assert "set-cookie" not in refused.headers
        people = (await here.call("GET", "/v1/users", admin)).json["data"]
        [ben] = [person for person in people if not person["roles"]]
        path = f"/v1/users/{ben['id']}"
        for body in (
            {"status": "deactivated"},
            {"role": "operator", "org_id": "*"},
            {"role": "admin", "org_id": "org_x"},
        ):
            assert (await here.call("PATCH", path, admin, body)).status == 403
        given = await here.call("PATCH", path, admin, {"role": "member"})
        assert given.json["roles"] == [{"org_id": here.mine.org_id, "role": "member", "source": "granted"}]
        entered = await here.sign_in(sub="ben")
        assert (await here.call("GET", "/v1/users", entered)).status == 403
        operator = await here.sign_in(sub="zoe", email="zoe@studio.example", email_verified=True)
        off = await here.call("PATCH", path, operator, {"status": "deactivated"})
        assert off.json["status"] == "deactivated"
        assert (await here.call("GET", "/v1/session", entered)).status == 401
        assert (await here.sign_in(sub="ben")).headers["location"] == "/#/?refused=deactivated"


async def test_an_operator_changes_the_organization_of_the_session(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        operator = await here.sign_in(email="zoe@studio.example", email_verified=True)
        org = (await here.call("POST", "/v1/orgs", operator, {"name": "studio"})).json["id"]
        assert (await here.call("POST", "/v1/session/org", operator, {"org_id": org})).status == 204
        assert (await here.call("GET", "/v1/session", operator)).json["org"]["name"] == "studio"
        lead = await here.sign_in(sub="lead", groups=["leads"])
        assert (await here.call("POST", "/v1/session/org", lead, {"org_id": org})).status == 403


async def test_a_sign_in_that_is_not_ours_or_too_old_begins_no_session(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        begun = await here.served.call("GET", "/auth/login")
        cookie = begun.headers["set-cookie"]
        assert cookie.startswith("__Host-penstock-login=")
        assert "Max-Age=600; Secure" in cookie
        answer = here.issuer.authorize(begun.headers["location"], f"{PUBLIC}/auth/callback")
        for changes in ({"state": "x"}, {"state": ""}):
            refused = await here.come_back(begun, **{**answer, **changes})
            assert refused.headers["location"] == "/#/?refused=expired"
        without = await here.served.call("GET", f"/auth/callback?code={answer['code']}&state={answer['state']}")
        assert without.headers["location"] == "/#/?refused=expired"
        here.issuer.status = 500
        here.gateway.sign_in._issuer._metadata = None  # type: ignore[union-attr]
        down = await here.served.call("GET", "/auth/login")
        assert down.headers["location"] == "/#/?refused=unreachable&issuer=127.0.0.1"


async def test_signing_in_with_a_key_can_be_switched_off(tmp_path: Path) -> None:
    async with running(tmp_path, key_sign_in=False) as here:
        assert (await here.served.call("GET", "/auth/options")).json["key"] is False
        refused = await here.served.call("POST", "/v1/session", key=here.mine.admin.key, body={})
        assert refused.status == 403
        assert (await here.served.call("GET", "/v1/key", key=here.mine.admin.key)).status == 200


async def test_without_an_issuer_people_sign_in_with_keys(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        ways = (await served.call("GET", "/auth/options")).json
        assert ways == {"object": "sign_in", "key": True, "oidc": None, "proxy": None}
        assert (await served.call("GET", "/auth/login")).status == 404
        assert (await served.call("GET", "/auth/callback?code=x")).status == 404


async def sign_out(here: Here, body: str) -> RawResponse:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    return await here.served.call("POST", "/auth/backchannel-logout", headers=headers, body=body.encode())


async def test_whom_the_issuer_signs_out_is_signed_out_everywhere_and_nobody_else(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        first, second = [await here.sign_in(sub="anna", groups=["leads"]) for _ in range(2)]
        zoe = await here.sign_in(sub="zoe", email="zoe@studio.example", email_verified=True)
        user = (await here.call("GET", "/v1/session", first)).json["user"]["id"]
        ended = await sign_out(here, f"logout_token={here.issuer.logout_token(sub='anna')}")
        assert (ended.status, ended.headers["cache-control"]) == (204, "no-store")
        for session, status in ((first, 401), (second, 401), (zoe, 200)):
            assert (await here.call("GET", "/v1/session", session)).status == status
        [event] = (await here.call("GET", f"/v1/audit?action=session.ended&target={user}", zoe)).json["data"]
        assert (event["actor"], event["after"]) == ("sign-in", {"count": 2})
        assert (await sign_out(here, f"logout_token={here.issuer.logout_token(sub='unknown')}")).status == 204


async def test_a_logout_token_that_is_sent_again_ends_no_later_session(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        earlier = here.issuer.logout_token(sub="anna", iat=int(time.time()) - 61)
        begun = await here.sign_in(sub="anna", groups=["leads"])
        assert (await sign_out(here, f"logout_token={earlier}")).status == 204
        assert (await here.call("GET", "/v1/session", begun)).status == 200


async def test_what_is_no_logout_token_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        begun = await here.sign_in(sub="anna", groups=["leads"])
        wrong = f"logout_token={here.issuer.logout_token(sub='anna', events=None)}".encode()
        long = f"logout_token={here.issuer.logout_token(sub='anna')}".encode() + b"&a=b" * 10
        for body in (wrong, b"logout_token=x.y.z", b"logout_token", b"token=x", b"", long, b"\xff"):
            refused = await here.served.call("POST", "/auth/backchannel-logout", body=body)
            assert (refused.status, refused.code) == (400, "INVALID_REQUEST"), body
            assert refused.json["error"]["param"] == "logout_token", body
        assert (await here.call("GET", "/v1/session", begun)).status == 200


async def test_without_an_issuer_there_is_no_sign_out_by_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        assert (await served.call("POST", "/auth/backchannel-logout", body=b"logout_token=x")).status == 404
