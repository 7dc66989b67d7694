"""Handle a call of speech: check it, reserve its cost, ask the candidates in order, pass the sound on, settle."""

from functools import partial

import msgspec

from penstock.accounts.labels import call_labels
from penstock.accounts.limits import check_model
from penstock.chat.failover import first_response
from penstock.chat.reserved import ReservedCall, reserve
from penstock.chat.streamed_call import caller_disconnected, process_stopped
from penstock.gateway import Gateway
from penstock.generations import respond
from penstock.interrupts import CallerGone, ProcessStopped
from penstock.models.preferences import NO_PREFERENCES, read_preferences
from penstock.models.routing import Choice, Costs, Route
from penstock.providers.spec import Model
from penstock.schema import Call, Request, Response
from penstock.speech.kept import keep_speech, read_kept
from penstock.speech.mock import for_mock, mock_speech, speech_replay, with_replay_header
from penstock.speech.plan import SpeechPlan, make_plan
from penstock.speech.pricing import max_cost, quote
from penstock.speech.provider_sound import ProviderSound
from penstock.speech.request import SpeechRequest, read_speech_request
from penstock.speech.streamed_speech import Speaking, speak
from penstock.telemetry.tracing import span
from penstock.upstream.candidate import Candidate
from penstock.upstream.watch import AttemptWatch
from penstock.values import Nanos, dollars

_TASK = "speech"
MODALITY = "speech"


class _Planned(msgspec.Struct, frozen=True):
    """A call, its candidates in order, and what each of them would be asked for."""

    request: SpeechRequest
    choice: Choice
    plans: dict[int, SpeechPlan]  # by the identity of a candidate's model
    replay: str | None

    @property
    def route(self) -> Route:
        return self.choice.route

    def plan(self, candidate: Candidate) -> SpeechPlan:
        return self.plans[id(candidate.model)]

    def most(self, candidate: Candidate) -> Nanos:
        return max_cost(self.plan(candidate), self.request.speed)


async def create_speech(gateway: Gateway, call: Call) -> Response:
    """Return the sound of the first provider that speaks, while it arrives; raise the problem if none does."""
    with span("validate"):
        request = read_speech_request(call)
        check_model(call.caller, request.model, gateway.catalog.public_id(request.model))
        kept = read_kept(gateway, call, request)
        labels = call_labels(call, call.json.get("labels"))
        planned = await _plan(gateway, call, request)
    if call.dry_run:
        return _estimate(planned)
    if kept:
        holds = [planned.most(candidate) for candidate in planned.route.candidates]
        if planned.replay == "mocked":
            kept = msgspec.structs.replace(kept, request=for_mock(kept.request))
        return with_replay_header(await keep_speech(gateway, call, kept, planned.choice, holds), planned.replay)
    if labels:
        labels = await gateway.label_values.limited(call.caller.org_id, labels)
    amount = Nanos(max(planned.most(candidate) for candidate in planned.route.candidates))
    recorded = Request(task=_TASK, model=request.model, values=request.records, labels=labels)
    reserved = ReservedCall(gateway, await reserve(gateway, call, recorded, amount, MODALITY))
    response = await first_response(reserved, planned.route, partial(_ask, reserved, planned))
    return with_replay_header(response, planned.replay)


async def _plan(gateway: Gateway, call: Call, request: SpeechRequest) -> _Planned:
    """The candidates that can serve the call. Raises InvalidRequest if there are none."""
    replay = speech_replay(call)
    if replay == "mocked":
        request, route = mock_speech(gateway, request)
    else:
        route = gateway.routing.route(request.model, (_TASK,))
    plans: dict[int, SpeechPlan] = {}

    def check(model: Model) -> None:
        plans[id(model)] = make_plan(model, request)

    written = request.preferences
    preferences = NO_PREFERENCES if written is None else read_preferences(written, _TASK)
    choice = await gateway.routing.choose(route, check, preferences, task=_TASK, org_id=call.caller.org_id)
    planned = _Planned(request, choice, plans, replay)
    if written is not None:
        planned = msgspec.structs.replace(planned, choice=choice.in_preferred_order(lambda each: _costs(planned, each)))
    return planned


def _costs(planned: _Planned, candidate: Candidate) -> Costs | None:
    """What a call may cost at most in dollars, by the names of `max_price`; None if the price is not known."""
    return {"request": dollars(planned.most(candidate))} if candidate.model.prices else None


def _estimate(planned: _Planned) -> Response:
    """The response to a dry run."""
    route = planned.route
    tried = [
        respond.tried_candidate(candidate, planned.most(candidate), planned.choice.reason(candidate))
        for candidate in route.candidates
    ]
    found = quote(planned.plan(route.first), planned.request.speed)
    return respond.estimate(planned.request.model, route.first.provider.slug, found, tried, route.left_out)


async def _ask(reserved: ReservedCall, planned: _Planned, candidate: Candidate) -> Response:
    """Ask one candidate, until the process stops or the caller disconnects. A caller who disconnects before the first
    sound pays for the text that the provider was sent.
    """
    gateway = reserved.gateway
    call = reserved.reservation.call
    plan = planned.plan(candidate)
    source = ProviderSound(gateway, candidate, plan, call.caller.org_id)
    watch = AttemptWatch(gateway.metrics, gateway.clock, candidate, _TASK)
    speaking = Speaking(reserved, planned.request, candidate, plan, source, watch)
    try:
        with gateway.interrupts.allowed(call.line), watch:
            return await speak(speaking)
    except CallerGone:
        bill = speaking.bill(is_whole=False)
        reserved.settle("cancelled", candidate=candidate, bill=bill, problem=caller_disconnected())
        raise
    except ProcessStopped:
        raise process_stopped() from None
