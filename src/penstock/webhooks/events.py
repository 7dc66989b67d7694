"""Build webhook events, sign them and store them as messages."""

import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.audit_log import Act, Note, write_audited
from penstock.cache import Recent
from penstock.clock import Clock
from penstock.errors import NotFound
from penstock.store.base import Row, Store, Transaction
from penstock.values import OrgId
from penstock.vault import HmacKey, Vault

PREFIX = "whsec_"
TRIAL_EVENT = "webhook.test"
OPERATOR = OrgId("operator")  # stands for an organization in messages to the operator
ALERT_PREFIX = "msg_alr"
_ALERTS = msgspec.json.Encoder(decimal_format="number")
_SECRET_BYTES = 32
_SECRET_BYTES_MIN = 24
_OLD_SECRET_MS = 24 * 3600 * 1000
_DUE_AT_ONCE: Row = {"next_at_ms": 0, "unrecorded": 0, "lease_token": 0}

# ------------------------------------------------------------------------------------------------------------- signing


class Signer:
    """Signs messages with one secret, by the Standard Webhooks specification."""

    __slots__ = ("_key",)

    def __init__(self, secret: str) -> None:
        """Raises ValueError for a secret that is not base64 or shorter than 24 bytes."""
        key = b64decode(secret.removeprefix(PREFIX), validate=True)
        if len(key) < _SECRET_BYTES_MIN:
            raise ValueError(f"a webhook secret must have at least {_SECRET_BYTES_MIN} bytes")
        self._key = HmacKey(key)

    def sign(self, message_id: str, timestamp: int, body: bytes) -> str:
        """The signature of a message; `timestamp` is in seconds."""
        digest = self._key.digest(f"{message_id}.{timestamp}.".encode() + body)
        return f"v1,{b64encode(digest).decode()}"


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """The signature of one message. Raises ValueError as `Signer` does."""
    return Signer(secret).sign(message_id, timestamp, body)


class _SecretsRow(msgspec.Struct, frozen=True, kw_only=True):
    """The signing secrets of an organization, encrypted."""

    id: OrgId
    secret: bytes | None  # None until it is first needed
    old_secret: bytes | None  # the secret before the last rotation; signs too until `old_secret_until_ms`
    old_secret_until_ms: int | None

    def signing(self, now_ms: int) -> list[bytes]:
        """The current secret and, while it signs too, the one before it."""
        old = self.old_secret if now_ms < (self.old_secret_until_ms or 0) else None
        return [secret for secret in (self.secret, old) if secret is not None]


class WebhookSecrets:
    """The signing secret of each organization: created when first needed, stored encrypted."""

    def __init__(self, store: Store, vault: Vault, clock: Clock) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock

    async def get_secret(self, org_id: OrgId) -> str:
        """The current secret. Creates the first one; raises NotFound for an unknown organization."""
        return (await self.get_signing_secrets(org_id))[0]

    async def get_signing_secrets(self, org_id: OrgId) -> tuple[str, ...]:
        """The current secret and, during the overlap after a rotation, the one before it. Creates the first one.

        The secret of alerts to the operator follows from the master secret.
        """
        if org_id == OPERATOR:
            return (PREFIX + b64encode(self._vault.derive_alert_secret()).decode(),)
        row = await _get_secrets(self._store, org_id)
        if row is None or row.secret is None:
            row = await self._create_secret(org_id)
        return tuple(self._vault.open(secret, org_id).decode() for secret in row.signing(self._clock.now_ms()))

    async def _create_secret(self, org_id: OrgId) -> _SecretsRow:
        new = self._new_sealed_secret(org_id)

        async def work(tx: Transaction) -> _SecretsRow | None:
            await tx.run("set_first_secret", org_id=org_id, secret=new)
            return await _get_secrets(tx, org_id)

        if (row := await self._store.write(work)) is None:
            raise NotFound(f"No such organization: {org_id}.")
        return row

    async def get_previous_expiry_ms(self, org_id: OrgId) -> int | None:
        """When the secret before the last rotation stops signing; None if it does not sign any more."""
        row = await _get_secrets(self._store, org_id)
        until_ms = row.old_secret_until_ms if row and row.old_secret is not None else None
        return until_ms if until_ms is not None and self._clock.now_ms() < until_ms else None

    async def rotate(self, org_id: OrgId, overlap_ms: int = _OLD_SECRET_MS) -> str:
        """Set a new secret and return it. During the overlap, a day by default, deliveries carry both signatures."""
        await self.get_secret(org_id)
        new = self._new_sealed_secret(org_id)
        until_ms = self._clock.now_ms() + overlap_ms

        async def work(tx: Transaction, note: Note) -> None:
            await tx.run("replace_secret", org_id=org_id, secret=new, until_ms=until_ms)
            note(Act("webhook_secret.rotated", org_id, org_id, after={"secret": "changed"}))

        await write_audited(self._store, self._clock.now_ms(), work)
        return self._vault.open(new, org_id).decode()

    async def reseal(self) -> int:
        """Encrypt all secrets with the newest master secret. Returns how many were encrypted with an older one."""
        rows = [_SecretsRow(**row) for row in await self._store.slow("list_secrets")]
        stale = [row for row in rows if not self._is_current(row)]

        async def work(tx: Transaction) -> int:
            return sum([await tx.run("reseal_secrets", **self._resealed_row(row)) for row in stale])

        return await self._store.write(work)

    def _is_current(self, row: _SecretsRow) -> bool:
        return all(self._vault.is_current(secret) for secret in (row.secret, row.old_secret) if secret is not None)

    def _resealed_row(self, row: _SecretsRow) -> Row:
        """The values of the query `reseal_secrets`."""
        return {
            "id": row.id,
            "seen": row.secret,
            "secret": self._resealed(row.secret, row.id),
            "old_secret": self._resealed(row.old_secret, row.id),
        }

    def _resealed(self, secret: bytes | None, org_id: OrgId) -> bytes | None:
        return None if secret is None else self._vault.seal(self._vault.open(secret, org_id), org_id)

    def _new_sealed_secret(self, org_id: OrgId) -> bytes:
        text = PREFIX + b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
        return self._vault.seal(text.encode(), org_id)


async def _get_secrets(store: Store | Transaction, org_id: OrgId) -> _SecretsRow | None:
    row = await store.one("get_secrets", org_id=org_id)
    return None if row is None else _SecretsRow(**row)


class RecentSigners:
    """The signers of messages that are sent within a second: the secrets of each organization are read once.

    So a secret that was replaced may sign for a second longer.
    """

    def __init__(self, secrets: WebhookSecrets, clock: Clock) -> None:
        self._secrets = secrets
        self._recent: Recent[str, tuple[Signer, ...]] = Recent(clock.monotonic)

    async def get(self, org_id: OrgId) -> tuple[Signer, ...]:
        """One for each secret of `WebhookSecrets.get_signing_secrets`."""
        found = self._recent.get(org_id)
        if found is None:
            found = tuple(Signer(secret) for secret in await self._secrets.get_signing_secrets(org_id))
            self._recent.put(org_id, found)
        return found


# -------------------------------------------------------------------------------------------------------------- events


def event_body(
    event: str,
    request_id: str,
    model: str,
    *,
    outputs: Sequence[Mapping[str, Any]] = (),
    error: Mapping[str, str] | None = None,
) -> bytes:
    """The body of an event such as `video.completed` or `image.failed`. Equal arguments give equal bytes.

    A failed or cancelled event has an `error`; any other has `outputs`.
    """
    subject, _, status = event.partition(".")
    data: dict[str, Any] = {"object": f"{subject}.generation", "id": request_id, "model": model, "status": status}
    if error is not None:
        data["error"] = {"code": error["code"], "message": error["message"]}
    else:
        data["output"] = outputs[0]
        if len(outputs) > 1:
            data["outputs"] = outputs
    return msgspec.json.encode({"type": event, "data": data})


def trial_event_body(message_id: str) -> bytes:
    """The body of an event that is sent to try a receiver."""
    return msgspec.json.encode({"type": TRIAL_EVENT, "data": {"object": TRIAL_EVENT, "id": message_id}})


def alert_body(event: str, message_id: str, data: Mapping[str, Any]) -> bytes:
    """The body of an alert to the operator; amounts of money are numbers."""
    return _ALERTS.encode({"type": event, "data": {"id": message_id, **data}})


async def add_alert(tx: Transaction, *, message_id: str, url: str, event: str, body: bytes, at_ms: int) -> None:
    """Add a message to the operator. Call `Deliveries.wake` after the commit."""
    await tx.put(
        "add_message",
        id=message_id,
        org_id=OPERATOR,
        request_id=None,
        event=event,
        url=url,
        body=body,
        at_ms=at_ms,
        trace_context=None,
        drops=None,
        **_DUE_AT_ONCE,
    )


def message_row(
    *,
    org_id: OrgId,
    request_id: str,
    url: str,
    event: str,
    body: bytes,
    at_ms: int,
    trace_context: str | None = None,
    drops: int = 0,
) -> Row:
    """The values of a message about a request, for the query `add_message`: it is due at once. Call `Deliveries.wake`
    after the commit, or let `Deliveries.adding` lease it.

    A request has one message; a second one is ignored. `drops` is how many deliveries are not made, because the call
    asked for that.
    """
    return {
        "id": f"msg_{request_id}",
        "org_id": org_id,
        "request_id": request_id,
        "event": event,
        "url": url,
        "body": body,
        "at_ms": at_ms,
        "trace_context": trace_context,
        "drops": drops or None,
        **_DUE_AT_ONCE,
    }
