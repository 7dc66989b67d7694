"""Ids of another organization are unknown ids, in every route that takes one."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from penstock.accounts.transfers import add_credit
from penstock.api.asgi import AsgiApp
from penstock.api.route import Route
from penstock.api.routes import ROUTES
from penstock.values import OrgId, nanos, new_id
from tests.api.accounts import Account, another_account, first_account, opened
from tests.api.raw_http import RawResponse, Server, serving
from tests.gateway import ENDED

CURSORS = ("starting_after", "ending_before", "after")
PREFIXES = ("req", "key", "rec", "med")
CALLS = 3  # that the victim makes
# What a route accepts that takes an id and a body.
BODIES = {
    "/v1/keys/{key_id}": {"name": "another name"},
    "/v1/orgs/{org_id}/credits": {"usd": 1},
    "/v1/label-budgets/{name}/{value}": {"usd_per_month": 1},
    "/v1/aliases/{alias:path}": {"model": "no/such"},
    "/v1/accounts/{account_id}/rotate": {"credential": "another-credential"},
    "/v1/destinations/{destination_id}/rotate": {"access_key_id": "AKIA", "secret_access_key": "secret"},
}


def paths_with_an_id(route: Route, known_id: str) -> Iterator[str]:
    """The paths of a route with the id in each place that takes one: in the path, and as a cursor of a list."""
    if "{" in route.path:
        yield re.sub(r"{\w+(:path)?}", known_id, route.path)
        return
    for query in route.query:
        if query.name in CURSORS:
            yield f"{route.path}?{query.name}={known_id}"


async def make_something_of_each_kind(served: Server, victim: Account) -> None:
    """Let the victim record an image and a video, and chat."""
    calls: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
        "images/generations": (
            {"model": "atelier/sketch", "prompt": "a pear", "size": "64x48"},
            {"x-service-replay": "record"},
        ),
        "videos": ({"model": "atelier/clip", "prompt": "a train", "seconds": 4}, {"x-service-replay": "mock"}),
        "chat/completions": ({"model": "atelier/echo", "messages": [{"role": "user", "content": "hello"}]}, {}),
    }
    for path, (body, headers) in calls.items():
        made = await served.call("POST", f"/compat/v1/{path}", key=victim.plain.key, body=body, headers=headers)
        assert made.status in (200, 202), made


def stored_rows(folder: Path, org_id: OrgId) -> dict[str, list[Any]]:
    """All rows of an organization by table, read directly from the database."""
    rows = {}
    with closing(apsw.Connection(str(folder / "penstock.db"), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = [column[1] for column in connection.execute(f'PRAGMA table_info("{table}")')]
            if "org_id" in columns:
                statement = f'SELECT * FROM "{table}" WHERE org_id = ?'  # noqa: S608 - the database's own names
                rows[table] = sorted(connection.execute(statement, (org_id,)), key=repr)
    return rows


def ids_in(rows: dict[str, list[Any]]) -> list[str]:
    """The ids of requests, keys, recordings and files."""
    found = re.findall(rf"\b((?:{'|'.join(PREFIXES)})_[0-9a-f]{{32}}(?:_?\d+)?)\b", repr(rows))
    return sorted(set(found))


def without_ids(response: RawResponse, sent_id: str) -> tuple[int, bytes]:
    body = response.body.replace(sent_id.encode(), b"ID")
    return response.status, re.sub(rb"req_[0-9a-f]{32}", b"REQUEST", body)


async def differences(served: Server, key: str, route: Route, known_id: str, unknown_id: str) -> list[str]:
    """Where the answer to an id of another organization is not the answer to an id that nobody has."""
    found = []
    paths = zip(paths_with_an_id(route, known_id), paths_with_an_id(route, unknown_id), strict=True)
    for theirs, nobodys in paths:
        body = None if route.takes == "nothing" else BODIES.get(route.path, {})
        for_theirs = without_ids(await served.call(route.method, theirs, key=key, body=body), known_id)
        for_nobodys = without_ids(await served.call(route.method, nobodys, key=key, body=body), unknown_id)
        if for_theirs != for_nobodys or ("{" in route.path and for_theirs[0] != 404):
            found.append(f"{route.method} {theirs}: {for_theirs}, but for an unknown id {for_nobodys}")
    return found


async def wait_until_ended(served: Server, victim: Account) -> None:
    async with asyncio.timeout(60):
        while True:
            listed = await served.call("GET", "/v1/requests", key=victim.plain.key)
            ended = [request for request in listed.json["data"] if request["status"] in ENDED]
            if len(ended) == CALLS:
                return
            await asyncio.sleep(0.01)


async def test_an_id_of_another_organization_is_an_unknown_id_everywhere(tmp_path: Path) -> None:
    """Each route is tried with each id that the other organization has, so that a new route cannot be forgotten."""
    async with opened(tmp_path, works=True) as gateway:
        attacker = await first_account(gateway)
        victim = await another_account(gateway)
        await gateway.store.write(
            lambda tx: add_credit(tx, victim.org_id, nanos("10"), gateway.clock.now_ms(), "credit of a test")
        )
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            await make_something_of_each_kind(served, victim)
            await wait_until_ended(served, victim)
            before = stored_rows(tmp_path, victim.org_id)
            known = ids_in(before)
            assert {known_id.partition("_")[0] for known_id in known} >= {"req", "key", "rec"}, known
            found = []
            for route in (route for route in ROUTES if route.needs_key):
                for known_id in known:
                    unknown_id = new_id(known_id.partition("_")[0], gateway.clock.now_ms())
                    found += await differences(served, attacker.admin.key, route, known_id, unknown_id)
            assert not found, "\n".join(found)
            assert stored_rows(tmp_path, victim.org_id) == before
