"""Sessions of the pages end when they are over, ended, or their key is revoked."""

import pytest

from penstock.errors import AuthenticationFailed
from penstock.people.sessions import HOUR_MS, KEPT_DAYS
from tests.gateway import OpenGateway, RunningGateway


async def is_over(running: RunningGateway, token: str) -> bool:
    try:
        await running.gateway.sessions.authenticate(token)
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
