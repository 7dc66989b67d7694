"""Organizations and their credit over HTTP. The first organization's admin key is an operator's too."""

from pathlib import Path
from typing import Any

from penstock.values import new_id
from tests.api.running import running


async def test_operators_create_organizations_with_credit_and_keys(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        made = await here.admin("POST", "/v1/orgs", {"name": "Acme", "billing_type": "postpaid"})
        assert (made.status, made.json["name"], made.json["billing_type"]) == (200, "Acme", "postpaid")
        org_id = made.json["id"]
        listed = (await here.admin("GET", "/v1/orgs")).json["data"]
        assert made.json in listed
        assert len(listed) == 3

        credit = await here.admin("POST", f"/v1/orgs/{org_id}/credits", {"usd": 12.5, "note": "invoice 7"})
        assert (credit.json["amount"], credit.json["note"]) == (12.5, f"invoice 7 (by {here.mine.admin.id})")
        assert (await here.admin("GET", f"/v1/orgs/{org_id}/credits")).json["data"] == [credit.json]
        balances = {org["id"]: org["available"] for org in (await here.admin("GET", "/v1/orgs")).json["data"]}
        assert balances[org_id] == 12.5

        key = (await here.admin("POST", f"/v1/orgs/{org_id}/keys", {"scopes": ["admin"], "name": "first"})).json
        assert (key["scopes"], key["name"]) == (["admin"], "first")
        assert (await here.served.call("GET", "/v1/balance", key=key["key"])).json["billing_type"] == "postpaid"
        assert (await here.served.call("GET", "/v1/orgs", key=key["key"])).code == "PERMISSION_DENIED"


async def test_operators_change_the_limits_of_organizations(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        made = (await here.admin("POST", "/v1/orgs", {"name": "Acme"})).json
        path = f"/v1/orgs/{made['id']}"
        assert (await here.admin("GET", path)).json == made
        assert (made["usd_per_month"], made["storage_bytes"], made["spent_this_month"]) == (None, None, 0)
        limits = {"usd_per_month": 2.5, "storage_bytes": 1000, "provenance": "sign; required"}
        assert (await here.admin("PATCH", path, limits)).json == made | limits
        changed = await here.admin("PATCH", path, {"usd_per_month": None, "name": "Ajax"})
        assert (
            changed.json
            == made | limits | {"usd_per_month": None, "name": "Ajax"}
            == (await here.admin("GET", path)).json
        )
        bad: list[dict[str, Any]] = [
            {"usd_per_month": -1},
            {"storage_bytes": 1.5},
            {"provenance": "x"},
            {"billing_type": "postpaid"},
        ]
        for body in bad:
            response = await here.admin("PATCH", path, body)
            assert (response.status, response.json["error"]["param"]) == (400, next(iter(body)))
        response = await here.admin("PATCH", f"/v1/orgs/{new_id('org', 1)}", {"name": "x"})
        assert (response.status, response.code) == (404, "NOT_FOUND")


async def test_bad_fields_and_unknown_organizations_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        org_id = (await here.admin("POST", "/v1/orgs", {"name": "Acme"})).json["id"]
        credits = f"/v1/orgs/{org_id}/credits"
        bad: list[tuple[str, dict[str, Any], str]] = [
            ("/v1/orgs", {}, "name"),
            ("/v1/orgs", {"name": "x" * 201}, "name"),
            ("/v1/orgs", {"name": "a", "billing_type": "free"}, "billing_type"),
            ("/v1/orgs", {"name": "a", "credit": 5}, "credit"),
            (credits, {"usd": 0}, "usd"),
            (credits, {"usd": -5}, "usd"),
            (credits, {"usd": "5"}, "usd"),
            (credits, {"usd": 0.0000000001}, "usd"),
            (credits, {"note": "x"}, "usd"),
            (f"/v1/orgs/{org_id}/keys", {"scopes": ["operator"]}, "scopes"),
        ]
        for path, body, param in bad:
            response = await here.admin("POST", path, body)
            assert (response.status, response.json["error"]["param"]) == (400, param), (path, body)
        for unknown in (new_id("org", 1), "org_x", "x"):
            for path, body in (("credits", {"usd": 1}), ("keys", {})):
                response = await here.admin("POST", f"/v1/orgs/{unknown}/{path}", body)
                assert (response.status, response.code) == (404, "NOT_FOUND")
            assert (await here.admin("GET", f"/v1/orgs/{unknown}/credits")).status == 404


async def test_only_operators_see_and_change_organizations(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        for method, path in (
            ("GET", "/v1/orgs"),
            ("POST", "/v1/orgs"),
            ("GET", f"/v1/orgs/{new_id('org', 1)}"),
            ("PATCH", f"/v1/orgs/{new_id('org', 1)}"),
            ("POST", f"/v1/orgs/{new_id('org', 1)}/credits"),
            ("GET", f"/v1/orgs/{new_id('org', 1)}/credits"),
            ("POST", f"/v1/orgs/{new_id('org', 1)}/keys"),
        ):
            for key in (here.theirs.admin.key, here.mine.plain.key):
                response = await here.served.call(method, path, key=key, body=None if method == "GET" else {})
                assert response.code == "PERMISSION_DENIED", path
