"""The table of routes: which need a key, and which may cost money."""

from pathlib import Path

import pytest

from penstock.api import rates
from penstock.api.asgi import AsgiApp
from penstock.api.openapi.response_schemas import SCHEMAS
from penstock.api.routes import ROUTES
from tests.api.accounts import another_account, first_account, opened
from tests.api.raw_http import serving

OPEN = {
    "/healthz",
    "/readyz",
    "/auth/options",
    "/auth/login",
    "/auth/callback",
    "/openapi.json",
    "/",
    "/dashboard/{file:path}",
    "/docs",
    "/docs/{page:path}",
    "/llms.txt",
    "/llms-full.txt",
    "/verify",  # refused unless `public_verify` is set
    "/vote",
}
SIGNED = {
    "/m/{media_id}",
    "/callbacks/{provider}/{token}",
    "/auth/backchannel-logout",  # its token is
    "/vote",
    "/vote/pair",
    "/vote/files/{file}",
}


def filled(path: str) -> str:
    return path.replace("{model:path}", "a/b").replace("{alias:path}", "a/b").replace("{", "").replace("}", "")


def test_only_these_routes_need_no_key() -> None:
    assert {row.path for row in ROUTES if row.access == "open"} == OPEN
    assert {row.path for row in ROUTES if row.access == "signed"} == SIGNED


def test_no_route_is_there_twice() -> None:
    assert len({(row.method, row.path) for row in ROUTES}) == len(ROUTES)


def test_routes_that_may_cost_money_are_marked() -> None:
    posts = {row.path for row in ROUTES if row.method == "POST" and row.path.startswith("/compat/")}
    files_and_batches = {path for path in posts if path.startswith(("/compat/v1/files", "/compat/v1/batches"))}
    assert {row.path for row in ROUTES if row.generation} == posts - files_and_batches
    assert all(row.drains and row.needs_key and row.takes_work for row in ROUTES if row.generation)


def test_routes_with_a_body_have_fields_and_every_route_a_schema() -> None:
    for row in ROUTES:
        assert (row.takes in ("nothing", "raw")) == (row.fields is None), row.path
        without_schema = {"csv", "file", "jsonl", "page", "redirect", "text"}
        assert row.gives in {*SCHEMAS, *without_schema} or row.status == 204, row.path


def test_only_administration_routes_need_the_admin_scope() -> None:
    assert {(row.method, row.path) for row in ROUTES if row.access == "admin"} == {
        ("POST", "/v1/keys"),
        ("PATCH", "/v1/keys/{key_id}"),
        ("DELETE", "/v1/keys/{key_id}"),
        ("POST", "/v1/webhooks/secret/rotate"),
        ("POST", "/v1/webhooks/messages/redeliver"),
        ("POST", "/v1/webhooks/messages/{message_id}/redeliver"),
        ("POST", "/v1/webhooks/test"),
        ("PUT", "/v1/labels"),
        ("PUT", "/v1/own-key-limits"),
        ("PUT", "/v1/aliases/{alias:path}"),
        ("DELETE", "/v1/aliases/{alias:path}"),
        ("POST", "/v1/trials/{trial_id}/verdict"),
        ("PUT", "/v1/label-budgets/{name}/{value}"),
        ("DELETE", "/v1/label-budgets/{name}/{value}"),
        ("GET", "/v1/users"),
        ("PATCH", "/v1/users/{user_id}"),
        ("GET", "/v1/invitations"),
        ("POST", "/v1/invitations"),
        ("GET", "/v1/destinations"),
        ("POST", "/v1/destinations"),
        ("PATCH", "/v1/destinations/{destination_id}"),
        ("POST", "/v1/destinations/{destination_id}/rotate"),
        ("POST", "/v1/destinations/{destination_id}/check"),
        ("DELETE", "/v1/destinations/{destination_id}"),
        ("DELETE", "/v1/invitations/{invitation_id}"),
    }


def test_figures_of_all_organizations_need_the_operator_scope() -> None:
    assert {(row.method, row.path) for row in ROUTES if row.access == "operator"} == {
        ("GET", "/v1/providers"),
        ("POST", "/v1/providers/{provider}/check"),
        ("GET", "/v1/settings"),
        ("GET", "/v1/orgs"),
        ("POST", "/v1/orgs"),
        ("GET", "/v1/orgs/{org_id}"),
        ("PATCH", "/v1/orgs/{org_id}"),
        ("GET", "/v1/alerts"),
        ("GET", "/v1/alerts/secret"),
        ("POST", "/v1/alerts/test"),
        ("POST", "/v1/alerts/{message_id}/redeliver"),
        ("POST", "/v1/orgs/{org_id}/keys"),
        ("GET", "/v1/orgs/{org_id}/credits"),
        ("POST", "/v1/orgs/{org_id}/credits"),
    }
    assert [(row.method, row.path) for row in ROUTES if row.access == "metrics"] == [("GET", "/metrics")]


async def test_an_organizations_admin_is_no_operator(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway:
        first = await first_account(gateway)
        tenant = await another_account(gateway)
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            for path in ("/metrics", "/v1/providers", "/v1/settings", "/v1/orgs"):
                assert (await served.call("GET", path, key=tenant.admin.key)).code == "PERMISSION_DENIED"
                assert (await served.call("GET", path, key=first.admin.key)).status == 200
            for scopes in (["operator"], ["admin", "operator"]):
                body = {"scopes": scopes}
                for key in (tenant.admin.key, first.admin.key):
                    assert (await served.call("POST", "/v1/keys", key=key, body=body)).code == "INVALID_REQUEST"
            own = await served.call("GET", "/v1/key", key=tenant.admin.key)
            assert (own.json["id"], own.json["scopes"]) == (tenant.admin.id, ["admin"])
            assert (await served.call("GET", "/v1/key", key=first.admin.key)).json["scopes"] == ["admin", "operator"]
            assert (await served.call("GET", "/v1/key", key=tenant.plain.key)).json["scopes"] == []


async def test_every_other_route_refuses_a_call_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "BAD_KEYS_PER_MINUTE", 1000)
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        for row in ROUTES:
            for method in {row.method, "HEAD", "OPTIONS", "PUT"}:
                response = await served.call(method, filled(row.path))
                if row.path in OPEN | SIGNED:
                    assert response.status != 401, (method, row.path)
                else:
                    assert response.status == 401, (method, row.path)
                    assert response.headers["www-authenticate"] == "Bearer"


async def test_the_openapi_document_needs_no_key(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        await first_account(gateway)
        response = await served.call("GET", "/openapi.json")
        assert (response.status, response.json["openapi"]) == (200, "3.1.0")
