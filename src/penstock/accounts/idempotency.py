"""Remember which call has an idempotency key, for calls that are not generations."""

import hashlib

import msgspec

from penstock.errors import UnprocessableRequest
from penstock.store.base import Store, Transaction
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


def other_call(first_id: str) -> UnprocessableRequest:
    """What a caller is told whose idempotency key an earlier call has that asked for something else."""
    message = f"The idempotency key was used for a call that asked for something else, {first_id}."
    return UnprocessableRequest(message, param="idempotency_key")


class KeyTaken(Exception):
    """Another call has the key."""


async def claim_key(store: Store, claim: Claim, retention: Retention) -> Claim | None:
    """Give the key to this call, and return None; or return the call that has it."""
    while True:
        if await store.write(lambda tx: _claim(tx, claim, retention), org_id=claim.org_id):
            return None
        found = await find_claim(store, claim)
        if found is not None:  # otherwise it has just been released
            return None if found.request_id == claim.request_id else found


async def claim_key_with(tx: Transaction, claim: Claim, retention: Retention) -> None:
    """Give the key to this call in the transaction that stores what it makes. Raises KeyTaken."""
    if not await _claim(tx, claim, retention):
        raise KeyTaken


async def _claim(tx: Transaction, claim: Claim, retention: Retention) -> int:
    expires_at_ms = claim.created_at_ms + retention.seconds * 1000
    return await tx.run("claim_idempotency_key", **msgspec.structs.asdict(claim), expires_at_ms=expires_at_ms)


async def find_claim(store: Store, claim: Claim) -> Claim | None:
    """The call that has the key of this one."""
    row = await store.one("get_idempotency_key", org_id=claim.org_id, key_digest=claim.key_digest)
    return None if row is None else msgspec.structs.replace(claim, **row)


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
