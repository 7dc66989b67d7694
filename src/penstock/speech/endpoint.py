"""Handle a call of speech: check it, reserve its cost, ask the candidates in order, pass the sound on, settle."""

from functools import partial

import msgspec

from penstock.accounts.labels import call_labels
from penstock.accounts.limits import check_model
from penstock.chat.failover import first_response
from penstock.chat.guarded import asked_of
from penstock.chat.replay import CallReplay
from penstock.chat.reserved import ReservedCall, reserve
from penstock.chat.streamed_call import caller_disconnected, process_stopped
from penstock.gateway import Gateway
from penstock.generations import respond
from penstock.generations.kept import kept_replay
from penstock.generations.plan import drilled_route
from penstock.guards.texts import joined
from penstock.interrupts import CallerGone, ProcessStopped
from penstock.models.preferences import NO_PREFERENCES, read_preferences
from penstock.models.routing import Choice, Costs, Route
from penstock.providers.spec import Model
from penstock.recordings.recordings import recording_id
from penstock.schema import Call, Request, Response
from penstock.speech.kept import keep_speech, read_kept
from penstock.speech.made_sound import is_sound, make_sound
from penstock.speech.mock import for_mock, mock_speech, speech_replay, with_replay_header
from penstock.speech.plan import SpeechPlan, make_plan
from penstock.speech.pricing import max_cost, quote
from penstock.speech.provider_sound import ProviderSound
from penstock.speech.reference import note_imitation, read_reference, without_sound
from penstock.speech.replay import DelayedSound, RecordedSound, SoundOnRecord, find_speech, recorded_voice
from penstock.speech.request import SpeechRequest, read_speech_request
from penstock.speech.streamed_speech import Speaking, speak
from penstock.telemetry.metrics import Metrics
from penstock.telemetry.tracing import span
from penstock.upstream.candidate import Candidate
from penstock.upstream.faults import HEADER
from penstock.upstream.watch import AttemptWatch
from penstock.values import Nanos, dollars

_TASK = "speech"
MODALITY = "speech"


class _Planned(msgspec.Struct, frozen=True):
    """A call, its candidates in order, and what each of them would be asked for."""

    request: SpeechRequest
    route: Route
    plans: dict[int, SpeechPlan]  # by the identity of a candidate's model
    choice: Choice | None = None  # None for a replay
    replay: CallReplay | None = None
    status: str | None = None  # how a call with a replay mode is answered

    def plan(self, candidate: Candidate) -> SpeechPlan:
        return self.plans[id(candidate.model)]

    def most(self, candidate: Candidate) -> Nanos:
        return max_cost(self.plan(candidate), self.request.speed)


async def create_speech(gateway: Gateway, call: Call) -> Response:
    """Return the sound of the first provider that speaks, while it arrives; raise the problem if none does."""
    if is_sound(gateway, call.json):
        return await make_sound(gateway, call)
    with span("validate"):
        request = read_speech_request(call)
        check_model(call.caller, request.model, gateway.catalog.public_id(request.model))
        kept = read_kept(gateway, call, request)
        reference = await read_reference(gateway, call, request.written_reference, is_kept=kept is not None)
        request = msgspec.structs.replace(request, reference=reference)
        call = without_sound(call, reference)
        labels = call_labels(call, call.json.get("labels"))
        planned = await _plan(gateway, call, request, is_kept=kept is not None)
    if call.dry_run:
        return _estimate(planned)
    if kept and planned.choice:
        holds = [planned.most(candidate) for candidate in planned.route.candidates]
        if planned.status == "mocked":
            kept = msgspec.structs.replace(kept, request=for_mock(kept.request))
        return with_replay_header(await keep_speech(gateway, call, kept, planned.choice, holds), planned.status)
    if labels:
        labels = await gateway.label_values.limited(call.caller.org_id, labels)
    said = request.reference.text if request.reference else None
    directions = [turn.instructions for turn in request.turns]
    text = joined(request.text, request.values.get("instructions"), directions, said, request.extras)
    user = request.records.get("user")
    await gateway.guards.check(asked_of(call), _TASK, request.model, text, labels=labels, user=user)
    if planned.request.reference and planned.status != "replayed":
        await note_imitation(gateway, call, request.model, planned.request.reference)
    amount = Nanos(max(planned.most(candidate) for candidate in planned.route.candidates))
    drill = call.headers.get(HEADER, "")
    recorded = Request(task=_TASK, model=request.model, values=request.records, labels=labels, drill=drill)
    reserved = ReservedCall(gateway, await reserve(gateway, call, recorded, amount, MODALITY))
    route = drilled_route(gateway, call, recorded, planned.route)
    response = await first_response(reserved, route, partial(_ask, reserved, planned))
    return with_replay_header(response, planned.status, _recording_of(call, planned))


def _recording_of(call: Call, planned: _Planned) -> str | None:
    """The recording that the response names: the one that is replayed, or is being made."""
    if planned.replay and planned.replay.found:
        return planned.replay.found.id
    return recording_id(call.id) if planned.status == "recorded" else None


async def _plan(gateway: Gateway, call: Call, request: SpeechRequest, *, is_kept: bool) -> _Planned:
    """The candidates that can serve the call, or the recording that does. Raises InvalidRequest if there are none."""
    options = speech_replay(call)
    status: str | None = None
    replay: CallReplay | None = None
    if options and is_kept:
        status = kept_replay(options, "Speech")
    elif options:
        replay = await find_speech(gateway, call, request, options)
        status = replay.status
        if replay.found:
            candidate, plan = recorded_voice(gateway, replay.found, request)
            return _Planned(request, Route((candidate,)), {id(candidate.model): plan}, replay=replay, status=status)
    if status == "mocked":
        request, route = mock_speech(gateway, request)
    else:
        route = gateway.routing.route(request.model, (_TASK,), call.caller.org_id)
    plans: dict[int, SpeechPlan] = {}

    def check(model: Model) -> None:
        plans[id(model)] = make_plan(model, request, is_recorded=status == "recorded")

    written = request.preferences
    preferences = NO_PREFERENCES if written is None else read_preferences(written, _TASK)
    choice = await gateway.routing.choose(route, check, preferences, task=_TASK, org_id=call.caller.org_id)
    planned = _Planned(request, choice.route, plans, choice, replay, status)
    if written is not None:
        choice = choice.in_preferred_order(lambda each: _costs(planned, each))
        planned = msgspec.structs.replace(planned, route=choice.route, choice=choice)
    return planned


def _costs(planned: _Planned, candidate: Candidate) -> Costs | None:
    """What a call may cost at most in dollars, by the names of `max_price`; None if the price is not known."""
    return {"request": dollars(planned.most(candidate))} if candidate.model.prices else None


def _estimate(planned: _Planned) -> Response:
    """The response to a dry run."""
    route = planned.route
    choice = planned.choice
    assert choice is not None, "a dry run has no replay options"
    tried = [
        respond.tried_candidate(candidate, planned.most(candidate), choice.reason(candidate))
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
    source = _source(gateway, call, planned, candidate, plan)
    metrics = Metrics() if planned.status == "replayed" else gateway.metrics  # no provider is called
    watch = AttemptWatch(metrics, gateway.clock, candidate, _TASK)
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


def _source(gateway: Gateway, call: Call, planned: _Planned, candidate: Candidate, plan: SpeechPlan) -> ProviderSound:
    """Where the sound comes from: the provider, the mock or a recording."""
    replay = planned.replay
    match planned.status:
        case "replayed" | "recorded" | "mocked" if replay is not None:
            kind = {"replayed": RecordedSound, "recorded": SoundOnRecord, "mocked": DelayedSound}[replay.status]
            return kind(gateway, candidate, plan, call, replay)
        case _:
            return ProviderSound(gateway, candidate, plan, call.caller.org_id)
