"""Handle a call of transcription or translation: check it, measure its sound, reserve, ask the candidates, settle."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from penstock.accounts.labels import call_labels
from penstock.accounts.limits import check_model
from penstock.chat.failover import first_response
from penstock.chat.guarded import asked_of
from penstock.chat.repeats import answer_once
from penstock.chat.replay import CallReplay
from penstock.chat.reserved import ReservedCall, reserve
from penstock.chat.streamed_call import STREAM_HEADERS, caller_disconnected, process_stopped
from penstock.errors import Problem
from penstock.gateway import Gateway
from penstock.generations import respond
from penstock.generations.kept import asks_for_file
from penstock.generations.plan import drilled_route
from penstock.interrupts import CallerGone, ProcessStopped
from penstock.net.checked_urls import egress_rules
from penstock.schema import MODALITY, Call, Request, Response
from penstock.telemetry.tracing import span
from penstock.transcription import forms
from penstock.transcription.kept import keep_transcript
from penstock.transcription.listening import Listening
from penstock.transcription.mock import for_mock
from penstock.transcription.planned import TASK, Planned, estimate, plan_call
from penstock.transcription.pricing import billed_seconds
from penstock.transcription.replay import answered, check_transcript, find_transcript, listen_replay, replay_transcript
from penstock.transcription.request import ListenRequest, ListenTask, read_request
from penstock.transcription.segments import shown
from penstock.transcription.sound import ANY_PART, prepare_sound
from penstock.transcription.speakers import REFERENCES, remade_sounds
from penstock.transcription.streamed_transcript import is_streamed_by, stream_transcript
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed
from penstock.upstream.faults import HEADER
from penstock.upstream.watch import AttemptWatch
from penstock.values import ZERO, Nanos

_FORM = "response_format"


async def transcribe(gateway: Gateway, call: Call) -> Response:
    """Return what is said in a sound."""
    return await _listen_once(gateway, call, "transcription")


async def translate(gateway: Gateway, call: Call) -> Response:
    """Return what is said in a sound, in English."""
    return await _listen_once(gateway, call, "translation")


async def _listen_once(gateway: Gateway, call: Call, task: ListenTask) -> Response:
    """The response, which is that of the first call if this one has its idempotency key."""
    fields = _form_fields(call) if call.is_form else None
    if asks_for_file(call, call.json if fields is None else fields):
        return await keep_transcript(gateway, call, task)
    form = (fields or call.json).get(_FORM)
    media_type = forms.media_type(form if isinstance(form, str) else "", stream=False)
    return await answer_once(gateway, call, partial(_listen, task=task), task, fields=fields, media_type=media_type)


def _form_fields(call: Call) -> dict[str, Any]:
    """The values of a form by their names; several of one name are a list."""
    found: dict[str, Any] = {}
    for name, value in call.form:
        found[name] = [found[name], value] if name in found else value
    return found


async def _listen(gateway: Gateway, call: Call, task: ListenTask) -> Response:
    """Return the transcript of the first provider that gives one; raise the problem if none does."""
    with span("validate"):
        request = read_request(call, task, egress_rules(gateway.settings))
        check_model(call.caller, request.model, gateway.catalog.public_id(request.model))
        labels = call_labels(call, request.written.get("labels"))
        replay, sound = None, None
        if options := listen_replay(call):
            sound = await prepare_sound(gateway, call, request, ANY_PART)
            replay = await find_transcript(gateway, call, request, sound, options)
        if replay and replay.found:
            planned = None
        else:
            request, route = for_mock(gateway, request) if replay and replay.status == "mocked" else (request, None)
            request = await _with_speakers(gateway, call, request)
            is_recorded = replay is not None and replay.status == "recorded"
            planned = await plan_call(gateway, call, request, route=route, sound=sound, is_recorded=is_recorded)
    if call.dry_run and planned:
        return estimate(planned, gateway.guards.watching(TASK, call.caller.org_id, "output"))
    if labels:
        labels = await gateway.label_values.limited(call.caller.org_id, labels)
    await _ask_guards(gateway, call, request, labels)
    amount = ZERO if planned is None else max(map(planned.most, planned.choice.route.candidates))
    reserved = await _reserve(gateway, call, request, labels, amount)
    if planned is None:
        assert replay is not None
        assert sound is not None, "it was prepared, to find the recording"
        return await _replayed(gateway, reserved, request, sound.seconds, replay)
    route = drilled_route(gateway, call, reserved.reservation.request, planned.choice.route)
    return await first_response(reserved, route, partial(_ask, reserved, planned, replay))


async def _with_speakers(gateway: Gateway, call: Call, request: ListenRequest) -> ListenRequest:
    """The call with the sounds of the speakers whom it names as providers are sent them. Raises InvalidRequest."""
    if not request.speaker_sounds:
        return request
    sounds = await remade_sounds(gateway, call, request.speaker_sounds)
    return msgspec.structs.replace(request, values={**request.values, REFERENCES: sounds})


async def _ask_guards(gateway: Gateway, call: Call, request: ListenRequest, labels: Mapping[str, str]) -> None:
    """Have the guards read what a caller writes beside the sound. Raises CallRefused and Unavailable."""
    user = request.records.get("user")
    text = request.written_text
    await gateway.guards.check(asked_of(call), TASK, request.model, text, labels=labels, user=user)


async def _reserve(
    gateway: Gateway, call: Call, request: ListenRequest, labels: Mapping[str, str], amount: Nanos
) -> ReservedCall:
    """Reserve money for the call, as it is stored and logged where the settings ask for it: without the sound."""
    fields = dict(request.written)
    kept = msgspec.structs.replace(call, body=msgspec.json.encode(fields), json=fields, form=())
    drill = call.headers.get(HEADER, "")
    recorded = Request(task=TASK, model=request.model, values=request.records, labels=dict(labels), drill=drill)
    return ReservedCall(gateway, await reserve(gateway, kept, recorded, amount, MODALITY[TASK]))


async def _replayed(
    gateway: Gateway, reserved: ReservedCall, request: ListenRequest, seconds: float, replay: CallReplay
) -> Response:
    try:
        return await replay_transcript(gateway, reserved, request, seconds, replay)
    except Problem as problem:
        if not problem.recorded:
            reserved.settle("upstream_failure", problem=problem)
        raise


async def _ask(reserved: ReservedCall, planned: Planned, replay: CallReplay | None, candidate: Candidate) -> Response:
    """Have one candidate listen, until the process stops or the caller disconnects; then the caller pays for what the
    provider was sent.
    """
    gateway = reserved.gateway
    call = reserved.reservation.call
    if planned.request.stream and replay is None and is_streamed_by(reserved, candidate):
        return await stream_transcript(reserved, planned, candidate)
    listening = Listening(gateway, candidate, planned.plan(candidate), planned.sound, call.caller.org_id)
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
    bill = listening.bill()
    usage = forms.usage_object(bill.tokens, billed_seconds(candidate.model, listening.seconds))
    body = forms.body(request, shown(transcript, request), planned.sound.seconds, usage)
    await check_transcript(reserved, request, transcript, bill, candidate)
    reserved.settle("completed", candidate=candidate, bill=bill, response_bytes=len(body), response=body)
    charged = Nanos(min(bill.cost, reserved.reservation.amount))
    headers = {**candidate.executed_model_header, "x-service-cost": respond.usd_text(charged)}
    response = Response(
        body=body,
        headers={**STREAM_HEADERS, **headers} if request.stream else headers,
        media_type=forms.media_type(request.form, stream=request.stream),
    )
    if replay is None:
        return response
    return await answered(gateway, call, replay, candidate, transcript, response)
