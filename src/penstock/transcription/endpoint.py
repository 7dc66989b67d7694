"""Handle a call of transcription or translation: check it, measure its sound, reserve, ask the candidates, settle."""

from functools import partial

import msgspec

from penstock.accounts.labels import call_labels
from penstock.accounts.limits import check_model
from penstock.chat.failover import first_response
from penstock.chat.reserved import ReservedCall, reserve
from penstock.chat.streamed_call import STREAM_HEADERS, caller_disconnected, process_stopped
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.generations import respond
from penstock.interrupts import CallerGone, ProcessStopped
from penstock.models.preferences import NO_PREFERENCES, read_preferences
from penstock.models.routing import Choice, Costs
from penstock.net.guard import egress_rules
from penstock.providers.spec import Model
from penstock.schema import MODALITY, Call, Request, Response
from penstock.telemetry.tracing import span
from penstock.transcription import forms
from penstock.transcription.listening import Listening
from penstock.transcription.plan import ListenPlan, NoTimes, detail_of, make_plan, transcription_of
from penstock.transcription.pricing import billed_seconds, max_cost, quote
from penstock.transcription.request import ListenRequest, ListenTask, read_request
from penstock.transcription.segments import segments_of
from penstock.transcription.sound import PreparedSound, prepare_sound
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed
from penstock.upstream.watch import AttemptWatch
from penstock.values import Nanos, dollars

TASK: ListenTask = "transcription"  # of the records; a translation is one, too


class _Planned(msgspec.Struct, frozen=True):
    """A call, its sound, its candidates in order, and what each of them is asked for."""

    request: ListenRequest
    sound: PreparedSound
    choice: Choice
    plans: dict[int, ListenPlan]  # by the identity of a candidate's model

    @property
    def seconds(self) -> list[float]:
        return [part.seconds for part in self.sound.parts]

    @property
    def prompt(self) -> str:
        return str(self.request.values.get("prompt", ""))

    def most(self, candidate: Candidate) -> Nanos:
        return max_cost(candidate.model, self.seconds, self.prompt)


async def transcribe(gateway: Gateway, call: Call) -> Response:
    """Return what is said in a sound."""
    return await _listen(gateway, call, "transcription")


async def translate(gateway: Gateway, call: Call) -> Response:
    """Return what is said in a sound, in English."""
    return await _listen(gateway, call, "translation")


async def _listen(gateway: Gateway, call: Call, task: ListenTask) -> Response:
    """Return the transcript of the first provider that gives one; raise the problem if none does."""
    with span("validate"):
        request = read_request(call, task, egress_rules(gateway.settings))
        check_model(call.caller, request.model, gateway.catalog.public_id(request.model))
        labels = call_labels(call, request.written.get("labels"))
        planned = await _plan(gateway, call, request)
    if call.dry_run:
        return _estimate(planned)
    if labels:
        labels = await gateway.label_values.limited(call.caller.org_id, labels)
    amount = Nanos(max(planned.most(candidate) for candidate in planned.choice.route.candidates))
    recorded = Request(task=TASK, model=request.model, values=request.records, labels=labels)
    reserved = ReservedCall(
        gateway, await reserve(gateway, _kept_call(call, request), recorded, amount, MODALITY[TASK])
    )
    return await first_response(reserved, planned.choice.route, partial(_ask, reserved, planned))


def _kept_call(call: Call, request: ListenRequest) -> Call:
    """The call as it is stored and logged, where the settings ask for it: without the sound."""
    fields = dict(request.written)
    return msgspec.structs.replace(call, body=msgspec.json.encode(fields), json=fields, form=())


async def _plan(gateway: Gateway, call: Call, request: ListenRequest) -> _Planned:
    """The candidates that can serve the call, and its sound in parts that each of them takes. Raises InvalidRequest."""
    route = gateway.routing.route(request.model, (request.task,))
    plans: dict[int, ListenPlan] = {}

    def check(model: Model) -> None:
        plans[id(model)] = make_plan(model, request)

    written = request.preferences
    preferences = NO_PREFERENCES if written is None else read_preferences(written, TASK)
    try:
        choice = await gateway.routing.choose(route, check, preferences, task=TASK, org_id=call.caller.org_id)
    except NoTimes as problem:
        raise _with_other_models(gateway, call, request, problem) from None
    specs = [transcription_of(candidate.model) for candidate in choice.route.candidates]
    sound = await prepare_sound(
        gateway,
        call,
        request,
        part_bytes=min(spec.max_bytes for spec in specs),
        part_seconds=min(spec.max_seconds for spec in specs),
    )
    planned = _Planned(request, sound, choice, plans)
    if written is None:
        return planned
    return msgspec.structs.replace(planned, choice=choice.in_preferred_order(lambda each: _costs(planned, each)))


def _costs(planned: _Planned, candidate: Candidate) -> Costs | None:
    """What a call may cost at most in dollars, by the names of `max_price`; None if the price is not known."""
    return {"request": dollars(planned.most(candidate))} if candidate.model.prices else None


def _with_other_models(gateway: Gateway, call: Call, request: ListenRequest, problem: NoTimes) -> InvalidRequest:
    """The refusal of a model that gives no times, with the names of models that do."""
    names = [
        model
        for model in gateway.catalog.listed_ids((request.task,))
        if call.caller.may_use(model) and _gives_times(gateway, model, request)
    ]
    more = f" These do: {', '.join(f'`{name}`' for name in names[:10])}." if names else ""
    return InvalidRequest(problem.message + more, param=problem.param)


def _gives_times(gateway: Gateway, model: str, request: ListenRequest) -> bool:
    for candidate in gateway.catalog.serving(model):
        if candidate.model.op.task == request.task:
            try:
                detail_of(candidate.model, request)
            except NoTimes:
                continue
            return True
    return False


def _estimate(planned: _Planned) -> Response:
    """The response to a dry run."""
    choice = planned.choice
    tried = [
        respond.tried_candidate(candidate, planned.most(candidate), choice.reason(candidate))
        for candidate in choice.route.candidates
    ]
    first = choice.route.first
    found = quote(first.model, planned.seconds, planned.prompt)
    return respond.estimate(planned.request.model, first.provider.slug, found, tried, choice.route.left_out)


async def _ask(reserved: ReservedCall, planned: _Planned, candidate: Candidate) -> Response:
    """Have one candidate listen, until the process stops or the caller disconnects; then the caller pays for what the
    provider was sent.
    """
    gateway = reserved.gateway
    call = reserved.reservation.call
    plan = planned.plans[id(candidate.model)]
    listening = Listening(gateway, candidate, plan, planned.sound, call.caller.org_id)
    try:
        with (
            gateway.interrupts.allowed(call.line),
            AttemptWatch(gateway.metrics, gateway.clock, candidate, TASK) as watch,
        ):
            transcript = await listening.transcript()
            watch.note_tokens(listening.bill().tokens)
    except AttemptFailed as problem:
        if loss := listening.loss(problem.failure):
            reserved.losses.append(loss)
        raise
    except CallerGone:
        reserved.settle("cancelled", candidate=candidate, bill=listening.bill(), problem=caller_disconnected())
        raise
    except ProcessStopped:
        raise process_stopped() from None
    request = planned.request
    if request.detail != "text":
        transcript = msgspec.structs.replace(transcript, segments=segments_of(transcript))
    bill = listening.bill()
    usage = forms.usage_object(bill.tokens, billed_seconds(candidate.model, listening.seconds))
    body = (
        forms.events(request, transcript, usage)
        if request.stream
        else forms.whole(request, transcript, planned.sound.seconds, usage)
    )
    reserved.settle("completed", candidate=candidate, bill=bill, response_bytes=len(body), response=body)
    charged = Nanos(min(bill.cost, reserved.reservation.amount))
    headers = {**candidate.executed_model_header, "x-service-cost": respond.usd_text(charged)}
    return Response(
        body=body,
        headers={**STREAM_HEADERS, **headers} if request.stream else headers,
        media_type=forms.media_type(request.form, stream=request.stream),
    )
