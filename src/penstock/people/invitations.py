"""Invitations: a link for one e-mail address that gives a role to whoever signs in with it."""

import hashlib
import secrets
from typing import Any

from penstock.audit_log import Act, Note, write_audited
from penstock.clock import Clock
from penstock.errors import InvalidRequest, NotFound
from penstock.people.configured import EVERYWHERE
from penstock.store.base import Row, Store, Transaction
from penstock.values import OrgId, iso, new_id

DAYS = 7
MAX_LISTED = 1000
_DAY_MS = 86_400_000
_MAX_EMAIL_CHARS = 320


class Invitations:
    """Makes invitations, lists them and takes them back; `Users.enter` accepts them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def invite(self, org_id: OrgId, email: str, role: str, created_by: str) -> tuple[str, dict[str, Any]]:
        """Invite somebody, and return the text for the link, which is known only now, and the record.

        Raises InvalidRequest for a bad address or role, and NotFound for an unknown organization.
        """
        address = email.strip().lower()
        is_address = address.isprintable() and " " not in address and address.count("@") == 1
        if not is_address or not 3 <= len(address) <= _MAX_EMAIL_CHARS:
            raise InvalidRequest("`email` must be an e-mail address such as `anna@studio.example`.", param="email")
        if (role == "operator") != (org_id == EVERYWHERE):
            message = "The role `operator` is for all organizations, `*`, and the others are for one."
            raise InvalidRequest(message, param="role")
        if org_id != EVERYWHERE and await self._store.one("get_org", id=org_id) is None:
            raise NotFound(f"No such organization: {org_id[:64]}.")
        at_ms = self._clock.now_ms()
        token = secrets.token_urlsafe(32)
        row = {
            "id": new_id("inv", at_ms),
            "org_id": org_id,
            "email": address,
            "role": role,
            "created_by": created_by,
            "created_at_ms": at_ms,
            "expires_at_ms": at_ms + DAYS * _DAY_MS,
        }

        async def work(tx: Transaction, note: Note) -> None:
            await tx.run("add_invitation", **row, digest=digest(token))
            whose = None if org_id == EVERYWHERE else org_id
            note(Act("invitation.created", str(row["id"]), whose, after={"email": address, "role": role}))

        await write_audited(self._store, at_ms, work)
        return token, _record(row)

    async def list_records(self, org_id: OrgId) -> list[dict[str, Any]]:
        """The open invitations of an organization; of all for EVERYWHERE."""
        values = {"org_id": org_id, "now_ms": self._clock.now_ms(), "limit": MAX_LISTED}
        return [_record(row) for row in await self._store.slow("list_invitations", **values)]

    async def withdraw(self, org_id: OrgId, invitation_id: str) -> None:
        """Take an open invitation back; raise NotFound."""

        async def work(tx: Transaction, note: Note) -> int:
            count = await tx.run("delete_invitation", id=invitation_id, org_id=org_id)
            if count:
                note(Act("invitation.withdrawn", invitation_id, None if org_id == EVERYWHERE else org_id))
            return count

        if not await write_audited(self._store, self._clock.now_ms(), work):
            raise NotFound(f"No such invitation: {invitation_id[:64]}.")


def digest(token: str) -> bytes:
    """What is stored of the text in a link."""
    return hashlib.sha256(token.encode()).digest()


def _record(row: Row) -> dict[str, Any]:
    return {
        "id": row["id"],
        "object": "invitation",
        "org_id": row["org_id"],
        "email": row["email"],
        "role": row["role"],
        "created_by": row["created_by"],
        "created_at": iso(row["created_at_ms"]),
        "expires_at": iso(row["expires_at_ms"]),
    }
