"""Write down a sound into a file: the work of a job whose transcript is kept."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from penstock.accounts.prices import Line
from penstock.errors import InvalidRequest, NotFound
from penstock.event_loop import run_aside
from penstock.gateway import Gateway, MakesOutputs
from penstock.providers.spec import Upload
from penstock.providers.transcription import Transcript
from penstock.schema import LISTEN_TASKS, Input, Output, Request, StoredOutput
from penstock.transcription import forms
from penstock.transcription.listening import Listening
from penstock.transcription.mock import plain
from penstock.transcription.plan import ListenPlan, make_plan
from penstock.transcription.pricing import billed_seconds
from penstock.transcription.request import ListenRequest, stored_request
from penstock.transcription.segments import shown
from penstock.transcription.sound import PreparedSound, SoundPart, upload
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure
from penstock.values import OrgId

_BYTES_PER_SECOND = 100  # of a transcript that is written, about


class TranscriptFile:
    """Has one candidate listen to the sound of a request, and stores what it understood; see OutputMaker."""

    def __init__(self, gateway: Gateway, candidate: Candidate, request: Request, media_id: str, for_org: OrgId) -> None:
        self._gateway = gateway
        self._candidate = candidate
        self._inputs = {item.media_id: item for item in request.inputs}
        self._media_id = media_id
        self._for_org = for_org
        listening = stored_request(request)
        self._request: ListenRequest = plain(listening) if candidate.provider.mocks else listening
        self._sound = _stored_sound(request.inputs)
        self._listening: Listening | None = None
        self._failure: Failure | None = None

    @property
    def lines(self) -> tuple[Line, ...]:
        """What the provider bills so far, line by line."""
        if self._listening is None:
            return ()
        return self._listening.lost_lines(self._failure) if self._failure else self._listening.lines()

    async def make(self, note_progress: Callable[[float], Awaitable[None]]) -> StoredOutput:
        """Write and store the transcript. Raises AttemptFailed or OutputNotStored."""
        self._failure = None
        plan = self._make_plan()
        self._listening = Listening(
            self._gateway, self._candidate, plan, self._sound, self._for_org, read_part=self._read_part
        )
        try:
            transcript = await self._listening.transcript(note_progress)
        except AttemptFailed as problem:
            self._failure = problem.failure
            raise
        tokens = self._listening.bill().tokens
        usage = forms.usage_object(tokens, billed_seconds(plan.model, self._listening.seconds))
        write = partial(_written, self._request, transcript, self._sound.seconds, usage)
        data = await run_aside(int(self._sound.seconds * _BYTES_PER_SECOND), write)
        output = Output(
            self._media_id,
            forms.file_type(self._request.form),
            len(data),
            seconds=self._sound.seconds,
        )
        return StoredOutput(output=output, sha256=await self._gateway.media_transfer.store_text(output, data))

    def _make_plan(self) -> ListenPlan:
        try:
            return make_plan(self._candidate.model, self._request)
        except InvalidRequest as problem:  # the model was changed after the call was accepted
            raise AttemptFailed(Failure("rejected", problem.message, sent=False)) from problem

    async def _read_part(self, part: SoundPart) -> Upload:
        stored = self._inputs[part.media_id]
        try:
            data = await self._gateway.media.read(stored.media_id, stored.size_bytes)
        except NotFound as problem:
            raise AttemptFailed(Failure("rejected", "The sound of the request is gone.", sent=False)) from problem
        return upload(data, stored.content_type)


TRANSCRIPT_MAKERS: Mapping[str, MakesOutputs] = dict.fromkeys(LISTEN_TASKS, TranscriptFile)


def _written(request: ListenRequest, transcript: Transcript, seconds: float, usage: dict[str, object]) -> bytes:
    return forms.whole(request, shown(transcript, request), seconds, usage)


def _stored_sound(inputs: Sequence[Input]) -> PreparedSound:
    """The sound whose parts are the inputs of a request, one after the other; their bytes are in the storage."""
    parts: list[SoundPart] = []
    start = 0.0
    for item in inputs:
        parts.append(SoundPart(upload(b"", item.content_type), start, item.seconds, item.media_id))
        start += item.seconds
    return PreparedSound(round(start, 3), b"", tuple(parts))
