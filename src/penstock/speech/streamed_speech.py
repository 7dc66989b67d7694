"""Have one candidate speak: pass the sound on while it arrives, and settle the call at its end."""

from typing import Any

import msgspec

from penstock.chat.passed_on import BROKEN, PassedOn, nothing_came
from penstock.chat.pricing import Bill
from penstock.chat.reserved import ReservedCall
from penstock.chat.streamed_call import STREAM_HEADERS, CallersStream
from penstock.schema import Response
from penstock.sound.formats import content_type
from penstock.speech.conversion import caller_sound
from penstock.speech.events import PlainSound, SoundEvents, SpeechForm
from penstock.speech.plan import SpeechPlan
from penstock.speech.pricing import depends_on_text_only, max_cost
from penstock.speech.provider_sound import ProviderSound
from penstock.speech.request import SpeechRequest
from penstock.telemetry.call_report import provider_wait
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed
from penstock.upstream.watch import AttemptWatch
from penstock.values import dollars


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
    except (StopAsyncIteration, *BROKEN) as problem:
        await sound.aclose()
        raise AttemptFailed(nothing_came(speaking.candidate, problem, "sound")) from problem
    except BaseException:
        await sound.aclose()
        raise
    watch.note_first_byte()
    watch.keep_open()
    media_type = "text/event-stream" if request.in_events else content_type(request.output_format, request.wanted_rate)
    stream = CallersStream(_passed_on(speaking).chunks(sound, first))
    return Response(chunks=stream, headers={**STREAM_HEADERS, **_headers(speaking)}, media_type=media_type)


def _passed_on(speaking: Speaking) -> PassedOn[bytes]:
    form: SpeechForm = SoundEvents() if speaking.request.in_events else PlainSound()
    return PassedOn(
        speaking.reserved,
        speaking.candidate,
        speaking.watch,
        speaking.source.times,
        form,
        speaking.bill,
        lambda bill: form.end(_usage(speaking, bill), _metadata(speaking, bill)),
        "sound",
    )


def _headers(speaking: Speaking) -> dict[str, str]:
    plan = speaking.plan
    price = format(dollars(max_cost(plan, speaking.request.speed)), "f")
    name = "x-service-cost" if depends_on_text_only(plan.model) else "x-service-cost-estimate"
    headers = {**speaking.candidate.executed_model_header, name: price}
    if plan.voice and plan.voice.isascii() and plan.voice.isprintable():
        headers["x-service-voice"] = plan.voice
    return headers


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
