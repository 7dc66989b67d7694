"""Own keys over HTTP: for people who are signed in, by the pages, and never by a key."""

from pathlib import Path
from typing import Any

from penstock.people.configured import RoleRule
from penstock.people.oidc import Identity
from tests.api.raw_http import RawResponse
from tests.api.running import RunningGateway, running

RULES = (RoleRule(role="member", org="Other", group="media"), RoleRule(role="viewer", org="Other", group="guests"))
PAGE = {"x-penstock-page": "1", "sec-fetch-site": "same-origin"}


class Person:
    """Somebody who is signed in at the other organization."""

    def __init__(self, here: RunningGateway, token: str, user_id: str) -> None:
        self.here, self.token, self.user_id = here, token, user_id

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> RawResponse:
        sent = {"cookie": f"penstock-80={self.token}", **PAGE, **headers}
        return await self.here.served.call(method, path, headers=sent, body=body)


async def sign_in(here: RunningGateway, subject: str = "anna", group: str = "media") -> Person:
    identity = Identity("https://issuer.example", subject, f"{subject}@studio.example", True, None, frozenset({group}))
    caller = await here.gateway.users.enter(identity, RULES, None)
    session = await here.gateway.sessions.begin(caller, None, "", keep=False)
    return Person(here, session.token, str(caller.user_id))


async def status(here: RunningGateway, key: str) -> int:
    return (await here.served.call("GET", "/v1/key", key=key)).status


async def test_a_person_makes_lists_and_revokes_keys(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        anna, ben = await sign_in(here), await sign_in(here, "ben")
        made = await anna.call("POST", "/v1/own-keys", {"name": "laptop", "usd_per_day": 2.5})
        assert (made.status, made.json["owner"]) == (200, {"id": anna.user_id, "name": "anna@studio.example"})
        assert made.headers["cache-control"] == "no-store"
        key = made.json["key"]
        assert (await here.served.call("GET", "/v1/key", key=key)).json["usd_per_day"] == 2.5
        [listed] = (await anna.call("GET", "/v1/own-keys")).json["data"]
        assert listed == {name: value for name, value in made.json.items() if name != "key"}
        assert (await ben.call("GET", "/v1/own-keys")).json["data"] == []
        path = f"/v1/own-keys/{made.json['id']}"
        assert (await ben.call("DELETE", path)).status == 404
        events = (await here.served.call("GET", f"/v1/audit?target={made.json['id']}", key=here.theirs.admin.key)).json
        assert [(event["action"], event["actor"]) for event in events["data"]] == [("key.created", anna.user_id)]
        assert events["data"][0]["after"]["owner"] == anna.user_id
        assert (await anna.call("DELETE", path)).json["status"] == "revoked"
        assert await status(here, key) == 401


async def test_only_people_who_are_signed_in_have_keys_of_their_own(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        anna = await sign_in(here)
        guest = await sign_in(here, "eve", "guests")
        own = (await anna.call("POST", "/v1/own-keys", {})).json["key"]
        for key in (own, here.theirs.plain.key, here.theirs.admin.key, here.mine.admin.key):
            for method, path, body in (("GET", "/v1/own-keys", None), ("POST", "/v1/own-keys", {})):
                assert (await here.served.call(method, path, key=key, body=body)).status == 403
        assert (await guest.call("POST", "/v1/own-keys", {})).status == 403
        begun = await here.served.call("POST", "/v1/session", key=own, body={})
        through_key = Person(here, begun.headers["set-cookie"].partition(";")[0].partition("=")[2], "")
        assert (await through_key.call("GET", "/v1/key")).status == 200
        assert (await through_key.call("POST", "/v1/own-keys", {})).status == 403, "a key makes no keys"
        assert (await anna.call("POST", "/v1/own-keys", {}, **{"x-penstock-page": "0"})).status == 403
        assert (await here.served.call("POST", "/v1/own-keys", body={})).status == 401
        for wrong in ({"scopes": ["admin"]}, {"labels": {"a": "b"}}, {"usd_per_day": -1}, {"name": 5}, {"org_id": "x"}):
            assert (await anna.call("POST", "/v1/own-keys", wrong)).status == 400


async def test_admins_limit_keys_of_people_in_their_organization(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        anna = await sign_in(here)
        admin = here.theirs.admin.key
        path = "/v1/own-key-limits"
        before = (await here.served.call("GET", path, key=here.theirs.plain.key)).json
        assert (before["keys"], before["days"], before["usd_per_day"]) == (10, 90, None)
        assert (await anna.call("PUT", path, {"keys": 100})).status == 403
        given = {"keys": 1, "usd_per_month": 20, "models": ["atelier/*"]}
        limits = await here.served.call("PUT", path, key=admin, body=given)
        assert limits.json == {**before, **given}
        mine = await here.gateway.keys.create_key(here.mine.org_id)
        assert (await here.served.call("GET", path, key=mine.key)).json == before
        for wrong in ({"keys": 1.5}, {"days": 0}, {"models": "x"}, {"usd_per_day": "x"}, {"more": 1}):
            assert (await here.served.call("PUT", path, key=admin, body=wrong)).status == 400
        refused = await anna.call("POST", "/v1/own-keys", {"usd_per_month": 20.01})
        assert (refused.status, refused.json["error"]["param"]) == (400, "usd_per_month")
        once = {"idempotency-key": "first"}
        made = await anna.call("POST", "/v1/own-keys", {"models": ["atelier/sketch"]}, **once)
        again = await anna.call("POST", "/v1/own-keys", {"models": ["atelier/sketch"]}, **once)
        assert (again.json["id"], again.json["key"]) == (made.json["id"], None)
        assert (await anna.call("POST", "/v1/own-keys", {})).status == 409
        raised = await here.served.call(
            "PATCH", f"/v1/keys/{made.json['id']}", key=admin, body={"usd_per_month": 100, "models": None}
        )
        assert (raised.json["usd_per_month"], raised.json["owner"]["id"]) == (100, anna.user_id), "an admin may"


async def test_keys_are_gone_at_once_with_every_session_and_the_person(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        anna = await sign_in(here)
        key = (await anna.call("POST", "/v1/own-keys", {})).json["key"]
        assert await status(here, key) == 200
        await anna.call("DELETE", "/v1/session?everywhere=true")
        assert await status(here, key) == 401
        anna = await sign_in(here)
        key = (await anna.call("POST", "/v1/own-keys", {})).json["key"]
        assert await status(here, key) == 200
        operator = here.mine.admin.key
        await here.served.call("PATCH", f"/v1/users/{anna.user_id}", key=operator, body={"status": "deactivated"})
        assert await status(here, key) == 401
