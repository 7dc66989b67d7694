"""The link by which people without a key vote on a trial: it expires, and can be revoked."""

import hashlib
import secrets
from typing import Any

from penstock.audit_log import Act, Note, write_audited
from penstock.errors import NotFound
from penstock.gateway import Gateway
from penstock.store.base import Transaction
from penstock.trials.records import TrialRecord
from penstock.values import DAY_MS, iso

DEFAULT_DAYS = 14
MOST_DAYS = 90


def digest(token: str) -> bytes:
    """What is stored of the text in a link."""
    return hashlib.sha256(token.encode(errors="replace")).digest()


async def make_link(
    gateway: Gateway, trial: TrialRecord, base_url: str, *, days: int, shows_prompts: bool
) -> dict[str, Any]:
    """Make the link of a trial, which replaces an earlier one. It is known only now.

    Its secret is behind the `#`, so browsers send it to no server, and no log has it.
    """
    token = secrets.token_urlsafe(32)
    expires_at_ms = gateway.clock.now_ms() + days * DAY_MS
    await _set(gateway, trial, digest(token), expires_at_ms, shows_prompts=shows_prompts)
    return {
        "object": "trial.link",
        "url": f"{base_url}/vote#{token}",
        "expires_at": iso(expires_at_ms),
        "shows_prompts": shows_prompts,
    }


async def revoke_link(gateway: Gateway, trial: TrialRecord) -> None:
    """End the link of a trial: nobody votes any more, and what was shown by it is not shown any more."""
    await _set(gateway, trial, None, None, shows_prompts=bool(trial.shows_prompts))


async def _set(
    gateway: Gateway, trial: TrialRecord, link: bytes | None, expires_at_ms: int | None, *, shows_prompts: bool
) -> None:
    values = {"digest": link, "expires_at_ms": expires_at_ms, "shows_prompts": int(shows_prompts)}

    async def work(tx: Transaction, note: Note) -> None:
        if not await tx.run("set_trial_link", id=trial.id, org_id=trial.org_id, **values):
            raise NotFound(f"No such trial: {trial.id}.")
        if expires_at_ms is None:
            note(Act("trial.unshared", trial.id, trial.org_id))
        else:
            note(Act("trial.shared", trial.id, trial.org_id, after={"expires_at": iso(expires_at_ms)}))

    await write_audited(gateway.store, gateway.clock.now_ms(), work, org_id=trial.org_id)


async def get_shared_trial(gateway: Gateway, link: bytes) -> TrialRecord:
    """The trial of a link. Raises NotFound for one that does not exist, was revoked or has expired."""
    row = await gateway.store.one("get_trial_by_link", digest=link, now_ms=gateway.clock.now_ms())
    if row is None:
        raise NotFound("This link does not exist, has expired or was revoked.")
    return TrialRecord(**row)
