"""Have one candidate listen and stream: pass its text on while it arrives, and settle the call at its end."""

from penstock.chat.passed_on import BROKEN, PassedOn, nothing_came
from penstock.chat.pricing import Bill
from penstock.chat.reserved import ReservedCall
from penstock.chat.streamed_call import STREAM_HEADERS, CallersStream, caller_disconnected, process_stopped
from penstock.generations import respond
from penstock.interrupts import CallerGone, ProcessStopped
from penstock.providers.transcription import TranscriptEvent
from penstock.schema import Response
from penstock.telemetry.call_report import provider_wait
from penstock.transcription import forms
from penstock.transcription.plan import transcription_of
from penstock.transcription.planned import TASK, Planned
from penstock.transcription.pricing import billed_seconds, make_bill
from penstock.transcription.streamed_listening import StreamedListening
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed
from penstock.upstream.watch import AttemptWatch
from penstock.values import Nanos


def is_streamed_by(reserved: ReservedCall, candidate: Candidate) -> bool:
    """Whether the transcript is passed on while the candidate makes it: guards read a whole one before the caller."""
    call = reserved.reservation.call
    guards = reserved.gateway.guards.watching(TASK, call.caller.org_id, "output", call.id)
    return transcription_of(candidate.model).streamed is not None and not guards


async def stream_transcript(reserved: ReservedCall, planned: Planned, candidate: Candidate) -> Response:
    """Ask the candidate, and return a response that streams. Raises AttemptFailed.

    This waits for the first event, because until then the call can still go to another provider.
    """
    gateway = reserved.gateway
    call = reserved.reservation.call
    plan = planned.plan(candidate)
    listening = StreamedListening(gateway, candidate, plan, planned.sound, call.caller.org_id)
    watch = AttemptWatch(gateway.metrics, gateway.clock, candidate, TASK)
    try:
        with gateway.interrupts.allowed(call.line), watch:
            return await _begun(reserved, planned, listening, candidate, watch)
    except AttemptFailed as problem:
        if loss := listening.loss(problem.failure):
            reserved.losses.append(loss)
        raise
    except CallerGone:
        reserved.settle("cancelled", candidate=candidate, bill=listening.bill(), problem=caller_disconnected())
        raise
    except ProcessStopped:
        raise process_stopped() from None


async def _begun(
    reserved: ReservedCall, planned: Planned, listening: StreamedListening, candidate: Candidate, watch: AttemptWatch
) -> Response:
    events = listening.events()
    try:
        with provider_wait():
            first = await anext(events)
    except (StopAsyncIteration, *BROKEN) as problem:
        await events.aclose()
        raise AttemptFailed(nothing_came(candidate, problem, "transcript")) from problem
    except BaseException:
        await events.aclose()
        raise
    watch.note_first_byte()
    watch.keep_open()
    form = forms.EventForm(planned.request)

    def bill(*, is_whole: bool) -> Bill:
        return listening.bill()

    def end(bill: Bill) -> bytes:
        usage = forms.usage_object(bill.tokens, billed_seconds(candidate.model, listening.seconds))
        return form.end(listening.joined, usage)

    passed_on = PassedOn[TranscriptEvent](
        reserved, candidate, watch, listening.times, form, bill, end, "transcript", stores=True
    )
    headers = {**STREAM_HEADERS, **candidate.executed_model_header, **_price(reserved, planned, candidate)}
    return Response(chunks=CallersStream(passed_on.chunks(events, first)), headers=headers, media_type=forms.EVENTS)


def _price(reserved: ReservedCall, planned: Planned, candidate: Candidate) -> dict[str, str]:
    """The header with the price: it is known before the end only if it depends on the sound alone."""
    model = candidate.model
    if all(price.unit != "token" and not price.is_counted_by_provider for price in model.prices):
        cost = min(make_bill(model, planned.seconds, {}, "").cost, reserved.reservation.amount)
        return {"x-service-cost": respond.usd_text(Nanos(cost))}
    return {"x-service-cost-estimate": respond.usd_text(reserved.reservation.amount)}
