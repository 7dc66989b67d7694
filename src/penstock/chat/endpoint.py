"""Handle a chat call: check it, reserve its cost, forward it, pass the response on, settle."""

from collections.abc import AsyncIterator

import msgspec

from penstock.accounts.limits import check_model
from penstock.chat.candidates import estimate, executed_model_header, route_chat
from penstock.chat.form import ChatForm, ResponseForm, SentBytes
from penstock.chat.images import inline_images
from penstock.chat.mock import with_replay_header
from penstock.chat.pass_through import ResponsesApi
from penstock.chat.pricing import Bill, Usage, estimated_usage, make_bill, max_cost
from penstock.chat.provider_api import CompletionsApi, ProviderApi, StreamRelay
from penstock.chat.provider_body import passes_through
from penstock.chat.request import ChatRequest, read_chat_request
from penstock.chat.reserved import ReservedCall, reserve
from penstock.chat.responses_request import ResponsesRequest
from penstock.chat.stream import (
    CallerTooSlow,
    ProviderTooSlow,
    StreamBroken,
    WaitingTimes,
    idle_seconds,
    read_end,
    translated,
)
from penstock.errors import (
    Cancelled,
    PermissionDenied,
    Problem,
    Unavailable,
    UpstreamError,
    UpstreamTimeout,
)
from penstock.event_loop import run_aside
from penstock.gateway import Gateway
from penstock.interrupts import CallerGone, CallerLine, ProcessStopped
from penstock.long_bodies import json_outline
from penstock.long_bodies.long_texts import TooComplex
from penstock.models.routing import Route
from penstock.net.errors import MaybeSent, NotSent
from penstock.net.response import ByteStream
from penstock.schema import Call, Caller, Request, Response
from penstock.telemetry.call_report import provider_wait
from penstock.telemetry.tracing import span
from penstock.upstream.caller_error import caller_error
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure, failure_in_body
from penstock.upstream.replies import MALFORMED
from penstock.upstream.watch import INTERRUPTED, AttemptWatch
from penstock.values import Nanos

_EXTRA_SECONDS = 120.0  # longer than a single wait for a provider or for a caller can be
_STREAM_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
_CHAT_FORM = ChatForm()
_DISCONNECTED = "The caller disconnected."
# Fields by which routers are told to use other models than the one that is named, when that one fails.
_OTHER_MODELS = ("models", "fallbacks", "route", "preset")


async def complete(
    gateway: Gateway, call: Call, form: ResponseForm = _CHAT_FORM, responses: ResponsesRequest | None = None
) -> Response:
    """Return the response of the first provider that answers, or a stream of it, in this form; raise the problem if
    none does. With `responses`, providers that speak the Responses API get this request in place of the chat call.
    """
    with span("validate"):
        chat = await run_aside(call.size_bytes, read_chat_request, call, gateway.settings, responses)
        if call.caller.models is not None:
            _check_models(gateway, call.caller, chat)
        routed = await route_chat(gateway, call, chat)
    if call.dry_run:
        return estimate(gateway, routed)
    chat = routed.chat
    route = routed.route
    values = {name: chat.body[name] for name in ("user", "session_id") if chat.body.get(name)}
    request = Request(task="chat", model=chat.model, values=values)
    output_tokens = gateway.settings.chat_output_tokens
    if chat.images:
        chat = await inline_images(
            chat, route, gateway.transfer, call.caller.org_id, max_bytes=gateway.settings.json_bytes
        )
    amount = Nanos(max([max_cost(candidate.model, chat, output_tokens) for candidate in route.candidates]))
    modality = "vision" if chat.images else None
    with span("accept"):
        reservation = await reserve(gateway, call, request, amount, modality)
    call.release_body()
    reserved = ReservedCall(gateway, chat, reservation, form)
    try:
        return with_replay_header(await _forward(reserved, route), routed.replay)
    except CallerGone:  # it is settled, since what it costs depends on the candidate
        raise
    except Problem as problem:
        status = "cancelled" if isinstance(problem, Unavailable) else "upstream_failure"
        reserved.settle(status, problem=problem)
        raise
    except BaseException:
        reserved.settle("cancelled", problem=Cancelled("The call was cancelled."))
        raise


def _check_models(gateway: Gateway, caller: Caller, chat: ChatRequest) -> None:
    """Raise PermissionDenied if the key may not use the model, or the call names others that a router may use."""
    check_model(caller, chat.model, gateway.catalog.public_id(chat.model.removeprefix("router/")))
    if field := next((name for name in _OTHER_MODELS if name in chat.extras), None):
        message = f"This key is limited to models, so it cannot use `{field}`, by which a provider may use others."
        raise PermissionDenied(message, param=field)


async def _forward(reserved: ReservedCall, route: Route) -> Response:
    """Send the call to the candidates in order until one responds."""
    failures: list[Failure] = []
    for candidate in route.candidates:
        try:
            response = await _forward_to(reserved, candidate)
        except AttemptFailed as problem:
            failures.append(problem.failure)
            reserved.record_failure(candidate, problem.failure)
            if not problem.failure.allows_failover:
                break
        else:
            reserved.gateway.health.record_success(candidate.provider.slug, candidate.model.upstream)
            return response
    raise caller_error(failures, forced=route.forced, is_only=len(route.candidates) == 1)


async def _forward_to(reserved: ReservedCall, candidate: Candidate) -> Response:
    """Send the call to one candidate, until the process stops or the caller disconnects.

    A caller who disconnects before the response pays for the prompt: what the provider has written by then, and will
    bill, is not known.
    """
    gateway = reserved.gateway
    forward = _forward_stream if reserved.chat.stream else _forward_whole
    line = reserved.reservation.call.line
    is_begun = False
    try:
        with gateway.interrupts.allowed(line), AttemptWatch(gateway.metrics, gateway.clock, candidate, "chat") as watch:
            is_begun = True
            return await forward(reserved, candidate, watch)
    except CallerGone:
        bill = make_bill(candidate.model, estimated_usage(reserved.chat)) if is_begun else None
        reserved.settle("cancelled", candidate=candidate, bill=bill, problem=Cancelled(_DISCONNECTED))
        raise
    except ProcessStopped:
        raise _process_stopped() from None


def _process_stopped() -> Problem:
    problem = Unavailable("The gateway was stopped before the response was complete.")
    problem.should_retry = False
    return problem


def _provider_api(reserved: ReservedCall, candidate: Candidate) -> ProviderApi:
    """The API in which the candidate is called."""
    chat = reserved.chat
    if chat.responses and passes_through(chat, candidate.model):
        return ResponsesApi(chat, chat.responses, candidate)
    return CompletionsApi(chat, candidate, reserved.form, reserved.gateway.clock)


# ------------------------------------------------------------------------------------------------------ whole responses


async def _forward_whole(reserved: ReservedCall, candidate: Candidate, watch: AttemptWatch) -> Response:
    """Send the call and return the provider's body, which changes only where it has not the documented shape."""
    gateway = reserved.gateway
    api = _provider_api(reserved, candidate)
    reply = await gateway.upstream.send_chat(
        api.candidate,
        api.body(gateway.settings.chat_output_tokens),
        gateway.settings.upstream_seconds,
        for_org=reserved.reservation.call.caller.org_id,
        size_bytes=reserved.reservation.call.size_bytes,
    )
    try:
        body, bill = await run_aside(len(reply.body), _read_whole, reserved, candidate, api, bytes(reply.body))
    except TooComplex as problem:
        raise _unreadable(candidate, f"returned a response that is too long: it {problem}") from None
    except MALFORMED:
        raise _unreadable(candidate, "returned a malformed response") from None
    watch.note_tokens(bill.tokens)
    reserved.settle("completed", candidate=candidate, bill=bill, response_bytes=len(body), response=body)
    return Response(body=body, headers=executed_model_header(candidate))


def _unreadable(candidate: Candidate, what: str) -> AttemptFailed:
    return AttemptFailed(Failure("unreadable", f"{candidate.provider.name} {what}."))


def _read_whole(reserved: ReservedCall, candidate: Candidate, api: ProviderApi, body: bytes) -> tuple[bytes, Bill]:
    """The body for the caller and the bill, from a provider's response. Raises AttemptFailed for an error in it, and if
    nothing was written, or a MALFORMED; what the provider bills for a response that cannot be used is a loss.
    """
    outline = json_outline.outline(body)
    found = api.read(outline.json)
    if found.error:
        raise AttemptFailed(failure_in_body(candidate, outline.fill(found.error)))
    usage = found.usage
    if found.is_empty:
        if usage is not None:
            reserved.losses.append(make_bill(candidate.model, usage).cost)
        raise _unreadable(candidate, "returned an empty response")
    usage = usage or estimated_usage(reserved.chat, output_bytes=len(body))
    bill = make_bill(candidate.model, usage)
    try:
        return outline.fill(api.whole(outline.json, usage, bill.cost)), bill
    except MALFORMED:
        reserved.losses.append(bill.cost)
        raise


# -------------------------------------------------------------------------------------------------------------- streams


async def _forward_stream(reserved: ReservedCall, candidate: Candidate, watch: AttemptWatch) -> Response:
    """Send the call and return a response that streams.

    This waits for the first event, because until then the call can still go to another provider.
    """
    gateway = reserved.gateway
    api = _provider_api(reserved, candidate)
    relay = api.relay()
    times = WaitingTimes(gateway.clock, gateway.settings.stream_seconds)
    source = await gateway.upstream.stream_chat(
        api.candidate,
        api.body(gateway.settings.chat_output_tokens),
        idle_seconds=idle_seconds(candidate.provider, gateway.settings),
        total_seconds=2 * (gateway.settings.stream_seconds + _EXTRA_SECONDS),  # `times` ends it before
        for_org=reserved.reservation.call.caller.org_id,
        size_bytes=reserved.reservation.call.size_bytes,
    )
    try:
        first = b""
        while not first and not relay.done:
            with provider_wait():
                data = await anext(source)
            first = await run_aside(relay.kept_bytes + len(data), translated, relay.feed, data)
            times.end_wait_for_provider()
    except (StopAsyncIteration, StreamBroken, MaybeSent, NotSent, ProviderTooSlow) as problem:
        await source.aclose()
        if isinstance(problem, StreamBroken) and problem.event:
            raise AttemptFailed(failure_in_body(candidate, problem.event)) from None
        raise _unreadable(candidate, "did not return a stream") from problem
    except BaseException:
        await source.aclose()
        raise
    watch.note_first_byte()
    watch.keep_open()
    events = _relay_events(reserved, candidate, _Stream(api, source, relay, times, watch), first)
    headers = {**_STREAM_HEADERS, **executed_model_header(candidate)}
    return Response(chunks=events, headers=headers, media_type="text/event-stream")


class _Stream(msgspec.Struct, frozen=True):
    """A provider's stream that has begun."""

    api: ProviderApi
    source: ByteStream
    relay: StreamRelay
    times: WaitingTimes
    watch: AttemptWatch

    async def feed(self, data: bytes) -> bytes:
        """The bytes for the caller that are complete with these of the provider; a long event is read in a thread."""
        return await run_aside(self.relay.kept_bytes + len(data), translated, self._translate, data)

    def _translate(self, data: bytes) -> bytes:
        events = self.relay.feed(data)
        return self.api.feed(events) if events else b""


async def _relay_events(
    reserved: ReservedCall, candidate: Candidate, stream: _Stream, first: bytes
) -> AsyncIterator[bytes]:
    """Yield the events of a stream; settle the call and close the connection however the stream ends.

    A stream that the provider breaks off, or that cannot be read, ends with an error event and costs nothing; what was
    received is a loss. The same holds for a stream that is interrupted because the process stops. A caller who
    disconnects or reads too slowly pays for what was sent.
    """
    relay, api = stream.relay, stream.api
    problem: Problem | None = Cancelled(_DISCONNECTED)
    sent = SentBytes(stores=reserved.stores_payload)
    bill: Bill | None = None
    try:
        try:
            yield sent.count(translated(api.feed, first))
            stream.times.end_wait_for_caller()
            with reserved.gateway.interrupts.allowed(CallerLine()):  # the server notices when the caller disconnects
                async for data in stream.source:
                    stream.times.end_wait_for_provider()
                    if shown := await stream.feed(data):
                        yield sent.count(shown)
                        stream.times.end_wait_for_caller()
                    if relay.done:
                        break
            if not relay.done:
                raise StreamBroken("ended its stream without [DONE]")
            problem = None
            usage = _stream_usage(reserved.chat, relay)
            bill = make_bill(candidate.model, usage)
            if last := await run_aside(sent.size, translated, api.finish, usage, bill.cost):
                yield sent.count(last)
        except (StreamBroken, MaybeSent, NotSent, ProviderTooSlow, CallerTooSlow, ProcessStopped) as error:
            problem = _stream_problem(reserved, candidate, stream, error)
            yield api.fail(problem)
    finally:
        try:
            if isinstance(problem, Cancelled) and relay.is_answered and relay.usage is None:
                await read_end(stream.source, stream.feed)
        finally:
            bill = bill or make_bill(candidate.model, _stream_usage(reserved.chat, relay))
            _settle_stream(reserved, candidate, bill, problem, sent)
        if isinstance(problem, Cancelled | Unavailable):
            stream.watch.fail(INTERRUPTED)
        stream.watch.note_tokens(bill.tokens)
        stream.watch.end()
        await stream.source.aclose()


def _stream_problem(reserved: ReservedCall, candidate: Candidate, stream: _Stream, error: Exception) -> Problem:
    """Return why a stream was not passed on as a whole; a failure of the provider is counted against it."""
    provider = candidate.provider
    seconds = f"{stream.times.max_seconds:g} seconds"
    match error:
        case CallerTooSlow():
            return Cancelled(f"The caller took longer than {seconds} to read its stream.")
        case ProcessStopped():
            return _process_stopped()
        case ProviderTooSlow():
            problem: Problem = UpstreamTimeout(f"{provider.name} took longer than {seconds} for its stream.")
        case StreamBroken():
            problem = UpstreamError(f"{provider.name} {_describe(reserved.gateway, candidate, error)}.")
        case _:
            problem = UpstreamError(f"{provider.name} closed the connection before the end of its stream.")
    stream.watch.fail("broken")
    reserved.record_failure(candidate, Failure("broken", problem.message))
    return problem


def _settle_stream(
    reserved: ReservedCall, candidate: Candidate, bill: Bill, problem: Problem | None, sent: SentBytes
) -> None:
    """Charge what was sent of a stream, or record it as a loss if its caller is not to blame for the problem."""
    if isinstance(problem, Cancelled) and reserved.gateway.interrupts.is_stopped:
        problem = _process_stopped()  # which did not come to be sent, because the caller did not read
    is_charged = problem is None or isinstance(problem, Cancelled)
    if not is_charged:
        reserved.losses.append(bill.cost)
    is_cancelled = isinstance(problem, Cancelled | Unavailable)
    reserved.settle(
        "completed" if problem is None else "cancelled" if is_cancelled else "upstream_failure",
        candidate=candidate,
        bill=bill if is_charged else None,
        response_bytes=sent.size,
        response=bytes(sent.stored),
        problem=problem,
    )


def _describe(gateway: Gateway, candidate: Candidate, broken: StreamBroken) -> str:
    """Return what was wrong with a stream, with the provider's own message if it sent an error."""
    if not broken.event:
        return str(broken)
    message = failure_in_body(candidate, broken.event).message
    return f"{broken}: {message.rstrip('.')}"


def _stream_usage(chat: ChatRequest, relay: StreamRelay) -> Usage:
    """Return the usage of what was sent; where the provider reports none, the least that it can be."""
    return relay.usage or estimated_usage(chat, output_tokens=relay.least_tokens)
