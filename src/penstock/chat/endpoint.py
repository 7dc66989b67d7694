"""Handle a chat call: check it, reserve its cost, forward it, pass the response on, settle."""

from functools import partial

from penstock.accounts.labels import call_labels
from penstock.accounts.limits import check_model
from penstock.accounts.response_items import ResponseItem
from penstock.chat.candidates import estimate, route_chat
from penstock.chat.failover import first_response
from penstock.chat.form import ChatForm, ResponseForm
from penstock.chat.guarded import TASK, check_answer, check_call, readers
from penstock.chat.images import inline_images
from penstock.chat.kept_items import items_of
from penstock.chat.pass_through import ResponsesApi
from penstock.chat.pricing import Bill, estimated_usage, make_bill, max_cost, max_sound_tokens
from penstock.chat.provider_api import CompletionsApi, ProviderApi
from penstock.chat.provider_body import passes_through
from penstock.chat.replay import plan_replay, replay_chat, with_source
from penstock.chat.request import ChatRequest, read_chat_request
from penstock.chat.reserved import ReservedChat, reserve
from penstock.chat.responses_request import ResponsesRequest
from penstock.chat.sounds import measured_sounds
from penstock.chat.streamed_call import caller_disconnected, forward_stream, held_back, process_stopped
from penstock.chat.written import spoken_seconds, whole_text_bytes
from penstock.errors import PermissionDenied
from penstock.event_loop import LONG_BYTES, run_aside
from penstock.gateway import Gateway
from penstock.generations.plan import drilled_route
from penstock.interrupts import CallerGone, ProcessStopped
from penstock.long_bodies import json_outline
from penstock.long_bodies.long_body import LongBody
from penstock.long_bodies.long_texts import TooComplex
from penstock.schema import Call, Caller, Request, Response
from penstock.telemetry.tracing import span
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure, failure_in_body
from penstock.upstream.faults import HEADER
from penstock.upstream.replies import MALFORMED, without_plain_key
from penstock.upstream.watch import AttemptWatch

_CHAT_FORM = ChatForm()
# Fields by which routers are told to use other models than the one that is named, when that one fails.
_OTHER_MODELS = ("models", "fallbacks", "route", "preset")


async def complete_chat(
    gateway: Gateway, call: Call, form: ResponseForm = _CHAT_FORM, responses: ResponsesRequest | None = None
) -> Response:
    """Return the response of the first provider that answers, or a stream of it, in this form; raise the problem if
    none does. With `responses`, providers that speak the Responses API get this request in place of the chat call.
    """
    with span("validate"):
        read = partial(read_chat_request, call, gateway.settings, responses)
        chat = read() if call.size_bytes <= LONG_BYTES else await run_aside(call.size_bytes, read)
        if call.caller.models is not None:
            check_models(gateway, call.caller, chat)
        if chat.sounds:
            chat = await measured_sounds(gateway, chat, call.caller.org_id)
        labels = call_labels(call, chat.body.get("labels"))
        replay = await plan_replay(gateway, call, chat)
        is_mock = replay is not None and replay.status == "mocked"
        routed = None if replay and replay.found else await route_chat(gateway, call, chat, is_mock=is_mock)
    if call.dry_run and routed:
        guards = gateway.guards.reading(TASK, call.caller.org_id, is_stream=chat.stream)
        return estimate(gateway, routed, guards)
    if labels:
        labels = await gateway.label_values.limited(call.caller.org_id, labels)
    values = {}
    for name in ("user", "session_id"):
        if value := chat.body.get(name):
            values[name] = value
    request = Request(
        task=TASK,
        model=routed.chat.model if routed else chat.model,
        values=values,
        labels=labels,
        drill=call.headers.get(HEADER, ""),
    )
    await check_call(gateway, call, chat, labels)
    if replay and not routed:
        return await replay_chat(gateway, call, chat, form, request, replay)
    assert routed is not None, "it is not replayed"
    chat = routed.chat
    route = drilled_route(gateway, call, request, routed.route)
    output_tokens = gateway.settings.chat_output_tokens
    if chat.images:
        chat = await inline_images(
            chat, route, gateway.media_transfer, call.caller.org_id, max_bytes=gateway.settings.json_bytes
        )
    priced = {id(candidate.model): candidate for candidate in route.candidates}  # once for accounts of the same model
    amount = max(max_cost(candidate.token_prices, chat, output_tokens) for candidate in priced.values())
    modality = "vision" if chat.images else None
    reserved = ReservedChat(gateway, await reserve(gateway, call, request, amount, modality), chat=chat, form=form)
    response = await first_response(reserved, route, partial(ask, reserved))
    if response.chunks is not None and readers(gateway, call, chat):
        response = await held_back(reserved, response)
    return await with_source(gateway, call, replay, response) if replay else response


def check_models(gateway: Gateway, caller: Caller, chat: ChatRequest) -> None:
    """Raise PermissionDenied if the key may not use the model, or the call names others that a router may use."""
    check_model(caller, chat.model, gateway.catalog.public_id(chat.model.removeprefix("router/")))
    if field := next((name for name in _OTHER_MODELS if name in chat.extras), None):
        message = f"This key is limited to models, so it cannot use `{field}`, by which a provider may use others."
        raise PermissionDenied(message, param=field)


async def ask(reserved: ReservedChat, candidate: Candidate) -> Response:
    """Send the call to one candidate, until the process stops or the caller disconnects.

    A caller who disconnects before the response pays for the prompt: what the provider has written by then, and will
    bill, is not known.
    """
    gateway = reserved.gateway
    api = _provider_api(reserved, candidate)
    forward = forward_stream if reserved.chat.stream else _forward_whole
    line = reserved.reservation.call.line
    is_begun = False
    try:
        with gateway.interrupts.allowed(line), AttemptWatch(gateway.metrics, gateway.clock, candidate, "chat") as watch:
            is_begun = True
            if watch.span.is_recorded:
                watch.span.set("penstock.request.id", reserved.reservation.call.id)
                watch.note_request(reserved.chat.body)
            return await forward(reserved, candidate, api, watch)
    except CallerGone:
        prices = candidate.token_prices
        bill = make_bill(prices, estimated_usage(reserved.chat, prices)) if is_begun else None
        reserved.settle("cancelled", candidate=candidate, bill=bill, problem=caller_disconnected())
        raise
    except ProcessStopped:
        raise process_stopped() from None


def _provider_api(reserved: ReservedChat, candidate: Candidate) -> ProviderApi:
    """The API in which the candidate is called."""
    chat = reserved.chat
    if chat.responses and passes_through(chat, candidate.model):
        return ResponsesApi(chat, chat.responses, candidate)
    return CompletionsApi(chat, candidate, reserved.form, reserved.gateway.clock)


# ------------------------------------------------------------------------------------------------------ whole responses


async def _forward_whole(
    reserved: ReservedChat, candidate: Candidate, api: ProviderApi, watch: AttemptWatch
) -> Response:
    """Send the call and return the provider's body, which changes only where it has not the documented shape."""
    gateway = reserved.gateway
    reply = await gateway.upstream.send_chat(
        api.candidate,
        api.body(gateway.settings.chat_output_tokens),
        gateway.settings.upstream_seconds,
        for_org=reserved.reservation.call.caller.org_id,
        size_bytes=reserved.chat.size_bytes,
    )
    return await pass_on(reserved, candidate, api, watch, reply.body)


async def pass_on(
    reserved: ReservedChat, candidate: Candidate, api: ProviderApi, watch: AttemptWatch, answer: bytes | bytearray
) -> Response:
    """Settle a call with a whole answer of the provider, and return what its caller gets of it."""
    try:
        read = partial(_read_whole, reserved, candidate, api, watch, answer)
        body, bill, items = read() if len(answer) <= LONG_BYTES else await run_aside(len(answer), read)
    except TooComplex as problem:
        raise _unreadable(candidate, f"returned a response that is too long: it {problem}") from None
    except MALFORMED:
        raise _unreadable(candidate, "returned a malformed response") from None
    watch.note_tokens(bill.tokens)
    await check_answer(reserved, body, bill, candidate)
    reserved.settle("completed", candidate=candidate, bill=bill, response_bytes=len(body), response=body, items=items)
    whole = body if isinstance(body, bytes) else LongBody([body])
    return Response(body=whole, headers=candidate.executed_model_header)


def _unreadable(candidate: Candidate, what: str) -> AttemptFailed:
    return AttemptFailed(Failure("unreadable", f"{candidate.provider.name} {what}."))


def _read_whole(
    reserved: ReservedChat, candidate: Candidate, api: ProviderApi, watch: AttemptWatch, body: bytes | bytearray
) -> tuple[bytes | bytearray, Bill, list[ResponseItem]]:
    """The body for the caller, the bill and the items to keep, from a provider's response.

    Raises AttemptFailed for an error in it, and if nothing was written, or a MALFORMED; what the provider bills for a
    response that cannot be used is a loss.
    """
    outline = json_outline.outline(body)
    found = api.read(outline.json)
    if found.error:
        raise AttemptFailed(failure_in_body(candidate, outline.fill(found.error)))
    watch.note_answer(found.answered)
    prices = candidate.token_prices
    sound_tokens = max_sound_tokens(prices, reserved.chat)
    usage = found.usage
    if usage is not None and not candidate.in_batch:
        reserved.gateway.reasoning_rates.note(
            (candidate.provider.slug, candidate.model.upstream),
            output_tokens=usage.output,
            reasoning_tokens=usage.reasoning,
            seconds=watch.seconds,
        )
    if found.is_empty:
        if usage is not None:
            reserved.losses.append(make_bill(prices, usage, sound_tokens).cost)
        raise _unreadable(candidate, "returned an empty response")
    usage = usage or estimated_usage(
        reserved.chat, prices, output_bytes=whole_text_bytes(body), spoken_seconds=spoken_seconds(body)
    )
    bill = make_bill(prices, usage, sound_tokens)
    try:
        shown = without_plain_key(outline.fill(api.whole(outline.json, usage, bill.cost)), candidate.key)
        return shown, bill, items_of(shown) if reserved.keeps_items else []
    except MALFORMED:
        reserved.losses.append(bill.cost)
        raise
