"""Send a webhook message: check its URL, sign it, post it, and say how that ended."""

from collections import Counter
from http import HTTPStatus
from urllib.parse import urlsplit

from penstock.clock import Clock
from penstock.errors import InvalidRequest, RateLimited, StorageUnavailable
from penstock.net.checked_urls import check_webhook_url, egress_rules
from penstock.net.client import HttpClient
from penstock.net.errors import LookupBusy, MaybeSent, NotSent
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.telemetry.tracing import Tracing, span, trace_headers
from penstock.values import OrgId, new_id
from penstock.vault import Vault
from penstock.webhooks.delivery import DeliveryResult, LeasedMessage, TrialDelivery
from penstock.webhooks.events import RecentSigners, WebhookSecrets, trial_event_body

_PORTS = {"https": 443, "http": 80}
_TRIALS_AT_ONCE = 4  # of an organization: they cost nothing, and each may wait for its receiver until the timeout


class Sender:
    """Sends messages, and returns how that ended; `Deliveries` records it."""

    def __init__(
        self,
        store: Store,
        client: HttpClient,
        vault: Vault,
        clock: Clock,
        settings: Settings,
        tracing: Tracing | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._tracing = tracing
        self._signers = RecentSigners(WebhookSecrets(store, vault, clock), clock)
        self._egress = egress_rules(settings)
        self._timeout_seconds = settings.webhook_timeout_seconds
        self._trials = Counter[OrgId]()  # that are under way

    async def send(self, message: LeasedMessage) -> DeliveryResult:
        """Send a message in the trace of the call whose generation it tells about."""
        if self._tracing is None:
            return await self._post(message)
        with self._tracing.continue_trace(message.trace_context), span("deliver webhook", "client") as delivery:
            receiver = urlsplit(message.url)
            delivery.set("server.address", receiver.hostname)
            delivery.set("server.port", receiver.port or _PORTS.get(receiver.scheme))
            delivery.set("penstock.webhook.id", message.id)
            delivery.set("penstock.webhook.delivery", message.deliveries + 1)
            result = await self._post(message)
            delivery.set("http.response.status_code", result.status)
            if not result.delivered:
                delivery.fail(str(result.status or "not_delivered"))
            return result

    async def send_trial(self, org_id: OrgId, url: str) -> TrialDelivery:
        """Send a test event to a URL once, signed and checked like any other delivery; nothing is stored.

        Raises InvalidRequest for a URL that breaks a rule, and RateLimited if too many are under way.
        """
        url = check_webhook_url(url, self._egress)
        message_id = new_id("msg", self._clock.now_ms())
        message = LeasedMessage(message_id, org_id, url, trial_event_body(message_id), 0, 0)
        if self._trials[org_id] >= _TRIALS_AT_ONCE:
            text = f"At most {_TRIALS_AT_ONCE} test events of your organization may be under way at a time."
            raise RateLimited(text, headers={"retry-after": "1"}, should_retry=True)
        started = self._clock.monotonic()
        self._trials[org_id] += 1
        try:
            result = await self._post(message)
        finally:
            self._trials[org_id] -= 1
            if not self._trials[org_id]:
                del self._trials[org_id]
        return TrialDelivery(message, result, int((self._clock.monotonic() - started) * 1000))

    async def _post(self, message: LeasedMessage) -> DeliveryResult:
        if message.deliveries < (message.drops or 0):
            return DeliveryResult("dropped: the call asked for it by X-Service-Fault")
        try:
            url = check_webhook_url(message.url, self._egress)
            headers = await self._headers(message)
            status = await self._client.post_guarded(
                url,
                message.body,
                headers,
                timeout_seconds=self._timeout_seconds,
                egress=self._egress,
                share=message.org_id,
            )
        except InvalidRequest:
            return DeliveryResult("the URL is refused")
        except TimeoutError:
            return DeliveryResult("timed out")
        except StorageUnavailable as problem:
            return DeliveryResult(str(problem), counts=False)
        except LookupBusy as problem:
            return DeliveryResult(str(problem), counts=False, short_of_places=False)
        except NotSent as problem:
            return DeliveryResult(str(problem), counts=not problem.local)
        except MaybeSent as problem:
            return DeliveryResult(str(problem))
        if status == HTTPStatus.GONE:  # by the Standard Webhooks specification, a receiver's way to say stop
            return DeliveryResult(f"status {status}: the receiver wants no more of them", status, may_retry=False)
        return DeliveryResult(f"status {status}", status, delivered=200 <= status < 300)

    async def _headers(self, message: LeasedMessage) -> dict[str, str]:
        timestamp = self._clock.now_ms() // 1000
        signers = await self._signers.get(message.org_id)
        return {
            "content-type": "application/json",
            "webhook-id": message.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(signer.sign(message.id, timestamp, message.body) for signer in signers),
            **trace_headers(),
        }
