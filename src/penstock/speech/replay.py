"""Record the sound of a provider, and speak from a recording instead of a provider, in any format and at any speed."""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

import msgspec
import structlog

from penstock.accounts.prices import Line
from penstock.chat.pricing import Bill
from penstock.chat.replay import CallReplay, due_times, find_source, piece_times, wait_until
from penstock.chat.stream import StreamBroken
from penstock.errors import NotFound, Problem
from penstock.gateway import Gateway
from penstock.providers.speech import named_formats
from penstock.recordings.fingerprints import make_fingerprint
from penstock.recordings.recordings import recording_id
from penstock.recordings.replay_headers import ReplayOptions
from penstock.recordings.rows import RecordedResult, RecordingRow
from penstock.schema import Call, Output, Request, StoredOutput
from penstock.sound.formats import SoundFormat, content_type
from penstock.speech.plan import SpeechPlan, check_codecs
from penstock.speech.provider_sound import ProviderSound
from penstock.speech.request import SpeechRequest
from penstock.speech.voices import speech_of
from penstock.upstream.candidate import Candidate
from penstock.values import ZERO

log = structlog.get_logger()
_MAX_BYTES = 64 * 1024**2  # of a sound; a longer one is not recorded
_ANY_LENGTH = 1_000_000  # characters: a recording is not divided again
_FORMATS: dict[str, SoundFormat] = {
    content_type(name).partition(";")[0]: name for name in ("mp3", "opus", "aac", "flac", "wav", "pcm")
}


async def find_speech(gateway: Gateway, call: Call, request: SpeechRequest, options: ReplayOptions) -> CallReplay:
    """How a call with a replay mode is answered. Raises RecordingNotFound where a recording is required and none
    matches. The format and the speed do not decide: they are made of the recording.
    """
    values = {
        name: value for name, value in call.json.items() if name not in ("model", "provider") and value is not None
    }
    model = gateway.catalog.public_id(request.model)
    compared = Request(task="speech", model=request.model, values=values)
    strict = hashlib.sha256(call.body).digest()
    fingerprint = make_fingerprint(compared, model, (), strict, options.match)
    return await find_source(gateway, call.caller.org_id, options, fingerprint)


class _SoundOfCall(ProviderSound):
    """The sound of a call with a replay mode."""

    def __init__(
        self, gateway: Gateway, candidate: Candidate, plan: SpeechPlan, call: Call, replay: CallReplay
    ) -> None:
        super().__init__(gateway, candidate, plan, call.caller.org_id)
        self._call = call
        self._replay = replay


# --------------------------------------------------------------------------------------------------------- replaying


class _RecordedCandidate(Candidate):
    """Who spoke when the recording was made; its health is not that of the provider."""

    @property
    def health_key(self) -> tuple[str, str]:
        return "recording", self.model.upstream


def recorded_voice(gateway: Gateway, found: RecordingRow, request: SpeechRequest) -> tuple[Candidate, SpeechPlan]:
    """The only candidate of a replay, and what is to be done with its sound. Costs nothing."""
    mock = gateway.catalog.mock("speech")
    recorded = found.decode_result()
    kind, _, rate = recorded.files[0].content_type.partition(";rate=")
    recorded_format = _FORMATS[kind]
    speech = replace(
        speech_of(mock.model),
        formats=named_formats("response_format", recorded_format),
        max_characters=_ANY_LENGTH,
        speeds=None,
        pcm_rate=int(rate.partition(";")[0]) if rate else speech_of(mock.model).pcm_rate,
        latin_only=False,
    )
    upstream = recorded.executed_model.partition("/")[2]
    model = replace(mock.model, id=found.model, upstream=upstream, op=replace(mock.model.op, speech=speech), prices=())
    provider = replace(mock.provider, slug=recorded.provider, name=recorded.provider_name)
    candidate = _RecordedCandidate(provider, model)
    voice = recorded.files[0].voice
    plan = SpeechPlan(model, voice, recorded_format, request.speed, ("",) * _part_count(recorded), {})
    check_codecs(plan, request)
    return candidate, plan


def _part_count(recorded: RecordedResult) -> int:
    """The parts that were joined: a chunk without bytes ends each."""
    return max(1, sum(not size for _, size in recorded.chunks))


class RecordedSound(_SoundOfCall):
    """The sound of a recording, at the pace that the call asks for."""

    def bill(self, *, is_whole: bool) -> Bill:
        return Bill({}, (), ZERO)

    def bill_lines(self, *, is_whole: bool) -> tuple[Line, ...]:
        return ()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        found = self._replay.found
        assert found is not None, "it is replayed"
        gateway = self._gateway
        try:
            ((_, file),) = await gateway.recordings.list_files(found)
            data = await gateway.recordings.read_file(file)
        except NotFound:
            raise StreamBroken("is a recording that was deleted") from None
        chunks = found.decode_result().chunks or ((0, len(data)), (0, 0))
        latency = self._replay.options.latency
        due_ms = due_times(gateway, self._call, self._replay, found.duration_ms)
        start = 0
        times = piece_times(chunks, due_ms, gateway.clock.steady_ms(), latency)
        for (_, size), at_ms in zip(chunks, times, strict=True):
            await wait_until(gateway, at_ms)
            yield data[start : start + size]
            start += size


class DelayedSound(_SoundOfCall):
    """The sound of a mock, whose first and last piece come when they are due."""

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        first_ms, last_ms = due_times(self._gateway, self._call, self._replay, 0)
        await wait_until(self._gateway, first_ms)
        ended = 0
        async with aclosing(super().pieces()) as pieces:
            async for data in pieces:
                ended += not data
                if ended == len(self._plan.parts):
                    await wait_until(self._gateway, last_ms)
                yield data


# --------------------------------------------------------------------------------------------------------- recording


class SoundOnRecord(_SoundOfCall):
    """The sound of a provider, which is recorded as it came before its end is passed on. A sound that breaks off is
    not recorded, and speech does not fail because it cannot be recorded.
    """

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        kept = bytearray()
        chunks: list[tuple[int, int]] = []
        ended = 0
        async with aclosing(super().pieces()) as pieces:
            async for data in pieces:
                if len(kept) <= _MAX_BYTES:
                    kept += data
                    chunks.append((self._age_ms, len(data)))
                ended += not data
                if ended == len(self._plan.parts) and len(kept) <= _MAX_BYTES:
                    await self._store(bytes(kept), tuple(chunks))
                yield data

    @property
    def _age_ms(self) -> int:
        return int((self._gateway.clock.monotonic() - self._call.started) * 1000)

    async def _store(self, data: bytes, chunks: tuple[tuple[int, int], ...]) -> None:
        gateway = self._gateway
        org_id = self._call.caller.org_id
        kind = content_type(self._plan.asked_format, self._speech.pcm_rate)
        output = Output("", kind, len(data), voice=self._plan.voice)
        made_id = recording_id(self._call.id)
        try:
            await gateway.quota.check(org_id, len(data))
            stored = StoredOutput(output=output, sha256=hashlib.sha256(data).digest(), data=data)
            files = await gateway.recordings.store_files(made_id, [stored])
            row = self._row(made_id, output, chunks)
            await gateway.store.write(lambda tx: gateway.recordings.add(tx, row, files), org_id=org_id)
        except Problem as problem:
            log.warning("speech is not recorded", request_id=self._call.id, code=problem.code)

    def _row(self, made_id: str, output: Output, chunks: tuple[tuple[int, int], ...]) -> RecordingRow:
        fingerprint = self._replay.fingerprint
        provider = self._candidate.provider
        cost = self.bill(is_whole=True).cost
        executed_model = self._candidate.executed_model
        result = RecordedResult(
            provider.slug, provider.name, executed_model, None, None, (output,), chunks=chunks, cost=cost
        )
        return RecordingRow(
            id=made_id,
            org_id=self._call.caller.org_id,
            request_id=self._call.id,
            kind=fingerprint.kind,
            task="speech",
            model=fingerprint.model,
            standard=fingerprint.standard,
            strict=fingerprint.strict,
            exact=fingerprint.exact,
            request=msgspec.json.encode(fingerprint.values),
            result=msgspec.json.encode(result),
            duration_ms=self._age_ms,
            created_at_ms=self._gateway.clock.now_ms(),
        )
