"""Transcripts that are kept: a job listens and writes the file, and the caller waits for it or comes back."""

import msgspec

from penstock.accounts.limits import check_model
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.generation_jobs.rows import GenerationRow, get_generation_by_key
from penstock.generations import respond, sounds, validate
from penstock.generations.idempotency_keys import first_look
from penstock.generations.input_sources import InputSource
from penstock.generations.kept import KeptResult, is_async, keep, kept_replay, repeated, with_headers
from penstock.generations.plan import PlannedCall, drilled_route, live_plan, with_delivery
from penstock.net.checked_urls import egress_rules
from penstock.recordings.replay_headers import response_headers
from penstock.schema import Call, Response
from penstock.telemetry.tracing import span
from penstock.transcription import forms
from penstock.transcription.mock import for_mock, plain_request
from penstock.transcription.planned import TASK, Planned, estimate, plan_call
from penstock.transcription.replay import listen_replay
from penstock.transcription.request import ListenRequest, ListenTask, read_request
from penstock.transcription.sound import PreparedSound
from penstock.transcription.speakers import REFERENCES
from penstock.values import InputFile

_ROLE = "sound"


async def keep_transcript(gateway: Gateway, call: Call, task: ListenTask) -> Response:
    """Accept a call whose transcript is kept, and respond with the job, or with the transcript when it is whole.

    A call whose idempotency key was used before gets the first transcript, and its sound is not read.
    """
    with span("validate"):
        request, validated = _read(gateway, call, task)
        key = None if call.dry_run else first_look(call, task)
        if key and (earlier := await get_generation_by_key(gateway.store, call.caller.org_id, key)):
            return await repeated(gateway, call, earlier, validated, _kept(request))
        status = None
        if options := listen_replay(call):
            status = kept_replay(options, "A transcript")
        route = None
        if status == "mocked":
            request, route = for_mock(gateway, request)
        planned = await plan_call(gateway, call, request, route=route)
    if call.dry_run:
        return estimate(planned, gateway.guards.watching(TASK, call.caller.org_id, "output"))
    if status == "mocked":
        validated = msgspec.structs.replace(validated, request=plain_request(validated.request))
    response = await keep(gateway, call, _planned_call(gateway, call, validated, planned), _kept(request))
    return response if status is None else with_headers(response, response_headers(status, None))


def _read(gateway: Gateway, call: Call, task: ListenTask) -> tuple[ListenRequest, validate.ValidatedCall]:
    request = read_request(call, task, egress_rules(gateway.settings))
    check_model(call.caller, request.model, gateway.catalog.public_id(request.model))
    if request.stream:
        raise InvalidRequest("`stream` must be false where the transcript is kept.", param="stream")
    if request.speaker_sounds:
        message = f"`{REFERENCES}` cannot be sent with a call whose transcript is kept: its sounds would be stored."
        raise InvalidRequest(message, param=REFERENCES)
    source = InputSource(_ROLE, request.source, request.param)
    is_job = is_async(call)
    validated = validate.listening(call, gateway.settings, task, request.written, source, is_job=is_job)
    unsigned = msgspec.structs.replace(validated.request, provenance=None)  # a text has no Content Credentials
    return request, with_delivery(gateway, call.caller.org_id, msgspec.structs.replace(validated, request=unsigned))


def _planned_call(gateway: Gateway, call: Call, validated: validate.ValidatedCall, planned: Planned) -> PlannedCall:
    route = planned.choice.route
    holds = [planned.most(candidate) for candidate in route.candidates]
    request = validated.request
    candidates = drilled_route(gateway, call, request, route).candidates
    inputs = tuple(_input_files(planned.sound))
    return PlannedCall(validated, request, live_plan(route, holds), candidates, inputs, choice=planned.choice)


def _input_files(sound: PreparedSound) -> list[InputFile]:
    """The parts of the sound as files that are stored until the job has ended."""
    return [
        InputFile(part.file.data, part.file.content_type, 0, 0, _ROLE, seconds=part.seconds) for part in sound.parts
    ]


def _kept(request: ListenRequest) -> KeptResult:
    async def result(gateway: Gateway, call: Call, row: GenerationRow) -> Response:
        """The transcript of a job that has ended. Raises the Problem of one that failed."""
        found = await sounds.finished(gateway, row.org_id, row.id)
        output = found.result.outputs[0]
        headers = {
            "x-service-executed-model": found.result.executed_model,
            "x-service-cost": respond.usd_text(found.result.cost),
        }
        data = bytes(await gateway.media.read(output.media_id, output.size_bytes))
        return Response(body=data, headers=headers, media_type=forms.media_type(request.form, stream=False))

    return KeptResult(request.task, result)
