"""Records, keys, balance and webhook secret, over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.api.asgi import AsgiApp
from penstock.clock import ManualClock
from penstock.gateway import Gateway
from penstock.values import new_id
from tests.api.accounts import Account, another_account, first_account, opened
from tests.api.raw_http import Said, Server, serving


class RunningGateway:
    """A served gateway with two organizations."""

    def __init__(self, served: Server, gateway: Gateway, mine: Account, theirs: Account) -> None:
        self.served, self.gateway, self.mine, self.theirs = served, gateway, mine, theirs

    async def get(self, path: str, account: Account | None = None) -> Said:
        return await self.served.ask("GET", path, key=(account or self.mine).plain.key)

    async def admin(self, method: str, path: str, body: Any = None) -> Said:
        return await self.served.ask(method, path, key=self.mine.admin.key, body=body)

    async def refused(self, count: int, account: Account | None = None) -> list[str]:
        """As many records, newest first: calls for a model that does not exist."""
        found: list[str] = []
        for _ in range(count):
            said = await self.served.ask(
                "POST",
                "/compat/v1/images/generations",
                key=(account or self.mine).plain.key,
                body={"prompt": "fox", "model": "no/such"},
            )
            assert said.code == "MODEL_NOT_FOUND"
            found.insert(0, said.headers["x-request-id"])
            assert isinstance(self.gateway.clock, ManualClock)
            self.gateway.clock.advance(60)
        return found


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[RunningGateway]:
    async with opened(folder, clock=ManualClock()) as gateway:
        mine, theirs = await first_account(gateway), await another_account(gateway)
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            yield RunningGateway(served, gateway, mine, theirs)


def ids(said: Said) -> list[str]:
    assert said.status == 200, said
    assert said.json["object"] == "list"
    return [one["id"] for one in said.json["data"]]


# ------------------------------------------------------------------------------------------------------------- requests


async def test_requests_are_listed_newest_first_and_paged_by_their_addresses(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        made = await here.refused(5)
        await here.refused(2, here.theirs)
        assert ids(await here.get("/v1/requests")) == made

        first = await here.get("/v1/requests?limit=2&status=rejected")
        assert ids(first) == made[:2]
        assert first.json["previous_page_url"] is None
        assert first.json["next_page_url"] == f"/v1/requests?limit=2&status=rejected&starting_after={made[1]}"
        second = await here.get(first.json["next_page_url"])
        assert ids(second) == made[2:4]
        last = await here.get(second.json["next_page_url"])
        assert (ids(last), last.json["next_page_url"]) == (made[4:], None)
        back = await here.get(last.json["previous_page_url"])
        assert ids(back) == made[2:4]
        start = await here.get(back.json["previous_page_url"])
        assert (ids(start), start.json["previous_page_url"]) == (made[:2], None)


async def test_requests_are_filtered(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        made = await here.refused(3)
        second = (await here.get(f"/v1/requests/{made[1]}")).json["created_at"]
        assert ids(await here.get(f"/v1/requests?created_after={second}")) == made[:2]
        assert ids(await here.get(f"/v1/requests?created_before={second}")) == made[1:]
        assert ids(await here.get(f"/v1/requests?created_after={second}&created_before={second}")) == [made[1]]
        assert ids(await here.get("/v1/requests?status=completed")) == []
        assert ids(await here.get(f"/v1/requests?key_id={here.mine.plain.record['id']}")) == made
        assert ids(await here.get(f"/v1/requests?key_id={here.mine.admin.record['id']}")) == []
        assert ids(await here.get("/v1/requests?key_id=%25")) == []


async def test_a_summary_counts_all_that_matches_and_not_the_page(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        await here.refused(3)
        said = await here.get("/v1/requests?limit=1&summary=true")
        assert said.json["summary"] == {"total_cost": 0, "currency": "usd", "count": 3}
        assert "summary=true" in said.json["next_page_url"]
        assert "summary" not in (await here.get("/v1/requests")).json
        assert "summary" not in (await here.get("/v1/requests?summary=false")).json


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("status=done", "status"),
        ("summary=1", "summary"),
        ("created_after=yesterday", "created_after"),
        ("created_before=", "created_before"),
        ("key_id=", "key_id"),
        ("limit=1&limit=2", "limit"),
    ],
)
async def test_bad_parameters_are_named(tmp_path: Path, query: str, param: str) -> None:
    async with running(tmp_path) as here:
        said = await here.get(f"/v1/requests?{query}")
        assert (said.status, said.code, said.json["error"]["param"]) == (400, "INVALID_REQUEST", param)


async def test_both_cursors_are_a_400(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        [made] = await here.refused(1)
        for path in (
            f"/v1/requests?starting_after={made}&ending_before={made}",
            "/v1/keys?starting_after=x&ending_before=y",
        ):
            said = await here.get(path)
            assert (said.status, said.code) == (400, "INVALID_REQUEST")
            assert "cannot be combined" in said.json["error"]["message"]


async def test_a_foreign_id_is_as_unknown_as_one_that_never_was(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        [theirs] = await here.refused(1, here.theirs)
        never, key = new_id("req", 1), here.theirs.plain.record["id"]
        never_key = new_id("key", 1)
        for foreign, missing, path in (
            (theirs, never, "/v1/requests/{}"),
            (theirs, never, "/v1/requests?starting_after={}"),
            (theirs, never, "/v1/requests?ending_before={}"),
            (theirs, never, "/compat/v1/videos/{}"),
            (theirs, never, "/compat/v1/images/{}"),
            (key, never_key, "/v1/keys?starting_after={}"),
            (key, never_key, "/v1/keys?ending_before={}"),
            (theirs, "req_x", "/v1/requests/{}"),
            (theirs, "%C3%A9", "/v1/requests/{}"),
        ):
            one, other = await here.get(path.format(foreign)), await here.get(path.format(missing))
            assert (one.status, one.code) == (404, "NOT_FOUND"), path
            assert one.status == other.status
            assert one.body.replace(foreign.encode(), b"ID") == other.body.replace(
                missing.replace("%C3%A9", "é").encode(), b"ID"
            )
        assert ids(await here.get(f"/v1/requests?key_id={key}")) == []


async def test_one_request_is_retrieved(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        [made] = await here.refused(1)
        said = await here.get(f"/v1/requests/{made}")
        assert (said.json["id"], said.json["object"], said.json["status"]) == (made, "request", "rejected")
        assert said.json["created_at"] == "2023-11-14T22:13:22.000Z"


# ----------------------------------------------------------------------------------------------------------------- keys


async def test_keys_are_listed_newest_first_and_never_shown_whole(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        said = await here.get("/v1/keys?limit=1")
        assert ids(said) == [here.mine.plain.record["id"]]
        assert said.json["data"][0]["last_four"] == here.mine.plain.key[-4:]
        assert here.mine.plain.key not in said.body.decode()
        second = await here.get(said.json["next_page_url"])
        assert ids(second) == [here.mine.admin.record["id"]]
        assert second.json["next_page_url"] is None
        assert ids(await here.get(second.json["previous_page_url"])) == ids(said)
        assert (await here.get("/v1/keys?status=lost")).code == "INVALID_REQUEST"


async def test_d12_a_key_is_made_shown_once_used_and_revoked(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        made = await here.admin(
            "POST", "/v1/keys", {"name": "new", "calls_at_once": 3, "usd_a_day": 1.25, "scopes": []}
        )
        assert (made.status, made.headers["cache-control"]) == (200, "no-store")
        key, key_id = made.json["key"], made.json["id"]
        assert (made.json["name"], made.json["status"], made.json["last_four"]) == ("new", "active", key[-4:])
        caller = await here.gateway.keys.caller(f"Bearer {key}")
        assert (caller.calls_at_once, caller.nanos_a_day, caller.scopes) == (3, 1_250_000_000, frozenset())
        assert (await here.served.ask("GET", "/v1/balance", key=key)).status == 200

        gone = await here.admin("DELETE", f"/v1/keys/{key_id}")
        assert (gone.status, gone.json["status"]) == (200, "revoked")
        assert gone.json["revoked_at"] is not None
        assert (await here.served.ask("GET", "/v1/balance", key=key)).status == 401
        assert ids(await here.get("/v1/keys?status=revoked")) == [key_id]
        again = await here.admin("DELETE", f"/v1/keys/{key_id}")
        assert again.json == gone.json


async def test_d12_making_and_revoking_keys_needs_the_admin_scope(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        plain = here.mine.plain
        for method, path in (("POST", "/v1/keys"), ("DELETE", f"/v1/keys/{plain.record['id']}")):
            said = await here.served.ask(method, path, key=plain.key, body={})
            assert (said.status, said.code) == (403, "PERMISSION_DENIED")
        assert len(ids(await here.get("/v1/keys"))) == 2


async def test_foreign_keys_cannot_be_revoked(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        for key_id in (here.theirs.plain.record["id"], new_id("key", 1), "key_x", "x"):
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
        ({"calls_a_minute": 0}, "calls_a_minute"),
        ({"calls_at_once": 1.5}, "calls_at_once"),
        ({"usd_a_day": -1}, "usd_a_day"),
        ({"usd_a_day": "1"}, "usd_a_day"),
        ({"replay_mode": "rewind"}, "replay_mode"),
        ({"org_id": "org_other"}, "org_id"),
        ({"key": "pk_mine"}, "key"),
    ],
)
async def test_a_key_has_no_other_fields_and_no_other_values(tmp_path: Path, body: Any, param: str) -> None:
    async with running(tmp_path) as here:
        said = await here.admin("POST", "/v1/keys", body)
        assert (said.status, said.code, said.json["error"]["param"]) == (400, "INVALID_REQUEST", param)


# ---------------------------------------------------------------------------------------------------------------- money


async def test_the_balance_is_a_number_of_dollars(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        assert (await here.get("/v1/balance")).json == {
            "object": "balance",
            "billing_type": "prepaid",
            "available": {"amount": 10, "currency": "usd"},
        }
        assert (await here.get("/v1/balance", here.theirs)).json["available"]["amount"] == 0


async def test_the_webhook_secret_is_made_once_and_kept_by_nobody_on_the_way(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        said = await here.get("/v1/webhooks/secret")
        assert said.json["key"].startswith("whsec_")
        assert said.headers["cache-control"] == "no-store"
        assert (await here.get("/v1/webhooks/secret")).json == said.json
        assert (await here.get("/v1/webhooks/secret", here.theirs)).json != said.json
