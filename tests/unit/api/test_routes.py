"""The table of paths: nothing is open that should be closed, and what costs money is marked."""

from pathlib import Path

from penstock.api.asgi import AsgiApp
from penstock.api.response_schemas import SCHEMAS
from penstock.api.routes import ROUTES
from tests.api.accounts import first_account, opened
from tests.api.raw_http import serving

OPEN = {"/healthz", "/readyz", "/openapi.json", "/", "/dashboard/{file}"}
SIGNED = {"/m/{media_id}", "/callbacks/{provider}/{token}"}


def filled(path: str) -> str:
    return path.replace("{model:path}", "a/b").replace("{", "").replace("}", "")


def test_only_these_rows_need_no_key() -> None:
    assert {row.path for row in ROUTES if row.access == "open"} == OPEN
    assert {row.path for row in ROUTES if row.access == "signed"} == SIGNED


def test_no_row_is_there_twice() -> None:
    assert len({(row.method, row.path) for row in ROUTES}) == len(ROUTES)


def test_what_may_cost_money_is_marked() -> None:
    posts = {row.path for row in ROUTES if row.method == "POST" and row.path.startswith("/compat/")}
    assert {row.path for row in ROUTES if row.generation} == posts
    assert all(row.drains and row.needs_key for row in ROUTES if row.generation)


def test_rows_that_take_a_body_say_what_is_in_it_and_what_comes_back() -> None:
    for row in ROUTES:
        assert (row.takes in ("nothing", "raw")) == (row.fields is None), row.path
        assert row.gives in {*SCHEMAS, "file", "page", "text"} or row.status == 204, row.path


def test_only_administration_needs_the_admin_scope() -> None:
    assert {(row.method, row.path) for row in ROUTES if row.access == "admin"} == {
        ("POST", "/v1/keys"),
        ("DELETE", "/v1/keys/{key_id}"),
        ("GET", "/v1/providers"),
        ("GET", "/metrics"),
    }


async def test_every_row_but_the_open_ones_asks_for_a_key(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        for row in ROUTES:
            for method in {row.method, "HEAD", "OPTIONS", "PUT"}:
                said = await served.ask(method, filled(row.path))
                if row.path in OPEN | SIGNED:
                    assert said.status != 401, (method, row.path)
                else:
                    assert said.status == 401, (method, row.path)
                    assert said.headers["www-authenticate"] == "Bearer"


async def test_the_document_is_served_to_everybody(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        await first_account(gateway)
        said = await served.ask("GET", "/openapi.json")
        assert (said.status, said.json["openapi"]) == (200, "3.1.0")
