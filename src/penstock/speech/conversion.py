"""Bring a provider's sound into the format, rate and speed that the caller asked for, while it arrives."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress

from penstock.chat.stream import StreamBroken
from penstock.errors import Unavailable
from penstock.gateway import Gateway
from penstock.imaging.workers import ChildStream, WorkFailed
from penstock.sound import wave
from penstock.sound.sniff import HEAD_BYTES, sound_format
from penstock.speech.plan import SpeechPlan
from penstock.speech.request import SpeechRequest
from penstock.speech.voices import speech_of
from penstock.values import OrgId

_WAIT_SECONDS = 2.0  # for a free child process
_MAX_HEADER_BYTES = 128 * 1024
_MARKED = ("wav", "opus", "flac", "mp4", "webm")  # formats whose first bytes cannot be samples by chance


async def caller_sound(
    gateway: Gateway,
    plan: SpeechPlan,
    request: SpeechRequest,
    pieces: AsyncIterator[bytes],
    for_org: OrgId,
    *,
    wait_seconds: float = _WAIT_SECONDS,
) -> AsyncGenerator[bytes, None]:
    """The sound as the caller wants it. What the provider sent is looked at, whatever it was asked for.

    Bytes that need no change are passed on as they are; samples only change their header; everything else goes through
    a child process. Raises StreamBroken for what is not sound, Unavailable if no child is free, and what `pieces` does.
    """
    begin, found, rate = await _look(plan, pieces)
    whole = _chained(begin, pieces)
    is_plain = plan.tempo == 1
    if is_plain and len(plan.parts) == 1 and found == request.output_format and _has_rate(found, rate, request):
        sound = _passed_on(whole)
    elif is_plain and {found, request.output_format} <= {"pcm", "wav"} and rate and _same(rate, request):
        sound = _with_other_header(whole, found, rate, request)
    else:
        if found == "wav" and rate:  # FFmpeg reads 64 KiB of a WAV before it says anything
            found, whole = "pcm", _samples(whole, found, rate)
        sound = _converted(gateway, plan, request, whole, for_org, found, rate, wait_seconds)
    async with aclosing(sound):
        async for data in sound:
            yield data


async def _look(plan: SpeechPlan, pieces: AsyncIterator[bytes]) -> tuple[bytes, str, int]:
    """The beginning of the sound, its format, and the rate of its samples if they are plain ones, else 0."""
    begin = b""
    async for data in pieces:
        begin += data
        if not data:
            raise StreamBroken("sent no sound")
        if len(begin) < HEAD_BYTES:
            continue
        found = _format(plan, begin)
        if found != "wav":
            return begin, found, speech_of(plan.model).pcm_rate if found == "pcm" else 0
        header = _read_header(begin)
        if header is not None:
            return begin, found, header.rate if header.is_plain else 0
    raise StreamBroken("sent no sound")


def _format(plan: SpeechPlan, begin: bytes) -> str:
    found = sound_format(begin)
    if plan.asked_format == "pcm":
        return found if found in _MARKED else "pcm"
    if found is None:
        raise StreamBroken("sent something that is not sound")
    return found


def _read_header(begin: bytes) -> wave.WaveFormat | None:
    try:
        header = wave.read_header(begin)
    except ValueError:
        raise StreamBroken("sent a WAV file that cannot be read") from None
    if header is None and len(begin) > _MAX_HEADER_BYTES:
        raise StreamBroken("sent a WAV file that cannot be read")
    return header


def _same(rate: int, request: SpeechRequest) -> bool:
    """Whether samples of this rate need not be resampled: a WAV file says its rate, so any will do unless it was asked
    for.
    """
    return rate == request.wanted_rate or (request.rate is None and request.output_format == "wav")


def _has_rate(found: str, rate: int, request: SpeechRequest) -> bool:
    """Whether a file in the right format has a rate that will do."""
    if found == "pcm":
        return rate == request.wanted_rate
    if found in ("wav", "flac"):
        return request.rate is None or rate == request.rate
    return True


async def _chained(begin: bytes, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    yield begin
    async for data in pieces:
        yield data


async def _passed_on(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    async for data in pieces:
        if data:
            yield data


async def _with_other_header(
    pieces: AsyncIterator[bytes], found: str, rate: int, request: SpeechRequest
) -> AsyncGenerator[bytes, None]:
    """Samples behind one header, or without any; the files of several parts follow each other."""
    if request.output_format == "wav":
        yield wave.header(rate)
    async for samples in _samples(pieces, found, rate):
        if samples:
            yield samples


async def _samples(pieces: AsyncIterator[bytes], found: str, rate: int) -> AsyncGenerator[bytes, None]:
    """The samples of plain WAV files, or of what has no header; an empty piece stays the end of a file."""
    begin = b""
    in_header = found == "wav"
    async for data in pieces:
        if not data:
            begin, in_header = b"", found == "wav"
            yield b""
        elif not in_header:
            yield data
        else:
            begin += data
            header = _read_header(begin)
            if header is not None:
                if header.rate != rate or not header.is_plain:
                    raise StreamBroken("sent parts of different rates")
                in_header = False
                if samples := begin[header.data_start :]:
                    yield samples


async def _converted(
    gateway: Gateway,
    plan: SpeechPlan,
    request: SpeechRequest,
    pieces: AsyncIterator[bytes],
    for_org: OrgId,
    found: str,
    rate: int,
    wait_seconds: float,
) -> AsyncGenerator[bytes, None]:
    """The sound from a child process, which gets the provider's while it arrives."""
    arguments = {
        "source": found,
        "source_rate": rate,
        "target": request.output_format,
        "rate": request.wanted_rate,
        "speed": plan.tempo,
    }
    feeding: asyncio.Task[None] | None = None
    try:
        async with gateway.sound_pool.stream(
            "sound.convert", for_org=for_org, wait_seconds=wait_seconds, **arguments
        ) as child:
            feeding = asyncio.create_task(_feed(child, pieces))
            while data := await child.read():
                yield data
            await feeding
    except WorkFailed as problem:
        if feeding is not None and feeding.done() and not feeding.cancelled():
            feeding.result()  # raises what went wrong before the child was ended
        if problem.kind == "busy":
            raise Unavailable("This gateway is converting as many sounds as it may. Try again soon.") from None
        raise StreamBroken("sent sound that cannot be decoded") from problem
    finally:
        if feeding is not None:
            feeding.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await feeding


async def _feed(child: ChildStream, pieces: AsyncIterator[bytes]) -> None:
    """Write the provider's sound to the child; if that fails, the child is ended, so that its reader notices."""
    try:
        async for data in pieces:
            if data:
                await child.write(data)
            else:
                await child.end_file()
        await child.end()
    except OSError:
        pass  # the child has ended, and its reader says why
    except BaseException:
        child.kill()
        raise
