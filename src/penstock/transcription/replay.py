"""Record what providers understood, and answer from a recording instead: one serves every form of a transcript."""

import hashlib

import msgspec

from penstock.chat.guarded import check_text
from penstock.chat.pricing import Bill
from penstock.chat.replay import CallReplay, Recorder, due_times, find_source, wait_until
from penstock.chat.reserved import ReservedCall
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.long_bodies.buffers import Buffer
from penstock.providers.transcription import Transcript
from penstock.recordings.fingerprints import make_fingerprint
from penstock.recordings.replay_headers import (
    ReplayOptions,
    has_replay_header,
    replay_options,
    response_headers,
)
from penstock.schema import Call, Fingerprint, Request, Response
from penstock.transcription import forms
from penstock.transcription.planned import TASK
from penstock.transcription.request import ListenRequest
from penstock.transcription.segments import has_detail, shown
from penstock.transcription.sound import PreparedSound
from penstock.upstream.candidate import Candidate
from penstock.values import ZERO

_TYPE = "application/json"


def listen_replay(call: Call) -> ReplayOptions | None:
    """The replay options of a call if it, or its key, has a replay mode; None without one."""
    if call.caller.replay_mode is None and not has_replay_header(call.headers):
        return None
    options = replay_options(call.headers, call.caller.replay_mode)
    return None if options is None or options.mode == "off" or call.dry_run else options


async def find_transcript(
    gateway: Gateway, call: Call, request: ListenRequest, sound: PreparedSound, options: ReplayOptions
) -> CallReplay:
    """How a call with a replay mode is answered. The sound is compared by its samples, whatever its file is; the form
    of the transcript does not decide. Raises RecordingNotFound where a recording is required and none matches.
    """
    return await find_source(gateway, call.caller.org_id, options, _fingerprint(gateway, request, sound, options))


def _fingerprint(gateway: Gateway, request: ListenRequest, sound: PreparedSound, options: ReplayOptions) -> Fingerprint:
    values = {name: value for name, value in request.written.items() if name not in ("model", "provider")}
    samples = sound.sha256.hex()
    values |= {"task": request.task, "sound": samples, "diarize": request.speakers}
    compared = Request(task=TASK, model=request.model, values=values)
    written = msgspec.json.encode([request.task, request.written, samples], order="deterministic")
    model = gateway.catalog.public_id(request.model)
    return make_fingerprint(compared, model, (), hashlib.sha256(written).digest(), options.match)


async def replay_transcript(
    gateway: Gateway, reserved: ReservedCall, request: ListenRequest, seconds: float, replay: CallReplay
) -> Response:
    """Answer with what was recorded, at no cost and without any provider. Raises InvalidRequest, which the caller of
    this settles, if it has no times and the form needs them.
    """
    found = replay.found
    assert found is not None, "it is replayed"
    call = reserved.reservation.call
    ((_, file),) = await gateway.recordings.list_files(found)
    transcript = _with_segments(_decoded(await gateway.recordings.read_file(file)), request)
    usage = forms.usage_object({}, 0.0)
    body = forms.body(request, transcript, seconds, usage)
    await wait_until(gateway, due_times(gateway, call, replay, found.duration_ms)[1])
    bill = Bill({}, (), ZERO)
    await check_transcript(reserved, request, transcript, bill, None)
    reserved.settle("completed", bill=bill, response_bytes=len(body), response=body)
    await reserved.free_place()
    headers = {
        "x-service-executed-model": found.decode_result().executed_model,
        "x-service-cost": "0",
        **response_headers("replayed", found.id),
    }
    return Response(body=body, headers=headers, media_type=forms.media_type(request.form, stream=request.stream))


async def check_transcript(
    reserved: ReservedCall, request: ListenRequest, transcript: Transcript, bill: Bill, candidate: Candidate | None
) -> None:
    """Return if the caller may get a transcript; otherwise settle the call and raise the problem."""
    call = reserved.reservation.call
    if guards := reserved.gateway.guards.watching(TASK, call.caller.org_id, "output", call.id):
        await check_text(reserved, guards, request.written_text, transcript.text, bill, candidate)


def _decoded(data: Buffer) -> Transcript:
    """A recorded transcript. Raises InvalidRequest for anything else, which may have been imported."""
    try:
        return msgspec.json.decode(data, type=Transcript)
    except msgspec.MsgspecError:
        raise InvalidRequest("The recording has no transcript that can be read.") from None


def _with_segments(transcript: Transcript, request: ListenRequest) -> Transcript:
    """The transcript with the segments that the form needs. Raises InvalidRequest if it has no times to make them."""
    if not has_detail(transcript, request.detail):
        message = "The recording has no times for this form: the model that it was made of gives none."
        raise InvalidRequest(message, param="response_format")
    return shown(transcript, request)


async def answered(
    gateway: Gateway, call: Call, replay: CallReplay, candidate: Candidate, transcript: Transcript, response: Response
) -> Response:
    """The response of a provider or of the mock: it says how it was made, and is recorded if the mode asks for it."""
    status, made_id = replay.status, None
    if status == "recorded":
        recorder = Recorder(gateway, call, replay, candidate.executed_model, TASK)
        is_stored = await recorder.store(msgspec.json.encode(transcript), _TYPE, ())
        status, made_id = ("recorded", recorder.id) if is_stored else ("live", None)
    elif status == "mocked":
        await wait_until(gateway, due_times(gateway, call, replay, 0)[1])
    return msgspec.structs.replace(response, headers={**response.headers, **response_headers(status, made_id)})
