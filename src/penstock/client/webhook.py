"""Check that a webhook comes from the gateway, and read it."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.client.failures import WebhookRefused

_TOLERANCE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Event:
    """A webhook whose signature was right."""

    message_id: str  # the same event may arrive more than once
    type: str  # such as video.completed
    data: Mapping[str, Any] = field(repr=False)

    @property
    def generation_id(self) -> str:
        """What it is about, for `Client.get`."""
        return str(self.data.get("id", ""))


def check_webhook(body: bytes | str, headers: Mapping[str, str], secret: str, *, now: float | None = None) -> Event:
    """Return the event of a webhook. `body` is exactly what was received, before anything has parsed it.

    Raises WebhookRefused if no signature is that of the secret, or it is older than five minutes.
    """
    raw = body.encode() if isinstance(body, str) else body
    named = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp = named.get("webhook-id", ""), named.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs((time.time() if now is None else now) - int(timestamp)) > _TOLERANCE_SECONDS:
        raise WebhookRefused("the webhook has no timestamp of the last five minutes")
    signed = b".".join((message_id.encode(), timestamp.encode(), raw))
    expected = b"v1," + base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256))
    given = named.get("webhook-signature", "").encode().split()
    if not any(hmac.compare_digest(expected, each) for each in given):
        raise WebhookRefused("the webhook is not signed with this secret")
    event = json.loads(raw)
    return Event(message_id, str(event["type"]), event["data"])


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        raise ValueError("the secret of webhooks is base64 after `whsec_`") from None
