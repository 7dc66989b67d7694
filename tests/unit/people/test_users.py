"""What people may do follows their groups and grants at once, and a deactivated person is out."""

from collections.abc import Iterable

import pytest

from penstock.accounts.orgs import create_org
from penstock.errors import AuthenticationFailed, InvalidRequest, NotFound, PermissionDenied
from penstock.people.configured import RoleRule
from penstock.people.oidc import Identity, SignInFailed
from penstock.schema import Caller
from penstock.values import OrgId
from tests.gateway import OpenGateway, RunningGateway

RULES = (
    RoleRule(role="operator", org="*", group="platform"),
    RoleRule(role="admin", org="default", group="leads"),
    RoleRule(role="member", org="default", group="media"),
    RoleRule(role="viewer", org="studio", email="*@studio.example"),
    RoleRule(role="viewer", org="nowhere", group="media"),
)


async def enter(
    running: RunningGateway, *groups: str, email: str | None = None, verified: bool = True, subject: str = "anna"
) -> Caller:
    identity = Identity("https://issuer.example", subject, email, verified, None, frozenset(groups))
    return await running.gateway.users.enter(identity, RULES, "10.0.0.7")


async def session(running: RunningGateway, caller: Caller) -> str:
    return (await running.gateway.sessions.begin(caller, None, "", keep=False)).token


async def scopes(running: RunningGateway, token: str) -> set[str] | None:
    try:
        return {*(await running.gateway.sessions.authenticate(token)).scopes} - {"metrics"}
    except AuthenticationFailed:
        return None


async def roles(running: RunningGateway) -> list[tuple[str | None, Iterable[str]]]:
    people = await running.gateway.users.list_records(None)
    return [(person["email"], [role["role"] for role in person["roles"]]) for person in people]


async def test_groups_and_verified_addresses_give_roles(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        studio = await create_org(running.gateway.store, running.clock, "studio", "prepaid")
        member = await enter(running, "media", "unknown")
        assert (member.org_id, {*member.scopes}) == (running.caller.org_id, set[str]())
        lead = await enter(running, "media", "leads", subject="ben")
        assert lead.scopes == {"admin"}, "the first rule of an organization counts"
        viewer = await enter(running, email="eve@studio.example", subject="eve")
        assert (viewer.org_id, {*viewer.scopes}) == (studio.id, {"read"})
        operator = await enter(running, "platform", subject="zoe")
        assert operator.scopes >= {"admin", "operator"}
        for refused in (
            enter(running, email="eve@studio.example", verified=False, subject="mallory"),
            enter(running, email="eve@studio.example.evil.example", subject="trudy"),
            enter(running, "unknown", subject="nobody"),
        ):
            with pytest.raises(SignInFailed) as caught:
                await refused
            assert caught.value.code == "no-access"
        assert await running.gateway.users.unknown_orgs(RULES) == ["nowhere"]
        waiting = [person for person in await running.gateway.users.list_records(studio.id) if not person["roles"]]
        assert len(waiting) == 3


async def test_sessions_follow_roles_at_once(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        users = running.gateway.users
        first = await enter(running, "media")
        token = await session(running, first)
        assert await scopes(running, token) == set()
        await enter(running, "leads")
        assert await scopes(running, token) == {"admin"}
        await users.grant(str(first.user_id), first.org_id, "viewer")
        assert await scopes(running, token) == {"read"}
        await enter(running, "leads")
        assert await scopes(running, token) == {"read"}, "what was granted by hand stays"
        await users.grant(str(first.user_id), first.org_id, None)
        assert await scopes(running, token) is None
        await users.grant(str(first.user_id), OrgId("*"), "operator")
        token = await session(running, await enter(running))
        assert await scopes(running, token) == {"admin", "operator"}
        keys = await running.gateway.keys.list_all(first.org_id)
        assert all(key.last_four for key in keys), "keys of sessions are not listed"


async def test_who_leaves_all_groups_is_out_with_every_session(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        token = await session(running, await enter(running, "media"))
        with pytest.raises(SignInFailed):
            await enter(running)
        assert await scopes(running, token) is None
        assert await roles(running) == [(None, [])]


async def test_a_deactivated_person_is_out_with_sessions_and_keys(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await enter(running, "media")
        token = await session(running, caller)
        own = await running.gateway.keys.create_key(caller.org_id, name="own")
        await running.change(f"UPDATE keys SET user_id = '{caller.user_id}' WHERE id = '{own.id}'")  # noqa: S608
        await running.gateway.users.set_status(str(caller.user_id), "deactivated")
        running.clock.advance(2)
        with pytest.raises(AuthenticationFailed):
            await running.gateway.keys.authenticate(f"Bearer {own.key}")
        assert await scopes(running, token) is None
        with pytest.raises(SignInFailed) as caught:
            await enter(running, "media")
        assert caught.value.code == "deactivated"
        await running.gateway.users.set_status(str(caller.user_id), "active")
        assert (await enter(running, "media")).user_id == caller.user_id


async def test_a_person_of_two_organizations_moves_between_them_and_nowhere_else(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        users, sessions = running.gateway.users, running.gateway.sessions
        studio = await create_org(running.gateway.store, running.clock, "studio", "prepaid")
        other = await create_org(running.gateway.store, running.clock, "other", "prepaid")
        token = await session(running, await enter(running, "leads", email="anna@studio.example"))
        here = await sessions.authenticate(token)
        described = await users.describe(here)
        assert described is not None
        assert {place["name"]: place["role"] for place in described["organizations"]} == {
            "default": "admin",
            "studio": "viewer",
        }
        await users.move(here, studio.id)
        moved = await sessions.authenticate(token)
        assert (moved.org_id, {*moved.scopes}) == (studio.id, {"read"})
        with pytest.raises(PermissionDenied):
            await users.move(moved, other.id)
        with pytest.raises(InvalidRequest):
            await users.move(running.caller, studio.id)


async def test_roles_are_given_to_people_who_exist_in_organizations_that_exist(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        users = running.gateway.users
        caller = await enter(running, "media", email="anna@studio.example")
        assert await users.find_by_email("Anna@studio.example") == caller.user_id
        for user, org, role, problem in (
            (caller.user_id, "*", "admin", InvalidRequest),
            (caller.user_id, caller.org_id, "operator", InvalidRequest),
            (caller.user_id, "org_none", "admin", NotFound),
            ("user_none", caller.org_id, "admin", NotFound),
        ):
            with pytest.raises(problem):
                await users.grant(str(user), OrgId(org), role)
        with pytest.raises(NotFound):
            await users.find_by_email("nobody@studio.example")
        await enter(running, "media", email="anna@studio.example", subject="another anna")
        with pytest.raises(InvalidRequest, match="Several people"):
            await users.find_by_email("anna@studio.example")
