"""Signing in to the pages with a key: a cookie instead of the key, and no other site can use it."""

from pathlib import Path
from typing import Any

from tests.api.raw_http import RawResponse
from tests.api.running import RunningGateway, running

PAGE = {"x-penstock-page": "1", "sec-fetch-site": "same-origin"}


async def signed_in(here: RunningGateway, body: Any = None) -> tuple[RawResponse, dict[str, str]]:
    response = await here.admin("POST", "/v1/session", body or {})
    assert response.status == 200, response
    return response, {"cookie": response.headers["set-cookie"].partition(";")[0]}


async def test_the_cookie_acts_as_the_key_and_scripts_cannot_read_it(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        begun, cookie = await signed_in(here)
        assert begun.json["key"]["id"] == here.mine.admin.id
        assert begun.headers["cache-control"] == "no-store"
        sent = begun.headers["set-cookie"]
        assert "HttpOnly; SameSite=Lax" in sent
        assert "Max-Age" not in sent
        assert here.mine.admin.key not in sent
        found = await here.served.call("GET", "/v1/session", headers=cookie)
        assert (found.json["key"]["id"], found.json["org"]["name"]) == (here.mine.admin.id, "default")
        assert found.json["expires_at"] is not None
        made = await here.served.call("POST", "/v1/keys", headers={**cookie, **PAGE}, body={"name": "a"})
        assert made.status == 200
        assert "Max-Age=2592000" in (await signed_in(here, {"keep": True}))[0].headers["set-cookie"]


async def test_another_site_cannot_use_the_cookie(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        _, cookie = await signed_in(here)
        for headers in ({}, {"x-penstock-page": "1"}, {**PAGE, "sec-fetch-site": "cross-site"}):
            refused = await here.served.call("POST", "/v1/keys", headers={**cookie, **headers}, body={})
            assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
        assert (await here.served.call("DELETE", "/v1/session", headers=cookie)).status == 403
        assert (await here.served.call("GET", "/v1/session", headers=cookie)).status == 200


async def test_a_key_beside_the_cookie_goes_before_it(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        _, cookie = await signed_in(here)
        found = await here.served.call("GET", "/v1/session", key=here.theirs.plain.key, headers=cookie)
        assert found.json["key"]["id"] == here.theirs.plain.id
        assert (await here.served.call("GET", "/v1/key", key="pk_wrong", headers=cookie)).status == 401


async def test_signing_out_ends_the_session_and_removes_the_cookie(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        _, one = await signed_in(here)
        _, other = await signed_in(here)
        ended = await here.served.call("DELETE", "/v1/session", headers={**one, **PAGE})
        assert (ended.status, "Max-Age=0" in ended.headers["set-cookie"]) == (204, True)
        assert (await here.served.call("GET", "/v1/session", headers=one)).status == 401
        assert (await here.served.call("GET", "/v1/session", headers=other)).status == 200
        _, third = await signed_in(here)
        await here.served.call("DELETE", "/v1/session?everywhere=true", headers={**third, **PAGE})
        for cookie in (other, third):
            assert (await here.served.call("GET", "/v1/session", headers=cookie)).status == 401


async def test_the_scope_read_sees_figures_and_nothing_that_was_asked_or_made(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        [request] = await here.refused(1)
        key = (await here.gateway.keys.create_key(here.mine.org_id, scopes=["read"])).key
        for path in ("/v1/usage", "/v1/requests", "/v1/balance", "/v1/keys", "/compat/v1/models", "/v1/session"):
            assert (await here.served.call("GET", path, key=key)).status == 200
        record = (await here.served.call("GET", f"/v1/requests/{request}", key=key)).json
        assert (record["prompt"], record["outputs"]) == (None, [])
        for method, path in (
            ("GET", f"/v1/requests/{request}/payloads"),
            ("GET", "/v1/requests?search=fox"),
            ("GET", "/v1/webhooks/secret"),
            ("GET", "/v1/recordings"),
            ("GET", "/compat/v1/videos"),
            ("POST", "/compat/v1/images/generations"),
            ("DELETE", f"/v1/requests/{request}/payloads"),
        ):
            refused = await here.served.call(method, path, key=key, body={} if method == "POST" else None)
            assert (refused.status, path) == (403, path)


async def test_a_session_begins_with_a_key_only(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        _, cookie = await signed_in(here)
        again = await here.served.call("POST", "/v1/session", headers={**cookie, **PAGE}, body={})
        assert (again.status, "begins with a key" in again.json["error"]["message"]) == (400, True)
        assert (await here.served.call("POST", "/v1/session", headers=PAGE, body={})).status == 401


async def test_what_is_done_in_a_session_is_in_the_audit_log(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        _, cookie = await signed_in(here)
        await here.served.call("POST", "/v1/keys", headers={**cookie, **PAGE}, body={"name": "a"})
        events = (await here.admin("GET", f"/v1/audit?actor={here.mine.admin.id}")).json["data"]
        assert [event["action"] for event in events] == ["key.created", "session.begun"]
