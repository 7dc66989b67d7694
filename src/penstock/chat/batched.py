"""Chat calls that go with a batch of a provider: which ones can, what they may cost, and how an answer ends them."""

from typing import Any

import msgspec

from penstock.accounts.chat_reservations import Reservation
from penstock.accounts.labels import call_labels, decode_labels
from penstock.accounts.request_records import RequestRow
from penstock.chat.candidates import route_chat, without_preferences
from penstock.chat.endpoint import ask, check_models, pass_on
from penstock.chat.failover import first_response
from penstock.chat.form import ChatForm
from penstock.chat.guarded import TASK, check_call
from penstock.chat.pricing import max_cost
from penstock.chat.provider_api import CompletionsApi
from penstock.chat.provider_body import provider_body
from penstock.chat.request import ChatRequest, read_chat_request
from penstock.chat.reserved import ReservedCall, ReservedChat
from penstock.errors import Problem, StorageUnavailable
from penstock.gateway import Gateway
from penstock.models.routing import Route
from penstock.schema import Call, Caller, Request, Response
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure
from penstock.upstream.watch import AttemptWatch
from penstock.values import Nanos


class BatchedChat(msgspec.Struct, frozen=True):
    """A chat call that can go with a batch of a provider."""

    call: Call
    chat: ChatRequest
    route: Route
    candidate: Candidate  # whose batch, with the prices of that
    request: Request
    amount: Nanos  # the most that it may cost, also if it is made alone in the end

    def estimate(self, default_output_tokens: int) -> Nanos:
        """The most that it costs in the batch."""
        return max_cost(self.candidate.token_prices, self.chat, default_output_tokens)


def may_batch(caller: Caller) -> bool:
    """Whether calls of a key can wait in batches: not if they are replayed, or only so many may run or begin."""
    return caller.replay_mode is None and caller.requests_per_minute is None and caller.concurrent_requests is None


async def batched_chat(gateway: Gateway, call: Call) -> BatchedChat | None:
    """Check a call; return what it is in a batch of the first of its candidates that has some, or None if none has.

    Calls with images or sounds are made alone. Raises the problem that the call alone would raise.
    """
    if not may_batch(call.caller):
        return None
    chat = read_chat_request(call, gateway.settings)
    if call.caller.models is not None:
        check_models(gateway, call.caller, chat)
    if chat.images or chat.sounds or chat.speaks or chat.stream:
        return None
    routed = await route_chat(gateway, call, chat)
    found = next(filter(None, (candidate.batched for candidate in routed.route.candidates)), None)
    if found is None:
        return None
    chat = routed.chat
    values = {name: chat.body[name] for name in ("user", "session_id") if chat.body.get(name)}
    request = Request(task=TASK, model=chat.model, values=values, labels=call_labels(call, chat.body.get("labels")))
    output_tokens = gateway.settings.chat_output_tokens
    costs = [max_cost(candidate.token_prices, chat, output_tokens) for candidate in (found, *routed.route.candidates)]
    return BatchedChat(call, chat, routed.route, found, request, max(costs))


async def admit(gateway: Gateway, batched: BatchedChat) -> BatchedChat:
    """Have the guards read a call before it is held for, and limit the values of its labels."""
    request = batched.request
    if request.labels:
        labels = await gateway.label_values.limited(batched.call.caller.org_id, request.labels)
        request = msgspec.structs.replace(request, labels=labels)
    await check_call(gateway, batched.call, batched.chat, request.labels)
    return msgspec.structs.replace(batched, request=request)


def provider_fields(gateway: Gateway, call: Call, candidate: Candidate) -> dict[str, Any]:
    """What the provider gets of an accepted call."""
    chat = without_preferences(read_chat_request(call, gateway.settings))
    return provider_body(chat, candidate.model, gateway.settings.chat_output_tokens)


async def end_batched(
    gateway: Gateway,
    call: Call,
    record: RequestRow,
    candidate: Candidate,
    answer: bytes | Failure,
    *,
    fails_over: bool,
) -> None:
    """End an accepted call, whose record is open, with its answer in the batch of this candidate. Without one it fails
    or, if it `fails_over`, is made alone. Then its record says how it ended.
    """
    reservation = _reservation(call, record)
    try:
        chat = read_chat_request(call, gateway.settings)
        others: tuple[Candidate, ...] = ()
        if fails_over and isinstance(answer, Failure) and answer.allows_failover:
            routed = await route_chat(gateway, call, chat)
            chat, others = routed.chat, routed.route.candidates
    except StorageUnavailable:
        raise
    except Problem as problem:  # the gateway has changed since it accepted the call
        ReservedCall(gateway, reservation).settle("upstream_failure", candidate=candidate, problem=problem)
        return
    reserved = ReservedChat(gateway, reservation, chat=chat, form=ChatForm())

    async def find_answer(candidate: Candidate) -> Response:
        if not candidate.in_batch:
            return await ask(reserved, candidate)
        with AttemptWatch(gateway.metrics, gateway.clock, candidate, TASK) as watch:
            if isinstance(answer, Failure):
                raise AttemptFailed(answer)
            api = CompletionsApi(chat, candidate, reserved.form, gateway.clock)
            return await pass_on(reserved, candidate, api, watch, answer)

    try:
        await first_response(reserved, Route((candidate, *others)), find_answer)
    except Problem as problem:
        if not problem.recorded:
            raise


def give_up_batched(gateway: Gateway, call: Call, record: RequestRow, status: str, problem: Problem) -> None:
    """End an accepted call that has no answer, and is not made alone. It costs nothing."""
    ReservedCall(gateway, _reservation(call, record)).settle(status, problem=problem)


def _reservation(call: Call, record: RequestRow) -> Reservation:
    """What is held for an accepted call, by its record."""
    request = Request(
        task=TASK, model=record.model or "", values={}, labels=decode_labels(record.labels), drill=record.drill or ""
    )
    return Reservation(call, request, Nanos(record.hold), None, in_store=True)
