"""API keys over HTTP."""

from pathlib import Path
from typing import Any

import pytest

from penstock.values import new_id
from tests.api.running import ids, running


async def test_keys_are_listed_newest_first_without_the_whole_key(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        response = await here.get("/v1/keys?limit=1")
        assert ids(response) == [here.mine.plain.id]
        assert response.json["data"][0]["last_four"] == here.mine.plain.key[-4:]
        assert here.mine.plain.key not in response.body.decode()
        second = await here.get(response.json["next_page_url"])
        assert ids(second) == [here.mine.admin.id]
        assert second.json["next_page_url"] is None
        assert ids(await here.get(second.json["previous_page_url"])) == ids(response)
        assert (await here.get("/v1/keys?status=lost")).code == "INVALID_REQUEST"


async def test_a_key_is_created_shown_once_used_and_revoked(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        made = await here.admin(
            "POST", "/v1/keys", {"name": "new", "concurrent_requests": 3, "usd_per_day": 1.25, "scopes": []}
        )
        assert (made.status, made.headers["cache-control"]) == (200, "no-store")
        key, key_id = made.json["key"], made.json["id"]
        assert (made.json["name"], made.json["status"], made.json["last_four"]) == ("new", "active", key[-4:])
        caller = await here.gateway.keys.authenticate(f"Bearer {key}")
        assert (caller.concurrent_requests, caller.nanos_per_day, caller.scopes) == (3, 1_250_000_000, frozenset())
        assert (await here.served.call("GET", "/v1/balance", key=key)).status == 200

        gone = await here.admin("DELETE", f"/v1/keys/{key_id}")
        assert (gone.status, gone.json["status"]) == (200, "revoked")
        assert gone.json["revoked_at"] is not None
        assert (await here.served.call("GET", "/v1/balance", key=key)).status == 401
        assert ids(await here.get("/v1/keys?status=revoked")) == [key_id]
        again = await here.admin("DELETE", f"/v1/keys/{key_id}")
        assert again.json == gone.json


async def test_creating_and_revoking_keys_needs_the_admin_scope(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        plain = here.mine.plain
        for method, path in (("POST", "/v1/keys"), ("DELETE", f"/v1/keys/{plain.id}")):
            response = await here.served.call(method, path, key=plain.key, body={})
            assert (response.status, response.code) == (403, "PERMISSION_DENIED")
        assert len(ids(await here.get("/v1/keys"))) == 2


async def test_keys_of_other_organizations_cannot_be_revoked(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        for key_id in (here.theirs.plain.id, new_id("key", 1), "key_x", "x"):
            assert (await here.admin("DELETE", f"/v1/keys/{key_id}")).code == "NOT_FOUND"
        assert (await here.get("/v1/balance", here.theirs)).status == 200


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"name": 7}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"scopes": "admin"}, "scopes"),
        ({"scopes": ["root"]}, "scopes"),
        ({"scopes": [["admin"]]}, "scopes"),
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"concurrent_requests": 1.5}, "concurrent_requests"),
        ({"usd_per_day": -1}, "usd_per_day"),
        ({"usd_per_day": "1"}, "usd_per_day"),
        ({"replay_mode": "rewind"}, "replay_mode"),
        ({"org_id": "org_other"}, "org_id"),
        ({"key": "pk_mine"}, "key"),
    ],
)
async def test_unknown_fields_and_bad_values_of_a_key_are_refused(tmp_path: Path, body: Any, param: str) -> None:
    async with running(tmp_path) as here:
        response = await here.admin("POST", "/v1/keys", body)
        assert (response.status, response.code, response.json["error"]["param"]) == (400, "INVALID_REQUEST", param)


async def test_limits_of_a_key_are_changed_by_admins_of_its_organization(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        key_id = here.mine.plain.id
        body = {"name": "app", "usd_per_month": 20.5, "models": ["atelier/*"], "expires_at": "2099-01-01T00:00:00Z"}
        changed = await here.admin("PATCH", f"/v1/keys/{key_id}", body)
        assert changed.status == 200
        assert {name: changed.json[name] for name in ("name", "usd_per_month", "models")} == {
            "name": "app",
            "usd_per_month": 20.5,
            "models": ["atelier/*"],
        }
        assert changed.json["expires_at"] == "2099-01-01T00:00:00.000Z"
        assert (await here.get(f"/v1/keys/{key_id}")).json == changed.json
        cleared = await here.admin("PATCH", f"/v1/keys/{key_id}", {"models": None, "usd_per_month": None})
        assert (cleared.json["models"], cleared.json["usd_per_month"], cleared.json["name"]) == (None, None, "app")

        plain = await here.served.call("PATCH", f"/v1/keys/{key_id}", key=here.mine.plain.key, body={"name": "x"})
        assert (plain.status, plain.code) == (403, "PERMISSION_DENIED")
        for foreign in (here.theirs.plain.id, new_id("key", 1), "key_x"):
            assert (await here.admin("PATCH", f"/v1/keys/{foreign}", {"name": "x"})).code == "NOT_FOUND"
            assert (await here.get(f"/v1/keys/{foreign}")).code == "NOT_FOUND"
        for bad in ({"scopes": ["admin"]}, {"status": "active"}, {"models": "x"}, {"usd_per_month": -1}):
            refused = await here.admin("PATCH", f"/v1/keys/{key_id}", bad)
            assert (refused.status, refused.json["error"]["param"]) == (400, next(iter(bad)))
        await here.admin("DELETE", f"/v1/keys/{key_id}")
        assert (await here.admin("PATCH", f"/v1/keys/{key_id}", {"name": "x"})).code == "CONFLICT"
