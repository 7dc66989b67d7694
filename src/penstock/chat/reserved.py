"""A call that is forwarded, and whose money is reserved: its failed attempts, its losses and how it is settled."""

from collections.abc import Sequence
from functools import partial

import msgspec

from penstock.accounts.chat_reservations import Reservation
from penstock.accounts.payloads import MESSAGE_NOT_STORED, Leftovers, Payload, expiry_ms, prompt_of
from penstock.accounts.requests import RequestEnd
from penstock.accounts.response_items import ResponseItem, kept_items
from penstock.chat.form import ResponseForm
from penstock.chat.pricing import Bill
from penstock.chat.request import ChatRequest
from penstock.errors import Problem, StorageUnavailable
from penstock.gateway import Gateway
from penstock.schema import Call, FailedAttempt, Request
from penstock.telemetry.call_report import report_result
from penstock.telemetry.metrics import NO_PROVIDER
from penstock.telemetry.tracing import span
from penstock.upstream.candidate import Candidate
from penstock.upstream.failure_log import log_failure
from penstock.upstream.failures import Failure
from penstock.upstream.token_prices import TokenPrices
from penstock.upstream.vendor_account import VendorAccount
from penstock.values import ZERO, Nanos

_MAX_MESSAGE_CHARS = 1000
_MEDIA_TASKS = ("speech",)  # whose texts are stored like the prompts of images


async def reserve(gateway: Gateway, call: Call, request: Request, amount: Nanos, modality: str | None) -> Reservation:
    """Reserve money for a call whose body need not wait any longer. If that fails, and a hold may be in the store all
    the same, the hold is released.
    """
    with span("accept"):
        reservation = gateway.chat_reservations.reserve_at_once(call, request, amount, modality)
        if reservation is None:
            reservation = await _hold(gateway, call, request, amount, modality)
    call.release_body()
    return reservation


async def _hold(gateway: Gateway, call: Call, request: Request, amount: Nanos, modality: str | None) -> Reservation:
    hold = partial(gateway.chat_reservations.reserve, call, request, amount, modality)
    try:
        return await gateway.unsettled_money.accept(call.caller.org_id, hold)
    except StorageUnavailable as problem:
        if problem.should_retry is False:
            unconfirmed = Reservation(call, request, amount, modality, in_store=True)
            gateway.chat_settlement.release_later(unconfirmed, problem)
        raise


class ReservedCall(msgspec.Struct, frozen=True):
    """A call of chat or of speech whose money is reserved; it is settled exactly once."""

    gateway: Gateway
    reservation: Reservation
    failed_attempts: list[FailedAttempt] = msgspec.field(default_factory=list)
    in_use: list[VendorAccount] = msgspec.field(default_factory=list)  # the account that is asked
    losses: list[Nanos] = msgspec.field(default_factory=list)  # what providers bill for responses that cannot be used

    def settle(
        self,
        status: str,
        *,
        candidate: Candidate | None = None,
        bill: Bill | None = None,
        response_bytes: int = 0,
        response: bytes | bytearray = b"",
        items: Sequence[ResponseItem] = (),
        problem: Problem | None = None,
    ) -> None:
        """Record how the call ended and charge the bill of the candidate that served it; what exceeds the reserved
        amount is a loss, and so are the `losses`. The `response` is stored together with the request where the settings
        ask for it, and its `items` are kept for later calls.
        """
        duration_ms = int((self.gateway.clock.monotonic() - self.reservation.call.started) * 1000)
        model = candidate.model if candidate else None
        cost = bill.cost if bill else ZERO
        last = self.failed_attempts[-1] if self.failed_attempts else None
        provider = candidate.provider.slug if candidate else None
        end = RequestEnd(
            status,
            cost,
            duration_ms,
            response_bytes,
            problem.code if problem else None,
            self._stored_message(problem.message) if problem else None,
            provider=provider or (last.provider if last else None),
            upstream_model=model.upstream if model else last.upstream_model if last else None,
            account_id=(candidate.account_id if candidate else last.account if last else "") or None,
            vendor_cost=_vendor_cost(candidate, bill),
            input_tokens=bill.tokens.get("input") if bill else None,
            cached_tokens=bill.tokens.get("cached") if bill else None,
            output_tokens=bill.tokens.get("output") if bill else None,
            cost_lines=bill.lines if bill else (),
            attempts=self.failed_attempts,
        )
        self._end_use()
        if problem:
            problem.recorded = True
        leftovers = self._leftovers(response, items) if items or self.stores_payload else None
        self.gateway.chat_settlement.settle_later(self.reservation, end, leftovers, loss=Nanos(sum(self.losses)))
        charged = min(cost, self.reservation.amount)
        self.gateway.metrics.count_generation(provider or NO_PROVIDER, self.reservation.request.task, status, charged)
        report_result(end.provider, charged)

    def begin_use(self, candidate: Candidate) -> None:
        """Count the call for the account of a candidate, until it has failed or the call is settled."""
        if candidate.account is not None:
            candidate.account.limits.begin()
            self.in_use.append(candidate.account)

    def _end_use(self) -> None:
        while self.in_use:
            self.in_use.pop().limits.end()

    async def free_place(self) -> None:
        """Let the caller's next call, which may go to another process, find this one as it ended."""
        caller = self.reservation.call.caller
        await self.gateway.unsettled_money.free_place(caller, has_items=self.keeps_items)

    def record_failure(self, candidate: Candidate, failure: Failure) -> None:
        """Note a failed attempt: in the log, for the health of the candidate, and for the record of the call."""
        call = self.reservation.call
        log_failure(self.gateway.settings, candidate, failure, call.id, call.json)
        if candidate.is_rated:
            self.gateway.health.record_failure(*candidate.health_key, failure.kind, failure.retry_after_seconds)
            self.gateway.vendor_accounts.note_failure(candidate, failure)
        self._end_use()
        attempts = self.failed_attempts
        attempt = FailedAttempt(
            candidate.provider.slug,
            candidate.model.upstream,
            attempts[-1].ended_at_ms if attempts else call.at_ms,
            self.gateway.clock.now_ms(),
            failure.kind,
            self._stored_message(failure.message)[:_MAX_MESSAGE_CHARS],
            failure.status,
            candidate.account_id,
        )
        attempts.append(attempt)

    @property
    def stores_payload(self) -> bool:
        payloads = self.gateway.settings.payloads
        reservation = self.reservation
        if reservation.call.is_guard:
            return False
        is_media = reservation.call.is_batch_row or reservation.request.task in _MEDIA_TASKS
        return payloads == "all" or (is_media and payloads != "none")

    @property
    def keeps_items(self) -> bool:
        """Whether later calls may refer to the items of the response."""
        return False

    def _leftovers(self, response: bytes | bytearray, items: Sequence[ResponseItem]) -> Leftovers:
        settings = self.gateway.settings
        call = self.reservation.call
        now = self.gateway.clock.now_ms()
        payload = None
        if self.stores_payload:
            payload = Payload(call.body, response, expiry_ms(settings, now), prompt_of(call.json))
        kept = kept_items(settings, call.caller.org_id, call.id, items, now)
        return Leftovers(call.caller.org_id, call.id, payload, kept)

    def _stored_message(self, message: str) -> str:
        """The message of a failed call. A provider's may quote the prompt, so it is not stored if no prompt may be."""
        return MESSAGE_NOT_STORED if self.gateway.settings.payloads == "none" else message


def _vendor_cost(candidate: Candidate | None, bill: Bill | None) -> Nanos | None:
    """What the vendor bills the organization for tokens at its list price; None where the operator is billed."""
    if candidate is None or candidate.listed is None or bill is None or not bill.tokens:
        return None
    tokens = bill.tokens
    price = TokenPrices.of(candidate.listed).row(tokens.get("input", 0))
    if price is None:
        return None
    sound_tokens = (tokens.get("heard", 0), tokens.get("spoken", 0))
    return price.lines(tokens.get("input", 0), tokens.get("output", 0), tokens.get("cached", 0), sound_tokens)[1]


class ReservedChat(ReservedCall, frozen=True, kw_only=True):
    """A chat call whose money is reserved."""

    chat: ChatRequest
    form: ResponseForm

    @property
    def keeps_items(self) -> bool:
        responses = self.chat.responses
        return responses is not None and responses.keeps_items and self.gateway.settings.payloads != "none"
