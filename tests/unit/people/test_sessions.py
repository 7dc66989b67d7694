"""Sessions of the pages end when they are over, ended, idle as an operator's, or their key is revoked."""

import pytest

from penstock.errors import AuthenticationFailed
from penstock.people.configured import EVERYWHERE, RoleRule
from penstock.people.oidc import Identity
from penstock.people.sessions import HOUR_MS, IDLE_MS, KEPT_DAYS
from penstock.schema import Caller
from tests.gateway import OpenGateway, RunningGateway


async def is_over(running: RunningGateway, token: str, *, is_used: bool = True) -> bool:
    try:
        await running.gateway.sessions.authenticate(token, is_used=is_used)
    except AuthenticationFailed:
        return True
    return False


async def test_a_session_acts_through_its_key_and_ends_in_time(open_gateway: OpenGateway) -> None:
    async with open_gateway(session_hours=2) as running:
        sessions = running.gateway.sessions
        short = await sessions.begin(running.caller, "10.0.0.7", "Firefox", keep=False)
        long = await sessions.begin(running.caller, None, "Firefox" * 100, keep=True)
        assert (short.seconds, long.seconds) == (None, KEPT_DAYS * 86_400)
        found = await sessions.authenticate(short.token)
        assert (found.key_id, found.scopes) == (running.caller.key_id, running.caller.scopes)
        assert found.session_until_ms == short.until_ms == running.clock.now_ms() + 2 * HOUR_MS
        running.clock.advance(2 * 3600)
        assert (await is_over(running, short.token), await is_over(running, long.token)) == (True, False)
        running.clock.advance(KEPT_DAYS * 86_400)
        assert await is_over(running, long.token)
        await sessions.begin(running.caller, None, "", keep=False)
        assert len(await running.rows("SELECT id FROM sessions")) == 1


async def test_a_revoked_key_and_signing_out_end_sessions_at_once(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        sessions = running.gateway.sessions
        caller = await running.create_caller()
        first, second, third = [(await sessions.begin(caller, None, "", keep=True)).token for _ in range(3)]
        other = (await sessions.begin(running.caller, None, "", keep=True)).token
        assert await sessions.end(await sessions.authenticate(first), everywhere=False) == 1
        assert [await is_over(running, token) for token in (first, second, third)] == [True, False, False]
        assert await sessions.end(await sessions.authenticate(second), everywhere=True) == 2
        assert await is_over(running, third)
        last = (await sessions.begin(caller, None, "", keep=True)).token
        await running.gateway.keys.revoke_key(caller.org_id, caller.key_id)
        assert (await is_over(running, last), await is_over(running, other)) == (True, False)


@pytest.mark.parametrize("token", ["", "x", "é" * 43, "a" * 43, "a" * 100_000])
async def test_a_wrong_token_is_refused(open_gateway: OpenGateway, token: str) -> None:
    async with open_gateway() as running:
        assert await is_over(running, token)


async def test_no_table_has_the_token(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        new = await running.gateway.sessions.begin(running.caller, None, "", keep=False)
        assert await running.tables_with(new.token) == []


OPERATORS = (
    RoleRule(role="operator", org="*", group="platform"),
    RoleRule(role="member", org="default", group="media"),
)


async def of_person(running: RunningGateway, group: str) -> Caller:
    identity = Identity("https://issuer.example", group, None, False, None, frozenset([group]))
    return await running.gateway.users.enter(identity, OPERATORS, None)


async def test_the_session_of_an_operator_ends_when_nobody_uses_it(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        operator, member = await of_person(running, "platform"), await of_person(running, "media")
        key = await running.gateway.keys.create_key(running.caller.org_id, scopes=["operator"])
        with_key = await running.gateway.keys.authenticate(f"Bearer {key.key}")
        used, refreshed, others, keyed = [
            (await running.gateway.sessions.begin(caller, None, "", keep=False)).token
            for caller in (operator, operator, member, with_key)
        ]
        for too_late in (False, True):
            running.clock.advance(IDLE_MS // 1000)  # exactly so long is not too long
            assert not await is_over(running, used)
            assert await is_over(running, refreshed, is_used=False) == too_late, "a refresh does not use it"
        running.clock.advance(IDLE_MS // 1000 + 60)
        assert await is_over(running, used)
        assert [await is_over(running, token) for token in (others, keyed)] == [False, False]


async def test_the_session_of_somebody_who_becomes_an_operator_ends_like_theirs(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        member = await of_person(running, "media")
        token = (await running.gateway.sessions.begin(member, None, "", keep=False)).token
        assert member.user_id is not None
        await running.gateway.users.grant(member.user_id, EVERYWHERE, "operator")
        running.clock.advance(2 * IDLE_MS // 1000)
        assert not await is_over(running, token, is_used=False)
        running.clock.advance(IDLE_MS // 1000 + 60)
        assert await is_over(running, token)


async def test_calls_of_an_operator_are_written_down_once_a_minute(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        operator = await of_person(running, "platform")
        token = (await running.gateway.sessions.begin(operator, None, "", keep=False)).token
        found = []
        for seconds in (0, 59, 1):
            running.clock.advance(seconds)
            await running.gateway.sessions.authenticate(token)
            [row] = await running.rows("SELECT idle_until_ms - created_at_ms AS lasts FROM sessions")
            found.append(row["lasts"] - IDLE_MS)
        assert found == [60_000, 60_000, 120_000]
