"""Handle a chat call: check it, reserve its cost, forward it, pass the response on, settle."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import msgspec

from penstock.accounts.chat_reservations import Reservation
from penstock.accounts.payloads import MESSAGE_NOT_STORED, Payload, expiry_ms
from penstock.accounts.requests import RequestEnd
from penstock.chat.images import inline_images
from penstock.chat.pricing import Usage, actual_cost, cost_lines, estimated_usage, max_cost, quote
from penstock.chat.request import ChatRequest, check_supported, provider_body, read_chat_request
from penstock.chat.stream import Relay, StreamBroken, rename_finish_reasons
from penstock.errors import Cancelled, Problem, UpstreamError
from penstock.gateway import Gateway
from penstock.generations import respond
from penstock.generations.retrieve import mark_recorded
from penstock.metrics import NO_PROVIDER
from penstock.net.errors import MaybeSent, NotSent
from penstock.net.response import ByteStream
from penstock.schema import Call, FailedAttempt, Request, Response
from penstock.upstream.catalog import Candidate, Route, capable_route
from penstock.upstream.client import AttemptFailed, OutcomeUnknown
from penstock.upstream.outcome import Failure, error_for
from penstock.values import ZERO, Nanos

_IDLE_SECONDS = 60.0
_STREAM_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
_MAX_MESSAGE_CHARS = 1000
_NO_FINISH_REASONS: Mapping[bytes, bytes] = {}


class _Completion(msgspec.Struct):
    choices: list[msgspec.Raw] = []
    usage: Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")


_decode_completion = msgspec.json.Decoder(_Completion).decode


async def complete(gateway: Gateway, call: Call) -> Response:
    """Return the response of the first provider that answers, or a stream of it; raise the problem if none does."""
    chat = read_chat_request(call, gateway.settings)
    route = gateway.catalog.route(chat.model, ("chat",), gateway.health.is_healthy)
    values = {name: chat.body[name] for name in ("user", "session_id") if chat.body.get(name)}
    request = Request(task="chat", model=chat.model, values=values)
    route = capable_route(route, request, lambda model, _: check_supported(chat, model))
    output_tokens = gateway.settings.chat_output_tokens
    if call.dry_run:
        return respond.estimate(chat.model, route.first.provider.slug, quote(route.first.model, chat, output_tokens))
    if chat.images:
        chat = await inline_images(chat, route, gateway.transfer)
    amount = Nanos(max([max_cost(candidate.model, chat, output_tokens) for candidate in route.candidates]))
    modality = "vision" if chat.images else None
    reservation = await gateway.chat_reservations.reserve(call, request, amount, modality)
    reserved = _ReservedCall(gateway, chat, reservation)
    try:
        return await _forward(reserved, route)
    except Problem as problem:
        reserved.settle("upstream_failure", problem=mark_recorded(problem))
        raise
    except BaseException:
        reserved.settle("cancelled", problem=Cancelled("The call was cancelled."))
        raise


@dataclass(frozen=True, slots=True)
class _ReservedCall:
    """A chat call whose money is reserved; it is settled exactly once."""

    gateway: Gateway
    chat: ChatRequest
    reservation: Reservation
    failed_attempts: list[FailedAttempt] = field(default_factory=list)
    losses: list[Nanos] = field(default_factory=list)  # what providers bill for responses that cannot be used

    def settle(
        self,
        status: str,
        *,
        candidate: Candidate | None = None,
        usage: Usage | None = None,
        response_bytes: int = 0,
        response: bytes = b"",
        problem: Problem | None = None,
    ) -> None:
        """Record how the call ended and charge the usage of the candidate that served it; what exceeds the reserved
        amount is a loss, and so are the `losses`. The `response` is stored together with the request where the settings
        ask for it.
        """
        duration_ms = int((self.gateway.clock.monotonic() - self.reservation.call.started) * 1000)
        model = candidate.model if candidate else None
        cost = actual_cost(model, usage) if model and usage else ZERO
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
            input_tokens=usage.input if usage else None,
            cached_tokens=usage.cached if usage else None,
            output_tokens=usage.output if usage else None,
            cost_lines=cost_lines(model, usage) if model and usage else (),
            attempts=self.failed_attempts,
        )
        payload = self._payload(response)
        self.gateway.chat_settlement.settle_later(self.reservation, end, payload, loss=Nanos(sum(self.losses)))
        charged = min(cost, self.reservation.amount)
        self.gateway.metrics.count_generation(provider or NO_PROVIDER, "chat", status, charged)

    def add_failure(self, candidate: Candidate, problem: AttemptFailed | OutcomeUnknown) -> Failure:
        """Note a failed attempt for the record, and return the failure."""
        failure = Failure.from_error(problem)
        attempts = self.failed_attempts
        attempt = FailedAttempt(
            candidate.provider.slug,
            candidate.model.upstream,
            attempts[-1].ended_at_ms if attempts else self.reservation.call.at_ms,
            self.gateway.clock.now_ms(),
            failure.kind,
            self._stored_message(problem.message)[:_MAX_MESSAGE_CHARS],
            problem.status if isinstance(problem, AttemptFailed) else None,
        )
        attempts.append(attempt)
        return failure

    @property
    def stores_payload(self) -> bool:
        return self.gateway.settings.payloads == "all"

    def _payload(self, response: bytes) -> Payload | None:
        if not self.stores_payload:
            return None
        expires_at_ms = expiry_ms(self.gateway.settings, self.gateway.clock.now_ms())
        return Payload(self.reservation.call.body, response, expires_at_ms)

    def _stored_message(self, message: str) -> str:
        """The message of a failed call. A provider's may quote the prompt, so it is not stored if no prompt may be."""
        return MESSAGE_NOT_STORED if self.gateway.settings.payloads == "none" else message


async def _forward(reserved: _ReservedCall, route: Route) -> Response:
    """Send the call to the candidates in order until one responds."""
    health = reserved.gateway.health
    failures: list[Failure] = []
    for candidate in route.candidates:
        try:
            if reserved.chat.stream:
                response = await _forward_stream(reserved, candidate)
            else:
                response = await _forward_whole(reserved, candidate)
        except (AttemptFailed, OutcomeUnknown) as problem:
            failure = reserved.add_failure(candidate, problem)
            failures.append(failure)
            _record_health(reserved.gateway, candidate, failure)
            if not failure.allows_failover:
                break
        else:
            health.record_success(candidate.provider.slug, candidate.model.upstream)
            return response
    raise error_for(failures, forced=route.forced)


def _record_health(gateway: Gateway, candidate: Candidate, failure: Failure) -> None:
    """A provider that rejects a call or refuses its content works; other failures count against it."""
    slug = candidate.provider.slug
    upstream = candidate.model.upstream
    if failure.kind in ("rejected", "refused"):
        gateway.health.record_success(slug, upstream)
    else:
        gateway.health.record_failure(slug, upstream, failure.kind, failure.retry_after_seconds)


def _finish_reasons(candidate: Candidate) -> Mapping[bytes, bytes]:
    reasons: Mapping[bytes, bytes] = candidate.model.op.settings.get("finish_reasons", _NO_FINISH_REASONS)
    return reasons


# ------------------------------------------------------------------------------------------------------ whole responses


async def _forward_whole(reserved: _ReservedCall, candidate: Candidate) -> Response:
    """Send the call and return the provider's body unchanged, except for its own finish reasons."""
    gateway = reserved.gateway
    chat = reserved.chat
    provider = candidate.provider
    fields = provider_body(chat, candidate.model, gateway.settings.chat_output_tokens)
    reply = await gateway.upstream.send_chat(
        candidate, fields, gateway.settings.upstream_seconds, for_org=reserved.reservation.call.caller.org_id
    )
    try:
        completion = _decode_completion(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        message = f"{provider.name} returned a malformed response."
        raise AttemptFailed(provider.slug, "unreadable", message) from None
    if bytes(completion.error) != b"null":
        raise gateway.upstream.failure_in_body(candidate, reply.body)
    usage = completion.usage
    if not completion.choices:
        if usage is not None:
            reserved.losses.append(actual_cost(candidate.model, usage))
        raise AttemptFailed(provider.slug, "unreadable", f"{provider.name} returned a response without choices.")
    if usage is None:
        usage = estimated_usage(chat, output_bytes=sum(len(bytes(choice)) for choice in completion.choices))
    body = rename_finish_reasons(reply.body, _finish_reasons(candidate))
    reserved.settle("completed", candidate=candidate, usage=usage, response_bytes=len(body), response=body)
    return Response(body=body)


# -------------------------------------------------------------------------------------------------------------- streams


async def _forward_stream(reserved: _ReservedCall, candidate: Candidate) -> Response:
    """Send the call and return a response that streams.

    This waits for the first event, because until then the call can still go to another provider.
    """
    gateway = reserved.gateway
    provider = candidate.provider
    relay = Relay(keeps_usage=reserved.chat.wants_usage, finish_reasons=_finish_reasons(candidate))
    source = await gateway.upstream.stream_chat(
        candidate,
        provider_body(reserved.chat, candidate.model, gateway.settings.chat_output_tokens),
        idle_seconds=_IDLE_SECONDS,
        total_seconds=gateway.settings.stream_seconds,
        for_org=reserved.reservation.call.caller.org_id,
    )
    try:
        first = b""
        while not first and not relay.done:
            first = relay.feed(await anext(source))
    except (StopAsyncIteration, StreamBroken, MaybeSent, NotSent) as problem:
        await source.aclose()
        if isinstance(problem, StreamBroken) and problem.event:
            raise gateway.upstream.failure_in_body(candidate, problem.event) from None
        raise AttemptFailed(provider.slug, "unreadable", f"{provider.name} did not return a stream.") from problem
    except BaseException:
        await source.aclose()
        raise
    events = _relay_events(reserved, candidate, source, relay, first)
    return Response(chunks=events, headers=_STREAM_HEADERS, media_type="text/event-stream")


async def _relay_events(
    reserved: _ReservedCall, candidate: Candidate, source: ByteStream, relay: Relay, first: bytes
) -> AsyncIterator[bytes]:
    """Yield the events of a stream; settle the call and close the connection however the stream ends.

    A stream that the provider breaks off ends with an error event and costs nothing; what was received is a loss. A
    caller who disconnects pays for what was sent.
    """
    provider = candidate.provider
    status = "cancelled"
    problem: Problem | None = Cancelled("The caller disconnected.")
    stored = bytearray(first) if reserved.stores_payload else None
    try:
        yield first
        fault = None
        try:
            async for data in source:
                if events := relay.feed(data):
                    if stored is not None:
                        stored += events
                    yield events
                if relay.done:
                    break
            if not relay.done:
                fault = "ended its stream without [DONE]"
        except StreamBroken as broken:
            fault = _describe(reserved.gateway, candidate, broken)
        except (MaybeSent, NotSent):
            fault = "closed the connection before the end of its stream"
        if fault is None:
            status = "completed"
            problem = None
        else:
            reserved.gateway.health.record_failure(provider.slug, candidate.model.upstream, "broken")
            status = "upstream_failure"
            problem = UpstreamError(f"{provider.name} {fault}.")
            reserved.add_failure(candidate, AttemptFailed(provider.slug, "broken", problem.message))
            yield b"data: " + msgspec.json.encode(problem.body()) + b"\n\n"
    finally:
        usage = _stream_usage(reserved.chat, relay)
        if status == "upstream_failure":
            reserved.losses.append(actual_cost(candidate.model, usage))
        reserved.settle(
            status,
            candidate=candidate,
            usage=None if status == "upstream_failure" else usage,
            response_bytes=relay.size_bytes,
            response=bytes(stored or b""),
            problem=problem,
        )
        await source.aclose()


def _describe(gateway: Gateway, candidate: Candidate, broken: StreamBroken) -> str:
    """Return what was wrong with a stream, with the provider's own message if it sent an error."""
    if not broken.event:
        return str(broken)
    message = gateway.upstream.failure_in_body(candidate, broken.event).message
    return f"{broken}: {message.rstrip('.')}"


def _stream_usage(chat: ChatRequest, relay: Relay) -> Usage:
    """Return the usage of what was sent; where the provider reports none, each event counts as one token."""
    return relay.usage or estimated_usage(chat, output_tokens=relay.event_count)
