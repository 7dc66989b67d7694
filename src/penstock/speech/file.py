"""Speak a text into a file: the work of a job whose sound is kept."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from penstock.accounts.prices import Line
from penstock.chat.passed_on import BROKEN, nothing_came
from penstock.chat.stream import CallerTooSlow
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.media.sound_file import SoundFile
from penstock.schema import Request, StoredOutput
from penstock.sound.formats import content_type
from penstock.speech.conversion import caller_sound
from penstock.speech.plan import SpeechPlan, make_plan
from penstock.speech.provider_sound import ProviderSound
from penstock.speech.request import SpeechRequest, stored_speech_request
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure
from penstock.values import OrgId

_WAIT_SECONDS = 600.0  # for a free child process: nobody listens meanwhile
_BROKEN = (*BROKEN, CallerTooSlow)


class SpeechFile:
    """Has one candidate speak the text of a request, and stores the sound when it is whole; see OutputMaker."""

    def __init__(self, gateway: Gateway, candidate: Candidate, request: Request, media_id: str, for_org: OrgId) -> None:
        self._gateway = gateway
        self._candidate = candidate
        self._kept = request
        self._media_id = media_id
        self._for_org = for_org
        self._request: SpeechRequest = stored_speech_request(request)
        self._plan: SpeechPlan | None = None
        self._source: ProviderSound | None = None
        self._is_whole = False

    @property
    def lines(self) -> tuple[Line, ...]:
        """What the provider bills so far, line by line."""
        if self._plan is None or self._source is None:
            return ()
        return self._source.bill_lines(is_whole=self._is_whole)

    async def make(self, note_progress: Callable[[float], Awaitable[None]]) -> StoredOutput:
        """Speak and store the text. Raises AttemptFailed, OutputNotStored, or Unavailable if no child is free."""
        plan = self._make_plan()
        self._plan = plan
        max_seconds = self._gateway.settings.job_deadline_seconds
        self._source = ProviderSound(self._gateway, self._candidate, plan, self._for_org, max_seconds=max_seconds)
        pieces = _noting_progress(self._source, len(plan.parts), note_progress)
        sound = caller_sound(self._gateway, plan, self._request, pieces, self._for_org, wait_seconds=_WAIT_SECONDS)
        with self._gateway.media_transfer.sounds.new_file() as file:
            try:
                async with aclosing(pieces), aclosing(sound):
                    async for data in sound:
                        file.write(data)
            except _BROKEN as problem:
                raise AttemptFailed(nothing_came(self._candidate, problem, "sound")) from problem
            self._is_whole = True
            return await self._store(file, plan)

    def _make_plan(self) -> SpeechPlan:
        try:
            return make_plan(self._candidate.model, self._request)
        except InvalidRequest as problem:  # the model was changed after the call was accepted
            raise AttemptFailed(Failure("rejected", problem.message, sent=False)) from problem

    async def _store(self, file: SoundFile, plan: SpeechPlan) -> StoredOutput:
        request = self._request
        return await self._gateway.media_transfer.sounds.store(
            self._media_id,
            file,
            content_type(request.output_format, request.wanted_rate),
            self._kept,
            voice=plan.voice,
            for_org=self._for_org,
        )


async def _noting_progress(
    source: ProviderSound, parts: int, note_progress: Callable[[float], Awaitable[None]]
) -> AsyncGenerator[bytes, None]:
    """The pieces of the sound; the progress is that of the parts of the text."""
    ended = 0
    async with aclosing(source.pieces()) as pieces:
        async for data in pieces:
            if not ended and data:
                await note_progress(0)
            if not data:
                ended += 1
                await note_progress(ended / parts)
            yield data
