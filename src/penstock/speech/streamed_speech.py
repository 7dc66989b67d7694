"""Have one candidate speak: pass the sound on while it arrives, and settle the call at its end."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec

from penstock.chat.form import SentBytes
from penstock.chat.pricing import Bill
from penstock.chat.reserved import ReservedCall
from penstock.chat.stream import CallerTooSlow, ProviderTooSlow, StreamBroken
from penstock.chat.streamed_call import STREAM_HEADERS, CallersStream, caller_disconnected, process_stopped
from penstock.errors import Cancelled, Problem, Unavailable, UpstreamError, UpstreamTimeout
from penstock.interrupts import CallerLine, ProcessStopped
from penstock.net.errors import MaybeSent, NotSent
from penstock.schema import Response
from penstock.sound.formats import content_type
from penstock.speech.conversion import caller_sound
from penstock.speech.events import PlainSound, SoundEvents, SpeechForm
from penstock.speech.plan import SpeechPlan
from penstock.speech.pricing import depends_on_text_only, max_cost
from penstock.speech.provider_sound import ProviderSound, no_sound
from penstock.speech.request import SpeechRequest
from penstock.telemetry.call_report import provider_wait
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure
from penstock.upstream.watch import INTERRUPTED, AttemptWatch
from penstock.values import dollars

_BROKEN = (StreamBroken, MaybeSent, NotSent, ProviderTooSlow)


class Speaking(msgspec.Struct, frozen=True):
    """A call while one candidate speaks."""

    reserved: ReservedCall
    request: SpeechRequest
    candidate: Candidate
    plan: SpeechPlan
    source: ProviderSound
    watch: AttemptWatch

    def bill(self, *, is_whole: bool) -> Bill:
        """What the sound that came so far costs."""
        return self.source.bill(is_whole=is_whole)


async def speak(speaking: Speaking) -> Response:
    """Ask the candidate, and return a response that streams. Raises AttemptFailed.

    This waits for the first sound, because until then the call can still go to another provider.
    """
    request = speaking.request
    watch = speaking.watch
    gateway = speaking.reserved.gateway
    org_id = speaking.reserved.reservation.call.caller.org_id
    sound = caller_sound(gateway, speaking.plan, request, speaking.source.pieces(), org_id)
    try:
        with provider_wait():
            first = await anext(sound)
    except (StopAsyncIteration, *_BROKEN) as problem:
        await sound.aclose()
        raise AttemptFailed(no_sound(speaking.candidate, problem)) from problem
    except BaseException:
        await sound.aclose()
        raise
    watch.note_first_byte()
    watch.keep_open()
    form: SpeechForm = SoundEvents() if request.in_events else PlainSound()
    media_type = "text/event-stream" if request.in_events else content_type(request.output_format, request.wanted_rate)
    stream = CallersStream(_pass_on(speaking, form, sound, first))
    return Response(chunks=stream, headers={**STREAM_HEADERS, **_headers(speaking)}, media_type=media_type)


def _headers(speaking: Speaking) -> dict[str, str]:
    plan = speaking.plan
    price = format(dollars(max_cost(plan, speaking.request.speed)), "f")
    name = "x-service-cost" if depends_on_text_only(plan.model) else "x-service-cost-estimate"
    headers = {**speaking.candidate.executed_model_header, name: price}
    if plan.voice and plan.voice.isascii() and plan.voice.isprintable():
        headers["x-service-voice"] = plan.voice
    return headers


async def _pass_on(
    speaking: Speaking, form: SpeechForm, sound: AsyncGenerator[bytes, None], first: bytes
) -> AsyncGenerator[bytes, None]:
    """Yield the sound for the caller; settle the call and close the connection however it ends. Speech that ends well
    is settled before its end is sent, so that the caller's next call finds its place free.

    Speech that breaks off costs nothing, and so does one that is interrupted because the process stops; what the
    provider bills for it is a loss. A caller who disconnects or reads too slowly pays for what came.
    """
    reserved = speaking.reserved
    problem: Problem | None = caller_disconnected()
    sent = SentBytes(stores=False)
    bill: Bill | None = None
    try:
        try:
            yield sent.count(form.part(first))
            with reserved.gateway.interrupts.allowed(CallerLine()):  # the server notices who leaves
                async with aclosing(sound):
                    async for data in sound:
                        yield sent.count(form.part(data))
            problem = None
            bill = speaking.bill(is_whole=True)
            last = form.end(_usage(speaking, bill), _metadata(speaking, bill))
            sent.count(last)
            _settle(speaking, bill, problem, sent)
            await reserved.free_place()
            if last:
                yield last
        except (*_BROKEN, AttemptFailed, CallerTooSlow, ProcessStopped, Unavailable) as error:
            problem = _note_problem(speaking, error)
            if last := form.fail(problem):
                yield last
            raise problem from None  # the connection is closed without the end of the response
    finally:
        await sound.aclose()
        if bill is None:
            bill = speaking.bill(is_whole=False)
            _settle(speaking, bill, problem, sent)
        if isinstance(problem, Cancelled | Unavailable):
            speaking.watch.fail(INTERRUPTED)
        speaking.watch.note_tokens(bill.tokens)
        speaking.watch.end()


def _usage(speaking: Speaking, bill: Bill) -> dict[str, int]:
    """The usage in the last event: tokens, or where the price is for characters, their number."""
    tokens = bill.tokens or {"input": sum(map(len, speaking.plan.parts))}
    counted = {f"{name}_tokens": tokens.get(name, 0) for name in ("input", "output")}
    return {**counted, "total_tokens": sum(counted.values())}


def _metadata(speaking: Speaking, bill: Bill) -> dict[str, Any]:
    """The end of a stream of events says what the call cost, as the metadata of images do."""
    charged = min(bill.cost, speaking.reserved.reservation.amount)
    return {
        "request_id": speaking.reserved.reservation.call.id,
        "provider": speaking.candidate.provider.slug,
        "executed_model": speaking.candidate.executed_model,
        "voice": speaking.plan.voice,
        "cost": float(dollars(charged)),
    }


def _note_problem(speaking: Speaking, error: Exception) -> Problem:
    """Return why speech was not passed on as a whole; a failure of the provider is counted against it."""
    name = speaking.candidate.provider.name
    seconds = f"{speaking.source.times.max_seconds:g} seconds"
    match error:
        case CallerTooSlow():
            return Cancelled(f"The caller took longer than {seconds} to read its sound.")
        case ProcessStopped():
            return process_stopped()
        case Unavailable():
            return error
        case ProviderTooSlow():
            problem: Problem = UpstreamTimeout(f"{name} took longer than {seconds} to speak.")
        case AttemptFailed():
            problem = UpstreamError(error.failure.message)
        case StreamBroken():
            problem = UpstreamError(no_sound(speaking.candidate, error).message)
        case _:
            problem = UpstreamError(f"{name} closed the connection before the end of the sound.")
    speaking.watch.fail("broken")
    speaking.reserved.record_failure(speaking.candidate, Failure("broken", problem.message))
    return problem


def _settle(speaking: Speaking, bill: Bill, problem: Problem | None, sent: SentBytes) -> None:
    """Charge what came, or record it as a loss if the caller is not to blame for the problem."""
    reserved = speaking.reserved
    if isinstance(problem, Cancelled) and reserved.gateway.interrupts.is_stopped:
        problem = process_stopped()
    is_charged = problem is None or isinstance(problem, Cancelled)
    if not is_charged:
        reserved.losses.append(bill.cost)
    is_cancelled = isinstance(problem, Cancelled | Unavailable)
    reserved.settle(
        "completed" if problem is None else "cancelled" if is_cancelled else "upstream_failure",
        candidate=speaking.candidate,
        bill=bill if is_charged else None,
        response_bytes=sent.size,
        problem=problem,
    )
