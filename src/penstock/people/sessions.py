"""Sessions of the pages: begun with a key, found by what a cookie holds, ended here or everywhere."""

import hashlib
import secrets
from dataclasses import replace
from typing import NamedTuple

from penstock.accounts.key_records import OPERATOR
from penstock.accounts.keys import CallerRow, caller_of
from penstock.audit_log import Act, Note, write_audited
from penstock.clock import Clock
from penstock.errors import AuthenticationFailed
from penstock.people.own_keys import revoke_own_keys
from penstock.schema import Caller
from penstock.store.base import Store, Transaction
from penstock.values import new_id

KEPT_DAYS = 30  # of a session that is to last on this computer
HOUR_MS = 3_600_000
IDLE_MS = 1_800_000  # without a call, after which an operator's session ends
_MINUTE_MS = 60_000  # how often a call of an operator is written down; the session lasts so much longer at most
_TOKEN_CHARS = 43
_MAX_AGENT_CHARS = 200


class NewSession(NamedTuple):
    """A session that has just begun. The token is known only now; the store keeps its digest."""

    token: str
    seconds: int | None  # how long the browser keeps it; None: until it is closed
    until_ms: int


class Sessions:
    """Begins, finds and ends sessions."""

    def __init__(self, store: Store, clock: Clock, hours: float) -> None:
        """`hours` is how long a session lasts that is not to be kept."""
        self._store = store
        self._clock = clock
        self._hours = hours

    async def begin(self, caller: Caller, address: str | None, agent: str, *, keep: bool) -> NewSession:
        """Begin a session that acts through the caller's key."""
        at_ms = self._clock.now_ms()
        token = secrets.token_urlsafe(32)
        lasting_ms = KEPT_DAYS * 24 * HOUR_MS if keep else int(self._hours * HOUR_MS)
        row = {
            "digest": _digest(token),
            "id": new_id("ses", at_ms),
            "key_id": caller.key_id,
            "user_id": caller.user_id,
            "created_at_ms": at_ms,
            "expires_at_ms": at_ms + lasting_ms,
            "idle_until_ms": _idle_until_ms(at_ms) if _is_operator(caller) else None,
            "address": address,
            "agent": agent[:_MAX_AGENT_CHARS],
        }

        async def work(tx: Transaction, note: Note) -> None:
            await tx.run("delete_expired_sessions", now_ms=at_ms)
            await tx.run("add_session", **row)
            note(Act("session.begun", caller.key_id, caller.org_id, after={"session": row["id"], "keep": keep}))

        await write_audited(self._store, at_ms, work)
        return NewSession(token, lasting_ms // 1000 if keep else None, at_ms + lasting_ms)

    async def authenticate(self, token: str, subject: str | None = None, *, is_used: bool = True) -> Caller:
        """Return the caller of a session; raise AuthenticationFailed if there is none, if it is over, or if it is that
        of a person while a proxy says that somebody else, the `subject`, makes the call.

        The session of an operator ends when it is idle: only calls that somebody causes use it (`is_used`).

        It is read each time: a session that was ended, or whose key was revoked, ends at once in every process.
        """
        found = None
        now_ms = self._clock.now_ms()
        if len(token) == _TOKEN_CHARS and token.isascii():
            found = await self._store.one("get_session_caller", digest=_digest(token), now_ms=now_ms)
        if found is None:
            raise AuthenticationFailed
        columns = ("id", "user_id", "expires_at_ms", "idle_until_ms", "subject")
        session = {name: found.pop(f"session_{name}") for name in columns}
        if subject is not None and session["subject"] not in (None, subject):
            raise AuthenticationFailed
        caller = caller_of(CallerRow(**found))
        caller = replace(
            caller, session_id=session["id"], user_id=session["user_id"], session_until_ms=session["expires_at_ms"]
        )
        if _is_operator(caller):
            await self._use(session["id"], session["idle_until_ms"], now_ms, is_used=is_used)
        return caller

    async def _use(self, session_id: str, idle_until_ms: int | None, now_ms: int, *, is_used: bool) -> None:
        """Let an operator's session last longer; raise AuthenticationFailed if it was idle for too long."""
        if idle_until_ms is not None and idle_until_ms <= now_ms:
            raise AuthenticationFailed
        until_ms = _idle_until_ms(now_ms)
        if idle_until_ms is None or (is_used and until_ms - idle_until_ms >= _MINUTE_MS):

            async def work(tx: Transaction) -> None:
                await tx.run("set_session_used", id=session_id, idle_until_ms=until_ms)

            await self._store.write(work)

    async def end(self, caller: Caller, *, everywhere: bool) -> int:
        """End the caller's session, or all of the person's, with the keys that the person has made, or of the key's.

        Returns how many there were.
        """
        at_ms = self._clock.now_ms()

        async def work(tx: Transaction, note: Note) -> int:
            if not everywhere:
                count = await tx.run("delete_session", id=caller.session_id)
            elif caller.user_id:
                keys = await tx.all("list_keys_of_user", user_id=caller.user_id)
                await revoke_own_keys(tx, note, [key for key in keys if key["kind"] is None], at_ms)
                count = await tx.run("delete_sessions_of_user", user_id=caller.user_id)
            else:
                count = await tx.run("delete_sessions_of_key", key_id=caller.key_id)
            if count:
                note(Act("session.ended", caller.key_id, caller.org_id, after={"count": count}))
            return count

        return await write_audited(self._store, at_ms, work)

    async def end_of_person(self, issuer: str, subject: str, begun_until_ms: int) -> int:
        """End the sessions of a person that began until then, as the issuer asks for; return how many there were."""

        async def work(tx: Transaction, note: Note) -> int:
            person = await tx.one("lock_user", issuer=issuer, subject=subject)
            if person is None:
                return 0
            count = await tx.run("delete_older_sessions", user_id=person["id"], begun_until_ms=begun_until_ms)
            if count:
                note(Act("session.ended", person["id"], after={"count": count}))
            return count

        return await write_audited(self._store, self._clock.now_ms(), work)


def _is_operator(caller: Caller) -> bool:
    """True for a person; whoever signs in with a key has chosen how long the session lasts."""
    return caller.user_id is not None and OPERATOR in caller.scopes


def _idle_until_ms(now_ms: int) -> int:
    return now_ms + IDLE_MS + _MINUTE_MS


def _digest(token: str) -> bytes:
    """What is stored of a token. A slow hash is not needed: a token has 256 random bits."""
    return hashlib.sha256(token.encode()).digest()
