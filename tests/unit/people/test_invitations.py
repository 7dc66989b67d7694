"""An invitation is good once, in time, for the verified address that it names."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest, NotFound
from penstock.people.configured import EVERYWHERE
from penstock.people.invitations import DAYS
from penstock.people.oidc import Identity, SignInFailed
from penstock.schema import Caller
from penstock.values import OrgId
from tests.gateway import OpenGateway, RunningGateway

ANNA = "anna@studio.example"


async def enter(running: RunningGateway, token: str, subject: str = "anna", **changes: Any) -> Caller:
    usual: dict[str, Any] = {"email": ANNA, "email_verified": True, "name": None, "groups": frozenset()}
    identity = Identity("https://issuer.example", subject, **{**usual, **changes})
    return await running.gateway.users.enter(identity, (), None, token)


async def invite(running: RunningGateway, email: str = "Anna@studio.example", role: str = "admin") -> tuple[str, str]:
    token, record = await running.gateway.invitations.invite(running.caller.org_id, email, role, "key_x")
    return token, record["id"]


async def test_who_is_invited_gets_the_role_once(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        token, _ = await invite(running)
        assert await running.tables_with(token) == []
        for changes in ({"email": "eve@studio.example"}, {"email_verified": False}, {"email": None}):
            with pytest.raises(SignInFailed):
                await enter(running, token, "eve", **changes)
        caller = await enter(running, token)
        assert (caller.org_id, {*caller.scopes}) == (running.caller.org_id, {"admin"})
        assert await running.gateway.invitations.list_records(EVERYWHERE) == []
        with pytest.raises(SignInFailed):
            await enter(running, token, "another person with the address")
        assert (await enter(running, "")).user_id == caller.user_id, "the role stays"


async def test_an_invitation_that_is_over_or_taken_back_gives_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        old, _ = await invite(running)
        running.clock.advance(DAYS * 86_400)
        taken, taken_id = await invite(running)
        [record] = await running.gateway.invitations.list_records(running.caller.org_id)
        assert (record["id"], record["email"]) == (taken_id, ANNA)
        with pytest.raises(NotFound):
            await running.gateway.invitations.withdraw(OrgId("org_other"), taken_id)
        await running.gateway.invitations.withdraw(running.caller.org_id, taken_id)
        for token in (old, taken, "made up"):
            with pytest.raises(SignInFailed):
                await enter(running, token)


async def test_a_bad_invitation_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        for org_id, email, role in (
            (running.caller.org_id, "no address", "admin"),
            (running.caller.org_id, "a@b@c.example", "admin"),
            (running.caller.org_id, ANNA, "operator"),
            (EVERYWHERE, ANNA, "admin"),
        ):
            with pytest.raises(InvalidRequest):
                await running.gateway.invitations.invite(org_id, email, role, "key_x")
        with pytest.raises(NotFound):
            await running.gateway.invitations.invite(OrgId("org_none"), ANNA, "admin", "key_x")
