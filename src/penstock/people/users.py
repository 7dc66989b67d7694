"""People: what they may do where, by their groups or by a grant, and the key through which their sessions act."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from penstock.accounts.key_records import ADMIN, OPERATOR, READ
from penstock.accounts.keys import CallerRow, caller_of
from penstock.audit_log import Act, Actor, Note, act_as, changed, write_audited
from penstock.clock import Clock
from penstock.errors import InvalidRequest, NotFound, PermissionDenied
from penstock.people.configured import EVERYWHERE, Role, RoleRule
from penstock.people.invitations import digest
from penstock.people.oidc import Identity, SignInFailed
from penstock.people.own_keys import MAKERS, revoke_own_keys
from penstock.schema import Caller
from penstock.store.base import Row, Store, Transaction
from penstock.values import OrgId, iso, new_id

ROLES: tuple[str, ...] = get_args(Role)
STATUSES = ("active", "deactivated")
MAX_LISTED = 5000
# As they are stored: sorted, with a space between.
_SCOPES: Mapping[str, str] = {"viewer": READ, "member": "", "admin": ADMIN, "operator": f"{ADMIN} {OPERATOR}"}


class Users:
    """Keeps who people are, and what they may do."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def enter(
        self, identity: Identity, rules: tuple[RoleRule, ...], address: str | None, invitation: str = ""
    ) -> Caller:
        """Store who signs in and what their groups or an invitation allow, and return the caller for the session.

        Raises SignInFailed for somebody who is deactivated, or to whom nobody has given anything to do; a new person is
        stored all the same, so that an admin can see that they wait.
        """
        at_ms = self._clock.now_ms()
        verified = identity.email if identity.email_verified else None
        granted = await self._grants(identity.groups, verified, rules)
        first = await self._store.one("get_fact", name="first_org")
        user_id = new_id("user", at_ms)

        async def work(tx: Transaction, note: Note) -> tuple[str, Row | None, str]:
            invited = await tx.one("lock_invitation", digest=digest(invitation), now_ms=at_ms) if invitation else None
            if invited and invited["email"] == verified:
                await tx.run("use_invitation", id=invited["id"], at_ms=at_ms)
            person = await tx.one("lock_user", issuer=identity.issuer, subject=identity.subject)
            known = {
                "email": identity.email,
                "email_verified": int(identity.email_verified),
                "name": identity.name,
                "at_ms": at_ms,
            }
            if person is None:
                person = {"id": user_id, "status": "active"}
                await tx.run("add_user", id=user_id, issuer=identity.issuer, subject=identity.subject, **known)
                note(Act("user.added", user_id, after={"email": identity.email}))
            else:
                await tx.run("set_user_seen", id=person["id"], **known)
            if person["status"] != "active":
                return person["id"], None, "deactivated"
            if invited and invited["email"] == verified:
                given = {"user_id": person["id"], "org_id": invited["org_id"], "source": "granted"}
                await self._set_role(tx, note, given, None, invited["role"], at_ms)
            await self._follow_groups(tx, note, person["id"], granted, at_ms)
            place = _first_place(
                await tx.all("list_memberships", user_id=person["id"]), first["value"] if first else None
            )
            if place is None:
                return person["id"], None, "no-access"
            shown = identity.name or identity.email or identity.subject
            key_id = await self._session_key(tx, person["id"], OrgId(place[0]), place[1], shown, at_ms)
            note(Act("user.signed_in", person["id"], OrgId(place[0]), after={"role": place[1]}))
            return person["id"], {"id": key_id}, ""

        act_as(Actor("sign-in", address))
        user, key, refusal = await write_audited(self._store, at_ms, work)
        if key is None:
            raise SignInFailed(refusal, f"{user} signed in, and may do nothing here: {refusal}")
        act_as(Actor(user, address))
        return await self._caller(key["id"], user)

    async def _grants(self, groups: frozenset[str], email: str | None, rules: tuple[RoleRule, ...]) -> dict[str, str]:
        """The roles by organization that the rules give; the first rule of an organization that fits counts."""
        found: dict[str, str] = {}
        orgs = {name: org["id"] for org in await self._store.slow("list_orgs") for name in (org["name"], org["id"])}
        for rule in rules:
            place = EVERYWHERE if rule.org == EVERYWHERE else orgs.get(rule.org)
            if place is not None and rule.matches(groups, email):
                found.setdefault(place, rule.role)
        return found

    async def unknown_orgs(self, rules: tuple[RoleRule, ...]) -> list[str]:
        """The organizations in the rules that do not exist."""
        orgs = {name for org in await self._store.slow("list_orgs") for name in (org["name"], org["id"])}
        return sorted({rule.org for rule in rules} - orgs - {EVERYWHERE})

    async def _follow_groups(
        self, tx: Transaction, note: Note, user_id: str, granted: Mapping[str, str], at_ms: int
    ) -> None:
        """Update the memberships that come from groups, and keep those that were granted by hand."""
        former = {row["org_id"]: row for row in await tx.all("list_memberships", user_id=user_id)}
        for org_id in sorted({*former, *granted}):
            row, role = former.get(org_id), granted.get(org_id)
            if (row and row["source"] == "granted") or (row and row["role"] == role):
                continue
            place = {"user_id": user_id, "org_id": org_id, "source": "groups"}
            await self._set_role(tx, note, place, row["role"] if row else None, role, at_ms)
        await self._follow_roles(tx, note, user_id, at_ms)

    async def _set_role(
        self, tx: Transaction, note: Note, row: Row, former: str | None, role: str | None, at_ms: int
    ) -> None:
        """Give a person a role, or take it; `row` has the person, the organization and where the role comes from."""
        place = {"user_id": row["user_id"], "org_id": row["org_id"]}
        if role is None:
            await tx.run("delete_membership", **place)
        else:
            await tx.run("set_membership", **row, role=role, at_ms=at_ms)
        org_id = None if row["org_id"] == EVERYWHERE else OrgId(row["org_id"])
        after = {"role": role, "source": row["source"]}
        note(Act("role.changed", row["user_id"], org_id, {"role": former}, after))

    async def _follow_roles(self, tx: Transaction, note: Note, user_id: str, at_ms: int) -> None:
        """Let the sessions and the keys of a person do what the current roles allow."""
        roles = {row["org_id"]: row["role"] for row in await tx.all("list_memberships", user_id=user_id)}
        for key in await tx.all("list_keys_of_user", user_id=user_id):
            now = "operator" if EVERYWHERE in roles else roles.get(key["org_id"])
            if key["kind"] is None:
                if now not in MAKERS:
                    await revoke_own_keys(tx, note, [key], at_ms)
            elif now is None:
                await tx.run("revoke_session_key", id=key["id"], at_ms=at_ms)
            elif _SCOPES[now] != key["scopes"]:
                await tx.run("set_session_key", id=key["id"], scopes=_SCOPES[now])

    async def _session_key(
        self, tx: Transaction, user_id: str, org_id: OrgId, role: str, shown: str, at_ms: int
    ) -> str:
        """The id of the key through which a person's sessions act in an organization; it is made when first needed."""
        row = await tx.one("get_session_key", user_id=user_id, org_id=org_id)
        if row is not None:
            return str(row["id"])
        key_id = new_id("key", at_ms)
        columns = {"scopes": _SCOPES[role], "user_id": user_id, "at_ms": at_ms, "digest": secrets.token_bytes(32)}
        await tx.run("add_session_key", id=key_id, org_id=org_id, name=shown, **columns)
        return key_id

    async def _caller(self, key_id: str, user_id: str) -> Caller:
        found = await self._store.one("get_caller_of_key", id=key_id)
        if found is None:
            raise SignInFailed("no-access", f"{user_id} was removed meanwhile")
        return replace(caller_of(CallerRow(**found)), user_id=user_id)

    # ------------------------------------------------------------------------------------------- organizations of one

    async def memberships(self, user_id: str) -> list[dict[str, Any]]:
        """The organizations that a person may act in, with the role in each."""
        rows = await self._store.all("list_memberships", user_id=user_id)
        if any(row["org_id"] == EVERYWHERE for row in rows):
            orgs = await self._store.slow("list_orgs")
            return [{"id": org["id"], "name": org["name"], "role": "operator"} for org in orgs]
        return [{"id": row["org_id"], "name": row["name"], "role": row["role"]} for row in rows]

    async def describe(self, caller: Caller) -> dict[str, Any] | None:
        """Whose session it is, with the organizations of the person; None for that of a key."""
        person = await self._store.one("get_user", id=caller.user_id) if caller.user_id else None
        if person is None:
            return None
        shown = {name: person[name] for name in ("id", "email", "name")}
        return {**shown, "organizations": await self.memberships(person["id"])}

    async def move(self, caller: Caller, org_id: OrgId) -> None:
        """Let the session of a person act in another organization; raise PermissionDenied where they may not."""
        if caller.user_id is None or caller.session_id is None:
            raise InvalidRequest("Only the session of a person can change its organization; a key has one.")
        user_id, session_id = caller.user_id, caller.session_id
        roles = {place["id"]: place["role"] for place in await self.memberships(user_id)}
        if org_id not in roles:
            raise PermissionDenied("You have no role in this organization.")
        at_ms = self._clock.now_ms()
        person = await self._store.one("get_user", id=user_id) or {"name": None, "email": None}
        shown = person["name"] or person["email"] or user_id

        async def work(tx: Transaction, note: Note) -> None:
            await tx.one("lock_user_by_id", id=user_id)
            key_id = await self._session_key(tx, user_id, org_id, roles[org_id], shown, at_ms)
            await tx.run("move_session", id=session_id, key_id=key_id, user_id=user_id)
            note(Act("session.moved", user_id, OrgId(org_id)))

        await write_audited(self._store, at_ms, work)

    # --------------------------------------------------------------------------------------------------- administration

    async def list_records(self, org_id: OrgId | None) -> list[dict[str, Any]]:
        """The people of an organization and those who wait for a role; None: everybody."""
        people: dict[str, dict[str, Any]] = {}
        for row in await self._store.slow("list_users", org_id=org_id, limit=MAX_LISTED):
            person = people.setdefault(row["id"], _record(row))
            if row["org_id"] is not None:
                person["roles"].append({"org_id": row["org_id"], "role": row["role"], "source": row["source"]})
        return list(people.values())

    async def find_by_email(self, email: str) -> str:
        """The id of the person with a verified e-mail address; raise NotFound, or InvalidRequest for several."""
        rows = await self._store.all("list_users_by_email", email=email.lower())
        if not rows:
            raise NotFound(f"Nobody with the verified e-mail address {email[:64]} has signed in yet.")
        if len(rows) > 1:
            raise InvalidRequest(
                f"Several people have this e-mail address; name one of {', '.join(r['id'] for r in rows)}."
            )
        return str(rows[0]["id"])

    async def grant(self, user_id: str, org_id: OrgId, role: str | None) -> None:
        """Give a person a role in an organization, or everywhere as an operator; None takes it. It counts at once."""
        if role is not None and (role == "operator") != (org_id == EVERYWHERE):
            raise InvalidRequest(
                "The role `operator` is for all organizations, `*`, and the others are for one.", param="role"
            )
        if org_id != EVERYWHERE and await self._store.one("get_org", id=org_id) is None:
            raise NotFound(f"No such organization: {org_id[:64]}.")
        at_ms = self._clock.now_ms()

        async def work(tx: Transaction, note: Note) -> None:
            await self._locked(tx, user_id)
            former = {row["org_id"]: row["role"] for row in await tx.all("list_memberships", user_id=user_id)}
            place = {"user_id": user_id, "org_id": org_id, "source": "granted"}
            await self._set_role(tx, note, place, former.get(org_id), role, at_ms)
            await self._follow_roles(tx, note, user_id, at_ms)

        await write_audited(self._store, at_ms, work)

    async def set_status(self, user_id: str, status: str) -> None:
        """Deactivate a person, whose sessions stop at once and whose keys are revoked, or let the person in again."""
        at_ms = self._clock.now_ms()

        async def work(tx: Transaction, note: Note) -> None:
            former = await self._locked(tx, user_id)
            await tx.run("set_user_status", id=user_id, status=status)
            if status != "active":
                keys = await tx.all("list_keys_of_user", user_id=user_id)
                await revoke_own_keys(tx, note, [key for key in keys if key["kind"] is None], at_ms)
                await tx.run("delete_sessions_of_user", user_id=user_id)
            note(changed("user.changed", user_id, None, {"status": former["status"]}, {"status": status}))

        await write_audited(self._store, at_ms, work)

    async def _locked(self, tx: Transaction, user_id: str) -> Row:
        row = await tx.one("lock_user_by_id", id=user_id)
        if row is None:
            raise NotFound(f"No such user: {user_id[:64]}.")
        return row


def _first_place(rows: list[Row], first_org: str | None) -> tuple[str, str] | None:
    """The organization in which a session begins, and the role there."""
    roles = {row["org_id"]: row["role"] for row in rows}
    if EVERYWHERE in roles and first_org:
        return first_org, "operator"
    named = sorted((row["name"] or "", row["org_id"]) for row in rows if row["org_id"] != EVERYWHERE)
    return (named[0][1], roles[named[0][1]]) if named else None


def _record(row: Row) -> dict[str, Any]:
    return {
        "id": row["id"],
        "object": "user",
        "email": row["email"],
        "email_verified": bool(row["email_verified"]),
        "name": row["name"],
        "status": row["status"],
        "created_at": iso(row["created_at_ms"]),
        "seen_at": iso(row["seen_at_ms"]),
        "roles": [],
    }
