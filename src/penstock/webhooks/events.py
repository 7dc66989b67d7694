"""Say what happened, and sign it."""

import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.clock import Clock
from penstock.errors import NotFound
from penstock.store.base import Row, Store, Transaction
from penstock.vault import Vault

PREFIX = "whsec_"
_SECRET_BYTES = 32
_LEAST_SECRET_BYTES = 24
_OLD_SECRET_MS = 24 * 3600 * 1000

# ------------------------------------------------------------------------------------------------------------- signing


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """As the Standard Webhooks specification says, over whole seconds and the very bytes that are sent."""
    key = b64decode(secret.removeprefix(PREFIX), validate=True)
    if len(key) < _LEAST_SECRET_BYTES:
        raise ValueError("a webhook secret this short would sign nothing")
    digest = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, "sha256")
    return f"v1,{b64encode(digest).decode()}"


class WebhookSecrets:
    """The signing secret of each organization: made when first needed, sealed in the database."""

    def __init__(self, store: Store, vault: Vault, clock: Clock) -> None:
        self._store, self._vault, self._clock = store, vault, clock

    async def secret(self, org_id: str) -> str:
        return (await self.signing(org_id))[0]

    async def signing(self, org_id: str) -> tuple[str, ...]:
        """What a delivery is signed with now: the secret, and for a day after a rotation the one before it."""
        row = await self._store.one("get_secrets", org_id=org_id)
        if row is None or row["secret"] is None:
            row = await self._provision(org_id)
        sealed = [row["secret"]]
        if row["old_secret"] is not None and self._clock.now_ms() < row["old_secret_until_ms"]:
            sealed.append(row["old_secret"])
        return tuple(self._vault.open(one, org_id).decode() for one in sealed)

    async def _provision(self, org_id: str) -> Row:
        fresh = self._fresh(org_id)

        async def work(tx: Transaction) -> Row | None:
            await tx.run("set_first_secret", org_id=org_id, secret=fresh)
            return await tx.one("get_secrets", org_id=org_id)

        if (row := await self._store.write(work)) is None:
            raise NotFound(f"No such organization: {org_id}.")
        return row

    async def rotate(self, org_id: str) -> str:
        """A new secret. Deliveries carry both signatures for a day, so that receivers can change over."""
        await self.secret(org_id)
        fresh, until_ms = self._fresh(org_id), self._clock.now_ms() + _OLD_SECRET_MS
        await self._store.write(lambda tx: tx.run("replace_secret", org_id=org_id, secret=fresh, until_ms=until_ms))
        return self._vault.open(fresh, org_id).decode()

    async def reseal(self) -> int:
        """Seal all secrets with the newest master secret; how many had an older seal."""
        stale = [row for row in await self._store.slow("list_secrets") if not self._is_current(row)]

        async def work(tx: Transaction) -> int:
            return sum([await tx.run("reseal_secrets", **self._resealed(row)) for row in stale])

        return await self._store.write(work)

    def _is_current(self, row: Row) -> bool:
        return all(self._vault.is_current(one) for one in (row["secret"], row["old_secret"]) if one is not None)

    def _resealed(self, row: Row) -> dict[str, Any]:
        org_id = row["id"]
        anew = {
            name: None if row[name] is None else self._vault.seal(self._vault.open(row[name], org_id), org_id)
            for name in ("secret", "old_secret")
        }
        return {"id": org_id, "seen": row["secret"], **anew}

    def _fresh(self, org_id: str) -> bytes:
        text = PREFIX + b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
        return self._vault.seal(text.encode(), org_id)


# -------------------------------------------------------------------------------------------------------------- events


def event(
    kind: str,
    request_id: str,
    model: str,
    *,
    outputs: Sequence[Mapping[str, Any]] = (),
    error: Mapping[str, str] | None = None,
) -> bytes:
    """The body of `video.completed`, `image.failed` and so on; the same facts always give the same bytes."""
    subject, _, status = kind.partition(".")
    data: dict[str, Any] = {"object": f"{subject}.generation", "id": request_id, "model": model, "status": status}
    if error is not None:
        data["error"] = {"code": error["code"], "message": error["message"]}
    else:
        data["output"] = outputs[0]
        if len(outputs) > 1:
            data["outputs"] = outputs
    return msgspec.json.encode({"type": kind, "data": data})


async def queue(tx: Transaction, *, org_id: str, request_id: str, url: str, kind: str, body: bytes, at_ms: int) -> None:
    """Write a message in the transaction that makes its news true; `Deliveries.wake` after the commit sends it."""
    await tx.run(
        "add_message",
        id=f"msg_{request_id}",
        org_id=org_id,
        request_id=request_id,
        event=kind,
        url=url,
        body=body,
        at_ms=at_ms,
    )
