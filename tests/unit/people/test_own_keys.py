"""Keys that people make: within the limits of now, theirs in records and the audit log, and gone with them."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from penstock.accounts.key_records import read_key_names
from penstock.accounts.orgs import create_org
from penstock.errors import Conflict, InvalidRequest, NotFound, PermissionDenied
from penstock.people.configured import RoleRule
from penstock.people.oidc import Identity
from penstock.people.own_keys import OwnKeyLimits, checked_limits
from penstock.schema import Caller
from penstock.values import DAY_MS, OrgId, iso, nanos
from tests.gateway import OpenGateway, RunningGateway

RULES = (
    RoleRule(role="member", org="default", group="media"),
    RoleRule(role="viewer", org="default", group="guests"),
    RoleRule(role="member", org="studio", group="both"),
    RoleRule(role="member", org="default", group="both"),
)


async def enter(running: RunningGateway, *groups: str, subject: str = "anna", name: str | None = "Anna") -> Caller:
    identity = Identity("https://issuer.example", subject, f"{subject}@studio.example", True, name, frozenset(groups))
    return await running.gateway.users.enter(identity, RULES, None)


async def make(running: RunningGateway, person: Caller, **options: Any) -> str:
    """Make a key of a person, and return it."""
    return (await running.gateway.own_keys.create(str(person.user_id), person.org_id, options)).key


async def works(running: RunningGateway, *keys: str) -> list[bool]:
    """Which keys work in a process that has not seen them before."""
    running.clock.advance(2)
    found = [running.gateway.keys.authenticate(f"Bearer {key}") for key in keys]
    return [isinstance(each, Caller) for each in await asyncio.gather(*found, return_exceptions=True)]


async def test_a_key_has_the_limits_of_the_organization_or_lower_ones(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        anna = await enter(running, "media")
        fields = {
            "days": 30,
            "usd_per_day": "5",
            "usd_per_month": Decimal(20),
            "requests_per_minute": 60,
            "models": ["lab/*", "x"],
        }
        await running.gateway.own_keys.set_limits(anna.org_id, checked_limits(fields))
        now_ms = running.clock.now_ms()
        first = await running.gateway.keys.authenticate(f"Bearer {await make(running, anna)}")
        assert (first.owner_id, first.user_id, first.scopes) == (anna.user_id, None, frozenset())
        assert (first.nanos_per_day, first.nanos_per_month) == (nanos("5"), nanos("20"))
        assert (first.requests_per_minute, first.concurrent_requests, first.models) == (60, None, ("lab/*", "x"))
        running.clock.advance(1)
        await make(running, anna, usd_per_day="4.99", models=["lab/chat", "x"], concurrent_requests=3, name="mine")
        [second, _] = await running.gateway.own_keys.list_records(str(anna.user_id), anna.org_id)
        assert second["owner"] == {"id": anna.user_id, "name": "Anna"}
        assert (second["usd_per_day"], second["usd_per_month"]) == (Decimal("4.99"), 20)
        assert second["models"] == ["lab/chat", "x"]
        assert second["expires_at"] == iso(now_ms + 30 * DAY_MS + 1000)
        for name, value in (
            ("usd_per_day", "5.01"),
            ("usd_per_month", "21"),
            ("requests_per_minute", 61),
            ("models", ["lab/chat", "other"]),
            ("models", ["*"]),
            ("models", ["xy"]),
            ("expires_at", iso(now_ms + 31 * DAY_MS)),
            ("usd_per_day", "much"),
        ):
            with pytest.raises(InvalidRequest) as caught:
                await make(running, anna, **{name: value})
            assert caught.value.param == name


async def test_people_have_as_many_keys_as_allowed_and_viewers_none(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        anna = await enter(running, "media")
        await running.gateway.own_keys.set_limits(anna.org_id, OwnKeyLimits(keys=3, days=1))
        made = await asyncio.gather(*(make(running, anna) for _ in range(5)), return_exceptions=True)
        assert sum(isinstance(each, Conflict) for each in made) == 2
        ben = await enter(running, "media", subject="ben", name=None)
        await make(running, ben)
        running.clock.advance(86_400)
        assert await make(running, anna), "keys that have expired do not count"
        await running.gateway.own_keys.set_limits(anna.org_id, OwnKeyLimits(keys=0))
        for refused in (ben, await enter(running, "guests", subject="eve")):
            with pytest.raises(PermissionDenied):
                await make(running, refused)
        wrong: list[dict[str, Any]] = [{"keys": -1}, {"keys": 101}, {"days": 0}, {"keys": True}, {"models": []}]
        for values in [*wrong, {"usd_per_day": "x"}]:
            with pytest.raises(InvalidRequest):
                checked_limits(values)
        with pytest.raises(NotFound):
            await running.gateway.own_keys.set_limits(OrgId("org_none"), OwnKeyLimits())


async def test_only_the_person_revokes_the_key_in_its_organization(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        studio = await create_org(running.gateway.store, running.clock, "studio", "prepaid")
        anna, ben = await enter(running, "both"), await enter(running, "media", subject="ben")
        key = await running.gateway.own_keys.create(str(anna.user_id), running.caller.org_id, {})
        there = await running.gateway.own_keys.create(str(anna.user_id), studio.id, {})
        own_keys = running.gateway.own_keys
        session_key = anna.key_id
        for user_id, org_id, key_id in (
            (ben.user_id, ben.org_id, key.id),
            (anna.user_id, studio.id, key.id),
            (anna.user_id, anna.org_id, session_key),
            (anna.user_id, anna.org_id, running.caller.key_id),
        ):
            with pytest.raises(NotFound):
                await own_keys.revoke(str(user_id), org_id, key_id)
        with pytest.raises(PermissionDenied):
            await own_keys.create(str(ben.user_id), studio.id, {})
        assert (await own_keys.revoke(str(anna.user_id), running.caller.org_id, key.id))["status"] == "revoked"
        assert await works(running, key.key, there.key) == [False, True]
        assert await own_keys.list_records(str(anna.user_id), running.caller.org_id) == []


async def test_keys_end_with_the_role_the_person_and_every_session(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        users, sessions = running.gateway.users, running.gateway.sessions
        studio = await create_org(running.gateway.store, running.clock, "studio", "prepaid")
        anna = await enter(running, "both")
        here = (await running.gateway.own_keys.create(str(anna.user_id), running.caller.org_id, {})).key
        there = (await running.gateway.own_keys.create(str(anna.user_id), studio.id, {})).key
        await enter(running, "media")
        assert await works(running, here, there) == [True, False], "the group of the other organization is gone"
        await users.grant(str(anna.user_id), running.caller.org_id, "admin")
        assert await works(running, here) == [True]
        await users.grant(str(anna.user_id), running.caller.org_id, "viewer")
        assert await works(running, here) == [False]
        await users.grant(str(anna.user_id), running.caller.org_id, "member")
        assert await works(running, here) == [False], "for good"
        key = await make(running, await enter(running, "media"))
        program = (await running.gateway.keys.create_key(anna.org_id)).key
        token = (await sessions.begin(await enter(running, "media"), None, "", keep=False)).token
        await sessions.end(await sessions.authenticate(token), everywhere=False)
        assert await works(running, key) == [True]
        token = (await sessions.begin(await enter(running, "media"), None, "", keep=False)).token
        await sessions.end(await sessions.authenticate(token), everywhere=True)
        assert await works(running, key, program) == [False, True]
        key = await make(running, await enter(running, "media"))
        await users.set_status(str(anna.user_id), "deactivated")
        await users.set_status(str(anna.user_id), "active")
        assert await works(running, key) == [False]


async def test_records_and_usage_name_the_person(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        anna, ben = await enter(running, "media"), await enter(running, "media", subject="ben", name=None)
        for person, name in ((anna, "laptop"), (ben, None)):
            key = await make(running, person, **({"name": name} if name else {}))
            caller = await running.gateway.keys.authenticate(f"Bearer {key}")
            await running.image(caller=caller)
        rows = await running.rows("SELECT key_id FROM requests ORDER BY id")
        names = await read_key_names(running.gateway.store, [row["key_id"] for row in rows], anna.org_id)
        assert sorted(map(str, names.values())) == ["ben@studio.example", "laptop (Anna)"]
        events = [str(row["body"]) for row in await running.rows("SELECT body FROM audit_events ORDER BY id")]
        made = [body for body in events if "key.created" in body]
        assert [person.user_id for person in (anna, ben) for body in made if f'"owner":"{person.user_id}"' in body] == [
            anna.user_id,
            ben.user_id,
        ]
