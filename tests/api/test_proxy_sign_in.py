"""Signing in through a trusted proxy over HTTP, and what callers who are not the proxy try."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.api.asgi import AsgiApp
from penstock.app.build import build_gateway
from penstock.clock import Clock
from penstock.gateway import Gateway
from penstock.people.opening import PROXY_SECRET
from penstock.settings import Settings
from tests.api.accounts import MASTER, Account, first_account
from tests.api.raw_http import RawResponse, Server, serving
from tests.child_tasks import run_tasks_in_threads
from tests.manual_clock import ManualClock

SECRET = "the-proxy-and-the-gateway-know-it"
PUBLIC = "https://media.example"
PAGE = {"x-penstock-page": "1", "sec-fetch-site": "same-origin"}
NO_PROXY = "/#/?refused=no-proxy"
TABLE = {
    "user_header": "X-Forwarded-User",
    "email_header": "X-Forwarded-Email",
    "groups_header": "X-Forwarded-Groups",
    "button": "Sign in with Studio",
    "roles": [
        {"role": "admin", "org": "default", "group": "leads"},
        {"role": "operator", "org": "*", "email": "zoe@studio.example"},
    ],
}


class Here:
    """A served gateway, whose proxy is this machine, and its first organization."""

    def __init__(self, served: Server, gateway: Gateway, mine: Account) -> None:
        self.served, self.gateway, self.mine = served, gateway, mine

    async def sign_in(self, user: str, *, page: str = "/", **headers: str) -> RawResponse:
        """What the browser gets that comes through the proxy."""
        named = {f"x-forwarded-{name}": value for name, value in headers.items()}
        sent = {"x-proxy-secret": SECRET, "x-forwarded-user": user, **named}
        return await self.served.call("GET", f"/auth/login?next={page}", headers=sent)

    async def call(self, method: str, path: str, session: RawResponse, body: Any = None) -> RawResponse:
        headers = {"cookie": session.headers["set-cookie"].partition(";")[0], **PAGE}
        return await self.served.call(method, path, headers=headers, body=body)


@asynccontextmanager
async def running(
    folder: Path, *, proxies: tuple[str, ...] = ("127.0.0.1",), clock: Clock | None = None, **table: Any
) -> AsyncIterator[Here]:
    settings = Settings(
        data=folder,
        secret=MASTER,
        provenance="off",
        public_url=PUBLIC,
        trusted_proxies=proxies,
        proxy_sign_in={**TABLE, **table},
    )
    async with build_gateway(settings, clock, {PROXY_SECRET: SECRET}) as gateway:
        run_tasks_in_threads(gateway.worker_pool)
        mine = await first_account(gateway)
        async with serving(AsgiApp(gateway), settings) as served:
            yield Here(served, gateway, mine)


async def test_a_person_signs_in_acts_and_signs_out(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        ways = (await here.served.call("GET", "/auth/options")).json
        assert ways == {"object": "sign_in", "key": True, "oidc": None, "proxy": {"button": "Sign in with Studio"}}
        begun = await here.sign_in("anna", page="/%23/requests", email="Anna@studio.example", groups="team,leads")
        assert (begun.status, begun.headers["location"]) == (302, "/#/requests")
        sent = begun.headers["set-cookie"]
        assert sent.startswith("__Host-penstock=")
        assert sent.endswith("Path=/; HttpOnly; SameSite=Lax; Secure")
        found = (await here.call("GET", "/v1/session", begun)).json
        assert (found["user"]["email"], found["key"]["scopes"]) == ("anna@studio.example", ["admin"])
        cookie = {"cookie": sent.partition(";")[0]}
        assert (await here.served.call("POST", "/v1/keys", headers=cookie, body={"name": "x"})).status == 403
        events = (await here.call("GET", "/v1/audit?action=user.signed_in", begun)).json["data"]
        assert [event["target"] for event in events] == [found["user"]["id"]]
        assert (await here.call("DELETE", "/v1/session", begun)).status == 204
        assert (await here.call("GET", "/v1/session", begun)).status == 401


async def test_roles_follow_the_groups_of_each_sign_in_and_a_deactivated_person_stays_out(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        operator = await here.sign_in("zoe", email="zoe@studio.example")
        anna = await here.sign_in("anna", groups="leads")
        user = (await here.call("GET", "/v1/session", anna)).json["user"]["id"]
        left = await here.sign_in("anna", groups="unknown,Leads,leads-of-others")
        assert left.headers["location"] == "/#/?refused=no-access"
        assert "set-cookie" not in left.headers
        assert (await here.call("GET", "/v1/session", anna)).status == 401
        back = await here.sign_in("anna", groups="leads")
        off = await here.call("PATCH", f"/v1/users/{user}", operator, {"status": "deactivated"})
        assert off.json["status"] == "deactivated"
        assert (await here.call("GET", "/v1/session", back)).status == 401
        assert (await here.sign_in("anna", groups="leads")).headers["location"] == "/#/?refused=deactivated"


async def test_a_page_that_nobody_touches_keeps_no_session_of_an_operator(tmp_path: Path) -> None:
    clock = ManualClock()
    async with running(tmp_path, clock=clock) as here:
        used, left = [await here.sign_in("zoe", email="zoe@studio.example") for _ in range(2)]
        for minutes, status in ((25, 200), (25, 401)):
            clock.advance(minutes * 60)
            cookie = {"cookie": left.headers["set-cookie"].partition(";")[0]}
            refreshed = await here.served.call(
                "GET", "/v1/session", headers={**cookie, "x-penstock-page": "unattended"}
            )
            assert refreshed.status == status
            assert (await here.call("GET", "/v1/session", used)).status == 200


async def test_an_invitation_is_good_for_the_address_that_the_proxy_names(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        body = {"email": "ben@studio.example", "role": "member"}
        made = await here.served.call("POST", "/v1/invitations", key=here.mine.admin.key, body=body)
        path = made.json["url"].removeprefix(PUBLIC)
        headers = {"x-proxy-secret": SECRET, "x-forwarded-user": "ben", "x-forwarded-email": "ben@studio.example"}
        other = {**headers, "x-forwarded-user": "eve", "x-forwarded-email": "eve@studio.example"}
        assert (await here.served.call("GET", path, headers=other)).headers["location"] == "/#/?refused=no-access"
        assert (await here.served.call("GET", path, headers=headers)).headers["location"] == "/"


async def test_a_session_is_refused_where_the_proxy_names_somebody_else(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        anna = await here.sign_in("anna", groups="leads")
        cookie = {"cookie": anna.headers["set-cookie"].partition(";")[0], **PAGE}
        for named, status in (
            ({"x-proxy-secret": SECRET, "x-forwarded-user": "anna"}, 200),
            ({"x-proxy-secret": SECRET, "x-forwarded-user": "ben"}, 401),
            ({"x-proxy-secret": SECRET, "x-forwarded-user": "a" * 256}, 200),  # says nothing
            ({"x-proxy-secret": SECRET}, 200),
            ({"x-proxy-secret": "x" * 33, "x-forwarded-user": "ben"}, 200),  # not the proxy
        ):
            assert (await here.served.call("GET", "/v1/session", headers={**cookie, **named})).status == status
        with_key = await here.served.call("POST", "/v1/session", key=here.mine.admin.key, body={})
        keyed = {"cookie": with_key.headers["set-cookie"].partition(";")[0], **PAGE}
        named = {"x-proxy-secret": SECRET, "x-forwarded-user": "ben"}
        assert (await here.served.call("GET", "/v1/session", headers={**keyed, **named})).status == 200


@pytest.mark.parametrize("forwarded", ["127.0.0.1", "proxy.test", "unknown, 127.0.0.1"])
async def test_a_caller_that_is_not_the_proxy_cannot_name_anybody(tmp_path: Path, forwarded: str) -> None:
    async with running(tmp_path, proxies=("::1",)) as here:
        for more in ({}, {"for": forwarded, "host": "media.example", "proto": "https"}):
            refused = await here.sign_in("zoe", email="zoe@studio.example", **more)
            assert (refused.status, refused.headers["location"]) == (302, NO_PROXY)
            assert "set-cookie" not in refused.headers
        assert (await here.served.call("GET", "/v1/users", key=here.mine.admin.key)).json["data"] == []


async def test_the_header_alone_is_no_session(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        named = {"x-proxy-secret": SECRET, "x-forwarded-user": "zoe", "x-forwarded-email": "zoe@studio.example", **PAGE}
        for method, path in (("GET", "/v1/session"), ("GET", "/v1/users"), ("POST", "/v1/keys")):
            assert (await here.served.call(method, path, headers=named)).status == 401


@pytest.mark.parametrize("secret", [None, "", SECRET[:-1], SECRET.upper(), SECRET + SECRET])
async def test_a_call_through_the_proxy_without_its_secret_names_nobody(tmp_path: Path, secret: str | None) -> None:
    async with running(tmp_path) as here:
        headers = {"x-forwarded-user": "zoe", "x-forwarded-email": "zoe@studio.example"}
        if secret is not None:
            headers["x-proxy-secret"] = secret
        refused = await here.served.call("GET", "/auth/login", headers=headers)
        assert (refused.headers["location"], "set-cookie" in refused.headers) == (NO_PROXY, False)


@pytest.mark.parametrize("repeated", ["X-Forwarded-User", "x-forwarded-email", "X-FORWARDED-GROUPS", "X-Proxy-Secret"])
async def test_a_header_in_several_lines_is_refused(tmp_path: Path, repeated: str) -> None:
    values = {"x-proxy-secret": SECRET, "x-forwarded-user": "anna", "x-forwarded-groups": "leads"}
    lines = [f"{name}: {value}" for name, value in values.items()]
    lines += [f"{repeated}: {values.get(repeated.lower(), 'zoe@studio.example')}"] * (
        1 if repeated.lower() in values else 2
    )
    async with running(tmp_path) as here, await here.served.connect() as line:
        await line.send("\r\n".join(["GET /auth/login HTTP/1.1", "host: media.example", *lines, "", ""]).encode())
        refused = await line.read_response()
        assert (refused.status, refused.code) == (400, "INVALID_REQUEST")
        assert repeated.lower() in refused.json["error"]["message"]
        assert "set-cookie" not in refused.headers


async def test_lists_of_addresses_may_still_have_several_lines(tmp_path: Path) -> None:
    async with running(tmp_path) as here, await here.served.connect() as line:
        lines = ["GET /auth/options HTTP/1.1", "host: media.example", *["x-forwarded-for: a.test"] * 2, "", ""]
        await line.send("\r\n".join(lines).encode())
        assert (await line.read_response()).status == 200


@pytest.mark.parametrize(
    ("user", "location"),
    [
        ("", NO_PROXY),
        ("(null)", NO_PROXY),
        ("a" * 256, "/#/?refused=failed"),
        ("a\tb", "/#/?refused=failed"),
        ("zo\xeb", "/#/?refused=failed"),  # sent as Latin-1
    ],
)
async def test_a_name_that_cannot_be_one_signs_nobody_in(tmp_path: Path, user: str, location: str) -> None:
    async with running(tmp_path) as here:
        refused = await here.sign_in(user, groups="leads")
        assert (refused.headers["location"], "set-cookie" in refused.headers) == (location, False)


async def test_the_page_afterwards_is_one_of_this_gateway(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        for page in ("https://evil.example", "//evil.example", "/%5Cevil.example"):
            assert (await here.sign_in("anna", page=page, groups="leads")).headers["location"] == "/"


async def test_nobody_comes_back_from_an_issuer_and_keys_can_be_switched_off(tmp_path: Path) -> None:
    async with running(tmp_path, key_sign_in=False) as here:
        assert (await here.served.call("GET", "/auth/callback?code=x&state=y")).status == 404
        refused = await here.served.call("POST", "/v1/session", key=here.mine.admin.key, body={})
        assert refused.status == 403
        assert (await here.served.call("GET", "/v1/key", key=here.mine.admin.key)).status == 200
