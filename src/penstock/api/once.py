"""Make an administrative change once: a call that is sent again with its idempotency key gets the first response."""

import hashlib
from typing import Any

import msgspec

from penstock.accounts.idempotency import key_digest, other_call
from penstock.api.responses import encode
from penstock.api.route import Route
from penstock.audit_log import acting_once
from penstock.errors import IdempotencyCompleted, IdempotencyInProgress, Problem
from penstock.gateway import Gateway
from penstock.generations.idempotency_keys import read_key
from penstock.schema import Call, Response
from penstock.store.base import Row, Transaction
from penstock.values import Retention

HEADER = "idempotency-key"
_PARAM = "idempotency_key"
_PATHS = (
    "/v1/keys", "/v1/own-key", "/v1/orgs", "/v1/accounts", "/v1/destinations", "/v1/labels", "/v1/label-budgets",
    "/v1/aliases", "/v1/invitations", "/v1/webhooks/secret",
)  # fmt: skip
_CHANGES = ("POST", "PUT", "PATCH", "DELETE")
_SECRETS = ("pk_", "whsec_")  # what values begin with that are shown once
_INVITATION_LINK = "/auth/login?invitation="  # what a link has in it that is shown once
_ANSWERED_MS = 60_000  # after the change at the latest, unless the process was stopped in between


def is_administrative(route: Route) -> bool:
    """Whether calls of a route change keys, organizations, invitations, accounts, destinations, labels or a secret."""
    return route.method in _CHANGES and route.path.startswith(_PATHS)


class _Taken(Exception):
    """Another call has the key."""


class _Claim:
    """The key of a call, claimed by the transaction of its first change."""

    def __init__(self, gateway: Gateway, call: Call, key: str) -> None:
        now_ms = gateway.clock.now_ms()
        operation = f"{call.method} {call.endpoint}"
        asked = msgspec.json.encode([call.path, call.query, call.json], order="deterministic")
        self.key: Row = {"org_id": call.caller.org_id, "key_digest": key_digest(operation, key)}
        self.id: Row = {**self.key, "request_id": call.id}
        self.body_digest = hashlib.sha256(asked).digest()
        self._times = {
            "created_at_ms": now_ms,
            "expires_at_ms": now_ms + Retention.parse(gateway.settings.idempotency_retention).seconds * 1000,
        }

    async def claim(self, tx: Transaction) -> None:
        if not await tx.run("claim_idempotency_key", **self.id, body_digest=self.body_digest, **self._times):
            row = await tx.one("get_idempotency_key", **self.key)
            if row is None or row["request_id"] != self.id["request_id"]:
                raise _Taken

    async def note(self, tx: Transaction, target: str) -> None:
        await tx.put("note_idempotency_target", **self.id, target=target)


async def answer_once(gateway: Gateway, call: Call, route: Route) -> Response:
    """Make the call, unless an equal one has the same key: then its response is returned, without secrets.

    A call that is refused, or changes nothing, does not use up its key. Raises UnprocessableRequest if the first call
    asked for something else, IdempotencyInProgress while it has no response yet, and IdempotencyCompleted if it never
    will: the change was made, and its response was lost with the process.
    """
    key = read_key(call, None)
    assert key is not None, "the call has the header"
    claim = _Claim(gateway, call, key)
    if (earlier := await _earlier(gateway, claim)) is not None:
        return _repeated(gateway, claim, earlier)
    try:
        with acting_once(claim):
            response = await route.endpoint(gateway, call)
    except _Taken:
        earlier = await _earlier(gateway, claim)
        if earlier is None:
            raise _in_progress() from None
        return _repeated(gateway, claim, earlier)
    stored = msgspec.json.encode({"status": response.status, "json": _without_secrets(_json(response))}).decode()
    await gateway.store.write(lambda tx: tx.run("set_idempotency_response", **claim.id, response=stored))
    return response


async def _earlier(gateway: Gateway, claim: _Claim) -> Row | None:
    return await gateway.store.one("get_idempotency_response", **claim.key, now_ms=gateway.clock.now_ms())


def _repeated(gateway: Gateway, claim: _Claim, earlier: Row) -> Response:
    if earlier["body_digest"] != claim.body_digest:
        raise other_call(earlier["request_id"])
    if earlier["response"] is None:
        if gateway.clock.now_ms() - earlier["created_at_ms"] < _ANSWERED_MS:
            raise _in_progress()
        message = f"The first call with this idempotency key has changed {earlier['target']}; its response was lost."
        raise IdempotencyCompleted(message, param=_PARAM, should_retry=False)
    stored = msgspec.json.decode(earlier["response"])
    headers = {"idempotent-replayed": "true"}
    return Response(status=stored["status"], json=stored["json"], headers=headers)


def _in_progress() -> Problem:
    message = "The first call with this idempotency key is still running."
    return IdempotencyInProgress(message, param=_PARAM, headers={"retry-after": "2"}, should_retry=True)


def _json(response: Response) -> Any:
    """What a response shows, as it is encoded: amounts are numbers."""
    return None if response.json is None else msgspec.json.decode(encode(response.json))


def _without_secrets(value: Any) -> Any:
    """The response with null for what is shown once."""
    if isinstance(value, dict):
        return {name: _without_secrets(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_secrets(part) for part in value]
    return None if isinstance(value, str) and (value.startswith(_SECRETS) or _INVITATION_LINK in value) else value
