"""Callbacks of providers: one with a valid signature wakes the job that it is about, which is then polled at once."""

import hmac
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from penstock.clock import Clock
from penstock.errors import PermissionDenied
from penstock.jobs.leases import Jobs
from penstock.settings import Settings
from penstock.store.base import Store, Transaction
from penstock.upstream.candidate import Candidate
from penstock.vault import Vault
from penstock.webhooks import events

# Takes the place of the token for providers that are given one callback URL for all jobs of an account.
ACCOUNT = "account"
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_TOLERANCE_SECONDS = 300


class CalledAttempt(msgspec.Struct, frozen=True):
    """The attempt that a callback is about."""

    id: str
    request_id: str


class Callbacks:
    """Gives out callback URLs and receives the calls. Nothing in a callback is believed: it only makes the job poll."""

    def __init__(
        self, store: Store, vault: Vault, clock: Clock, settings: Settings, jobs: Jobs, secrets: Mapping[str, str]
    ) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self._settings = settings
        self._jobs = jobs
        self._secrets = secrets  # by provider: of those that sign their callbacks and whose secret is configured
        for slug, secret in secrets.items():
            if not _is_usable(secret):
                raise ValueError(f"the callback secret of {slug} is malformed: it must begin with {events.PREFIX}")

    def url(self, candidate: Candidate, attempt_id: str) -> str:
        """The URL that the provider may call about this attempt; empty when it sends no callbacks, or when the gateway
        has no public HTTPS URL.
        """
        op = candidate.model.op
        base_url = self._settings.url_for_providers
        if not op.callback_field or not op.poll or not base_url:
            return ""
        slug = candidate.provider.slug
        token = f"{attempt_id}-{self._vault.sign(_signed(slug, attempt_id))}"
        return f"{base_url}/callbacks/{slug}/{token}"

    async def receive(self, slug: str, token: str, headers: Mapping[str, str], body: bytes) -> None:
        """Wake the job that a callback is about. Raises PermissionDenied unless the URL carries the gateway's signature
        or the call the provider's.
        """
        secret = self._secrets.get(slug)
        if secret is not None and not is_signed(secret, headers, body, self._clock.now_ms() // 1000):
            raise PermissionDenied("This call is not signed by the provider.")
        attempt_id, _, signature = token.partition("-")
        if self._vault.verify(_signed(slug, attempt_id), signature):
            row = await self._store.one("get_attempt", id=attempt_id)
        elif secret is not None and token == ACCOUNT:
            upstream_id = _upstream_id(body)
            names = {"provider": slug, "upstream_id": upstream_id}
            row = await self._store.one("get_attempt_by_upstream_id", **names) if upstream_id else None
        else:
            raise PermissionDenied("This URL is not signed by the gateway.")
        if row is not None:
            await self._wake(CalledAttempt(**row))

    async def _wake(self, attempt: CalledAttempt) -> None:
        async def write(tx: Transaction) -> None:
            await tx.run("check_attempt_now", id=attempt.id, now_ms=self._clock.steady_ms())
            await self._jobs.wake_everywhere(tx, attempt.request_id)

        await self._store.write(write)
        self._jobs.wake(attempt.request_id)


def _signed(slug: str, attempt_id: str) -> str:
    return f"callback\n{slug}\n{attempt_id}"


def _upstream_id(body: bytes) -> str | None:
    """The provider's id of the job that an account's event is about: `data.id` in OpenAI's, `id` in others'."""
    with suppress(msgspec.DecodeError, RecursionError):
        event: Any = msgspec.json.decode(body)
        data = event.get("data", event) if isinstance(event, dict) else {}
        upstream_id = data.get("id") if isinstance(data, dict) else None
        return upstream_id if isinstance(upstream_id, str) else None
    return None


def _is_usable(secret: str) -> bool:
    try:
        return bool(events.sign(secret, "", 0, b""))
    except ValueError:
        return False


def is_signed(secret: str, headers: Mapping[str, str], body: bytes, now: int) -> bool:
    """Whether a call carries a valid Standard Webhooks signature that is at most five minutes old."""
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not _TIMESTAMP.fullmatch(timestamp) or abs(int(timestamp) - now) > _TOLERANCE_SECONDS:
        return False
    expected = events.sign(secret, message_id, int(timestamp), body).encode()
    given = headers.get("webhook-signature", "").encode(errors="replace").split()
    return any(hmac.compare_digest(expected, signature) for signature in given)
