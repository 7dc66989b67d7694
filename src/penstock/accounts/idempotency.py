"""Remember which call has an idempotency key, for calls that are not generations."""

import hashlib

import msgspec

from penstock.store.base import Store
from penstock.values import OrgId, Retention


class Claim(msgspec.Struct, frozen=True):
    """A call that wants a key, or has it."""

    org_id: OrgId
    key_digest: bytes
    request_id: str
    body_digest: bytes
    created_at_ms: int


def key_digest(operation: str, key: str) -> bytes:
    """What is stored of a key, which may say something about its caller. Equal keys of two operations differ."""
    return hashlib.sha256(f"{operation}\n{key}".encode()).digest()


async def claim_key(store: Store, claim: Claim, retention: Retention) -> Claim | None:
    """Give the key to this call, and return None; or return the call that has it."""
    values = {**msgspec.structs.asdict(claim), "expires_at_ms": claim.created_at_ms + retention.seconds * 1000}
    while True:
        if await store.write(lambda tx: tx.run("claim_idempotency_key", **values), org_id=claim.org_id):
            return None
        row = await store.one("get_idempotency_key", org_id=claim.org_id, key_digest=claim.key_digest)
        if row is not None:  # otherwise it has just been released
            return None if row["request_id"] == claim.request_id else msgspec.structs.replace(claim, **row)


async def take_over_key(store: Store, claim: Claim, earlier: Claim, retention: Retention) -> bool:
    """Give the key of an earlier call to this one; False if another call was faster."""
    await release_key(store, earlier)
    return await claim_key(store, claim, retention) is None


async def release_key(store: Store, claim: Claim) -> None:
    """Take the key from a call that did nothing."""
    values = {"org_id": claim.org_id, "key_digest": claim.key_digest, "request_id": claim.request_id}
    await store.write(lambda tx: tx.run("release_idempotency_claim", **values), org_id=claim.org_id)


async def delete_expired_keys(store: Store, now_ms: int) -> int:
    return await store.write(lambda tx: tx.run("delete_expired_idempotency_keys", now_ms=now_ms))
