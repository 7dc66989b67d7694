"""Let providers call when a job has ended: whoever proves to know of it has the job asked about at once."""

import hmac
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from penstock.clock import Clock
from penstock.errors import PermissionDenied
from penstock.jobs.leases import Jobs
from penstock.settings import Settings
from penstock.store.base import Row, Store, Transaction
from penstock.upstream.catalog import Candidate
from penstock.vault import Vault
from penstock.webhooks import events

# Stands where the token would, for providers that are told one address for all jobs of an account.
ACCOUNT = "account"
_TOLERANCE_SECONDS = 300


class Callbacks:
    """What a callback says is not believed, only that there may be news: polling remains the truth."""

    def __init__(
        self, store: Store, vault: Vault, clock: Clock, settings: Settings, jobs: Jobs, secrets: Mapping[str, str]
    ) -> None:
        self._store, self._vault, self._clock, self._settings, self._jobs = store, vault, clock, settings, jobs
        self._secrets = secrets  # by provider; those that sign and told us with what
        for slug, secret in secrets.items():
            if not _is_usable(secret):
                raise ValueError(f"the secret for callbacks of {slug} is not one: it begins with {events.PREFIX}")

    def address(self, option: Candidate, attempt_id: str) -> str:
        """Where the provider may call about this attempt, or nothing: it must be able to, and reach us in private."""
        op, public_url = option.model.op, self._settings.public_url
        if not op.callback_field or not op.poll or not public_url.startswith("https://"):
            return ""
        slug = option.provider.slug
        token = f"{attempt_id}-{self._vault.sign(_signed(slug, attempt_id))}"
        return f"{public_url.rstrip('/')}/callbacks/{slug}/{token}"

    async def receive(self, slug: str, token: str, headers: Mapping[str, str], body: bytes) -> None:
        """Raises PermissionDenied unless the address is one that we gave out, or the provider signed for it."""
        secret = self._secrets.get(slug)
        if secret is not None and not verified(secret, headers, body, self._clock.now_ms() // 1000):
            raise PermissionDenied("This call is not signed by the provider.")
        attempt_id, _, signature = token.partition("-")
        if self._vault.verify(_signed(slug, attempt_id), signature):
            row = await self._store.one("get_attempt", id=attempt_id)
        elif secret is not None and token == ACCOUNT:
            name = _job_name(body)
            row = await self._store.one("get_attempt_by_upstream_id", provider=slug, upstream_id=name) if name else None
        else:
            raise PermissionDenied("This address is not signed by the gateway.")
        if row is not None:
            await self._nudge(row)

    async def _nudge(self, attempt: Row) -> None:
        async def write(tx: Transaction) -> None:
            await tx.run("hasten_late_attempt", id=attempt["id"], now_ms=self._clock.steady_ms())
            await self._jobs.tell(tx, attempt["request_id"])

        await self._store.write(write)
        self._jobs.nudge(attempt["request_id"])


def _signed(slug: str, attempt_id: str) -> str:
    return f"callback\n{slug}\n{attempt_id}"


def _job_name(body: bytes) -> str | None:
    """The job that an account's event is about: `data.id` in OpenAI's, `id` in others'."""
    with suppress(msgspec.DecodeError, RecursionError):
        event: Any = msgspec.json.decode(body)
        data = event.get("data", event) if isinstance(event, dict) else {}
        name = data.get("id") if isinstance(data, dict) else None
        return name if isinstance(name, str) else None
    return None


def _is_usable(secret: str) -> bool:
    try:
        return bool(events.sign(secret, "", 0, b""))
    except ValueError:
        return False


def verified(secret: str, headers: Mapping[str, str], body: bytes, now: int) -> bool:
    """Whether the Standard Webhooks signature of what came in is right and fresh."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdigit()) or abs(int(timestamp[:12]) - now) > _TOLERANCE_SECONDS:
        return False
    wanted = events.sign(secret, message_id, int(timestamp), body).encode()
    given = headers.get("webhook-signature", "").encode(errors="replace").split()
    return any(hmac.compare_digest(wanted, one) for one in given)
