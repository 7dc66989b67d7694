"""Administrative calls with an idempotency key: one change, the same response, and no secret a second time."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.api.once import answer_once, is_administrative
from penstock.api.responses import encode
from penstock.api.routes import ROUTES
from penstock.errors import IdempotencyCompleted, IdempotencyInProgress, InvalidRequest, UnprocessableRequest
from penstock.schema import Caller, Response
from tests.api.running import running
from tests.gateway import OpenGateway, RunningGateway

KEYS = next(route for route in ROUTES if (route.method, route.path) == ("POST", "/v1/keys"))


async def create(
    running: RunningGateway, name: str = "ci", key: str = "once", caller: Caller | None = None
) -> Response:
    call = running.call({"name": name}, endpoint="/v1/keys", headers={"idempotency-key": key}, caller=caller)
    return await answer_once(running.gateway, call, KEYS)


async def key_names(running: RunningGateway) -> list[str]:
    return [row["name"] for row in await running.rows("SELECT name FROM keys") if row["name"] == "ci"]


async def test_a_repeated_call_changes_nothing_and_shows_no_secret(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        first = await create(running)
        again = await create(running)
        assert first.json["key"].startswith("pk_")
        assert again.json == {**_plain(first.json), "key": None}
        assert (again.status, again.headers) == (first.status, {"idempotent-replayed": "true"})
        assert await key_names(running) == ["ci"]
        assert await running.tables_with(first.json["key"]) == []
        other = await running.create_caller_in_new_org()
        assert (await create(running, caller=other)).json["key"], "keys of organizations do not meet"
        assert (await create(running, key="another")).json["key"]


def _plain(value: Any) -> Any:
    return msgspec.json.decode(encode(value))


async def test_another_body_is_refused_and_a_refusal_uses_up_no_key(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest):
            await create(running, name="x" * 1000)
        first = await create(running)
        with pytest.raises(UnprocessableRequest) as caught:
            await create(running, name="something else")
        assert caught.value.param == "idempotency_key"
        assert first.json["id"] not in caught.value.message
        assert await key_names(running) == ["ci"]


async def test_fifty_equal_calls_at_once_make_one_key(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        ended = await asyncio.gather(*(create(running) for _ in range(50)), return_exceptions=True)
        responses = [response for response in ended if isinstance(response, Response)]
        assert len([response for response in responses if response.json["key"]]) == 1
        assert {response.json["id"] for response in responses} == {responses[0].json["id"]}
        assert {type(problem) for problem in ended if not isinstance(problem, Response)} <= {IdempotencyInProgress}
        assert await key_names(running) == ["ci"]


async def test_a_response_that_was_lost_is_not_made_up_and_the_change_not_repeated(open_gateway: OpenGateway) -> None:
    """As after a kill between the change and the response: both are asked for."""
    async with open_gateway() as running:
        made = await create(running)
        await running.change("UPDATE idempotency_keys SET response = NULL")
        with pytest.raises(IdempotencyInProgress):
            await create(running)
        running.clock.advance(61)
        with pytest.raises(IdempotencyCompleted, match=made.json["id"]):
            await create(running)
        assert await key_names(running) == ["ci"]


async def test_a_key_expires(open_gateway: OpenGateway) -> None:
    async with open_gateway(idempotency_retention="1h") as running:
        await create(running)
        running.clock.advance(3601)
        assert (await create(running)).json["key"]
        assert await key_names(running) == ["ci", "ci"]


async def test_the_change_and_the_claim_are_written_together_or_not_at_all(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:

        async def broken(*_: Any, **__: Any) -> None:
            raise RuntimeError("the transaction fails at its end")

        monkeypatch.setattr("penstock.api.once._Claim.note", broken)
        with pytest.raises(RuntimeError):
            await create(running)
        assert await key_names(running) == []
        assert await running.rows("SELECT request_id FROM idempotency_keys") == []
        monkeypatch.undo()
        assert (await create(running)).json["key"]


def test_administrative_routes_are_those_that_change_something() -> None:
    found = {(route.method, route.path) for route in ROUTES if is_administrative(route)}
    assert {("POST", "/v1/keys"), ("POST", "/v1/accounts"), ("PATCH", "/v1/orgs/{org_id}")} <= found
    assert ("POST", "/v1/orgs/{org_id}/credits") in found
    assert not any(path.startswith("/compat") or method == "GET" for method, path in found)
    assert ("POST", "/v1/session") not in found


async def test_the_header_works_over_http(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        seen = []
        for _ in range(2):
            response = await here.served.call(
                "POST",
                "/v1/accounts",
                key=here.mine.admin.key,
                body={"provider": "fal", "credential": "fal-canary-of-the-account"},
                headers={"idempotency-key": "add-fal"},
            )
            assert response.status == 200, response
            seen.append((response.json["id"], response.headers.get("idempotent-replayed")))
        assert seen == [(seen[0][0], None), (seen[0][0], "true")]
        org = (await here.admin("POST", "/v1/orgs", {"name": "studio"})).json["id"]
        for _ in range(2):
            response = await here.served.call(
                "POST",
                f"/v1/orgs/{org}/credits",
                key=here.mine.admin.key,
                body={"usd": 5},
                headers={"idempotency-key": "pay"},
            )
            assert response.status in (200, 201), response
        assert (await here.admin("GET", f"/v1/orgs/{org}")).json["available"] == 5
        other = {"provider": "fal", "credential": "fal-canary-of-another-one"}
        for header, status in (("add-fal", 422), (" ", 400), ("x" * 300, 400)):
            response = await here.served.call(
                "POST", "/v1/accounts", key=here.mine.admin.key, body=other, headers={"idempotency-key": header}
            )
            assert response.status == status, header
