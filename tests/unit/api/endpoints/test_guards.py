"""`GET /v1/guards`: who sees which guards, with verdicts about whose calls."""

from typing import Any

import pytest

from tests.api.http_calls import ServedApi, served_api
from tests.gateway import OpenGateway, sqlite_only

WORDS: dict[str, Any] = {"rules": {"words": ["gun"]}}


async def listed(api: ServedApi, key: str | None = None, query: str = "") -> dict[str, dict[str, int]]:
    response = await api.call("GET", f"/v1/guards{query}", key=key)
    assert response.status == 200, response
    return {guard["name"]: guard["verdicts"] for guard in response.json["data"]}


async def key_of(api: ServedApi, org_id: str, *scopes: str) -> str:
    body = {"scopes": list(scopes)}
    made = await api.call("POST", f"/v1/orgs/{org_id}/keys", body)
    assert made.status == 200, made
    key: str = made.json["key"]
    return key


async def test_admins_see_verdicts_about_their_own_calls_and_operators_all(open_gateway: OpenGateway) -> None:
    guards = {"words": WORDS, "soft": {**WORDS, "on_hit": "flag"}, "theirs": {**WORDS, "orgs": ["org_other"]}}
    async with served_api(open_gateway, guards=guards) as api:
        other = await api.running.create_caller_in_new_org()
        admin = await key_of(api, other.org_id, "admin")
        image = {"model": "image-1", "size": "64x64"}
        for key, prompt in ((None, "a gun"), (None, "a pear"), (admin, "a pear")):
            await api.call("POST", "/compat/v1/images/generations", {**image, "prompt": prompt}, key=key)
        none = dict.fromkeys(("pass", "flag", "refuse", "error"), 0)
        assert await listed(api) == {
            "words": {**none, "pass": 2, "refuse": 1},
            "soft": {**none, "pass": 2, "flag": 1},
            "theirs": none,
        }
        assert await listed(api, admin) == {"words": {**none, "pass": 1}, "soft": {**none, "pass": 1}}


@sqlite_only
@pytest.mark.parametrize("on_error", ["open", "closed"])
async def test_a_guard_that_does_not_answer_is_counted_as_an_error(open_gateway: OpenGateway, on_error: str) -> None:
    nobody = {"http": {"url": "http://127.0.0.1:1/guard", "timeout_seconds": 5}, "on_error": on_error}
    async with served_api(open_gateway, guards={"house": nobody}) as api:
        assert (await api.image()).status == (200 if on_error == "open" else 503)
        assert (await listed(api))["house"] == {"pass": 0, "flag": 0, "refuse": 0, "error": 1}


@sqlite_only
async def test_other_keys_see_no_guards(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        plain = await key_of(api, api.running.caller.org_id)
        refused = await api.call("GET", "/v1/guards", key=plain)
        assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
        wrong = await api.call("GET", "/v1/guards?days=91")
        assert (wrong.status, wrong.json["error"]["param"]) == (400, "days")
        assert await listed(api) == {}
