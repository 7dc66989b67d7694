"""Forward a chat call whose response is streamed: pass the provider's events on, and settle the call at the end."""

from collections.abc import AsyncGenerator, Awaitable
from typing import Any, Self

import msgspec

from penstock.chat.form import SentBytes
from penstock.chat.guarded import check_answer, readers
from penstock.chat.kept_items import items_of
from penstock.chat.pricing import Bill, Usage, estimated_usage, make_bill, max_sound_tokens
from penstock.chat.provider_api import ProviderApi, StreamRelay
from penstock.chat.reserved import ReservedChat
from penstock.chat.stream import (
    CallerTooSlow,
    ProviderTooSlow,
    StreamBroken,
    WaitingTimes,
    idle_seconds,
    read_end,
    translate_events,
)
from penstock.errors import Cancelled, Problem, Unavailable, UpstreamError, UpstreamTimeout
from penstock.event_loop import LONG_BYTES, run_aside
from penstock.interrupts import CallerLine, ProcessStopped
from penstock.models.reasoning_rates import ModelName
from penstock.net.errors import MaybeSent, NotSent
from penstock.net.response import ByteStream
from penstock.schema import Response
from penstock.telemetry.call_report import provider_wait
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure, failure_in_body
from penstock.upstream.replies import without_plain_key
from penstock.upstream.watch import INTERRUPTED, AttemptWatch
from penstock.values import Nanos

EXTRA_SECONDS = 120.0  # longer than a single wait for a provider or for a caller can be
STREAM_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


def caller_disconnected() -> Problem:
    return Cancelled("The caller disconnected.")


def process_stopped() -> Problem:
    return Unavailable("The gateway was stopped before the response was complete.", should_retry=False)


async def forward_stream(
    reserved: ReservedChat, candidate: Candidate, api: ProviderApi, watch: AttemptWatch
) -> Response:
    """Send the call and return a response that streams. Raises AttemptFailed.

    This waits for the first event, because until then the call can still go to another provider.
    """
    gateway = reserved.gateway
    call = reserved.reservation.call
    relay = api.relay()
    times = WaitingTimes(gateway.clock, gateway.settings.stream_seconds)
    source = await gateway.upstream.stream_chat(
        api.candidate,
        api.body(gateway.settings.chat_output_tokens),
        idle_seconds=idle_seconds(candidate.provider, gateway.settings),
        total_seconds=2 * (gateway.settings.stream_seconds + EXTRA_SECONDS),  # `times` ends it before
        for_org=call.caller.org_id,
        size_bytes=reserved.chat.size_bytes,
    )
    try:
        first = b""
        while not first and not relay.done:
            with provider_wait():
                data = await anext(source)
            first = await run_aside(relay.kept_bytes + len(data), translate_events, relay.feed, data)
            times.end_wait_for_provider()
    except (StopAsyncIteration, StreamBroken, MaybeSent, NotSent, ProviderTooSlow) as problem:
        await source.aclose()
        if isinstance(problem, StreamBroken) and problem.event:
            raise AttemptFailed(failure_in_body(candidate, problem.event)) from None
        message = f"{candidate.provider.name} did not return a stream."
        raise AttemptFailed(Failure("unreadable", message)) from problem
    except BaseException:
        await source.aclose()
        raise
    watch.note_first_byte()
    watch.keep_open()
    is_held_back = bool(readers(gateway, call, reserved.chat))
    stream = _StreamedCall(reserved, candidate, api, source, relay, times, watch, is_held_back)
    headers = {**STREAM_HEADERS, **candidate.executed_model_header}
    return Response(chunks=CallersStream(stream.pass_on(first)), headers=headers, media_type="text/event-stream")


async def held_back(reserved: ReservedChat, response: Response) -> Response:
    """The response with its whole stream, once guards have read it: nothing of it is sent before. Raises the problem
    by which it ends. A caller who leaves meanwhile pays for what was received.
    """
    chunks: Any = response.chunks
    pieces: list[bytes] = []
    try:
        with reserved.gateway.interrupts.allowed(reserved.reservation.call.line):
            async for piece in chunks:
                pieces.append(piece)
    except ProcessStopped:
        raise process_stopped() from None
    except Problem:
        await reserved.free_place()
        raise
    finally:
        await chunks.aclose()
    return msgspec.structs.replace(response, chunks=_all_of(pieces))


async def _all_of(pieces: list[bytes]) -> AsyncGenerator[bytes, None]:
    for piece in pieces:
        yield piece


class CallersStream:
    """The events of a call for its caller. Closing them settles the call, also if nobody has begun to read them."""

    __slots__ = ("_events", "_is_begun")

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        self._events = events
        self._is_begun = False

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Awaitable[bytes]:
        self._is_begun = True
        return self._events.__anext__()

    async def aclose(self) -> None:
        if not self._is_begun:
            await anext(self, b"")  # Python runs the `finally` of a generator only if it was begun
        await self._events.aclose()


class _StreamedCall(msgspec.Struct, frozen=True):
    """A call whose provider has begun to stream."""

    reserved: ReservedChat
    candidate: Candidate
    api: ProviderApi
    source: ByteStream
    relay: StreamRelay
    times: WaitingTimes
    watch: AttemptWatch
    is_held_back: bool  # guards read all of it before the caller gets anything
    settled: list[bool] = msgspec.field(default_factory=list)  # not empty once it is

    async def pass_on(self, first: bytes) -> AsyncGenerator[bytes, None]:
        """Yield the events for the caller; settle the call and close the connection however the stream ends. A stream
        that ends well is settled before its end is sent, so that the caller's next call finds its place free.

        A stream that the provider breaks off, or that cannot be read, ends with an error event and costs nothing; what
        was received is a loss. The same holds for a stream that is interrupted because the process stops. A caller who
        disconnects or reads too slowly pays for what was sent.
        """
        problem: Problem | None = caller_disconnected()
        sent = SentBytes(stores=self.reserved.stores_payload or self.is_held_back)
        bill: Bill | None = None
        try:
            try:
                shown = self._without_key(translate_events(self.api.feed, first))
                is_whole = self.relay.done
                if not is_whole:
                    yield sent.count(shown)
                    self.times.end_wait_for_caller()
                    with self.reserved.gateway.interrupts.allowed(CallerLine()):  # the server notices who leaves
                        async for data in self.source:
                            self.times.end_wait_for_provider()
                            shown = await self._feed(data)
                            if self.relay.done:
                                break
                            if shown:
                                yield sent.count(shown)
                                self.times.end_wait_for_caller()
                if not self.relay.done:
                    shown = await self._end()
                problem = None
                usage = self._usage
                self._note_rate()
                bill = self._bill_of(usage)
                last = await run_aside(sent.size, translate_events, self.api.finish, usage, bill.cost)
                shown += self._without_key(last)
                sent.count(shown)
                await self._complete(bill, sent)
                await self.reserved.free_place()
                yield shown
            except (StreamBroken, MaybeSent, NotSent, ProviderTooSlow, CallerTooSlow, ProcessStopped) as error:
                problem = self._note_problem(error)
                yield self._failed(problem)
        finally:
            try:
                is_answered = self.relay.is_answered
                if isinstance(problem, Cancelled) and self.relay.usage is None and (is_answered or self._may_reason):
                    await read_end(self.source, self._feed_end, is_answered=is_answered)
                    self._note_rate()
            finally:
                bill = bill or self._bill_of_part(problem)
                if not self.settled:
                    self._settle(bill, problem or caller_disconnected(), sent)
            if isinstance(problem, Cancelled | Unavailable):
                self.watch.fail(INTERRUPTED)
            self.watch.note_answer(self.relay.answered)
            self.watch.note_tokens(bill.tokens)
            self.watch.end()
            await self.source.aclose()

    async def _complete(self, bill: Bill, sent: SentBytes) -> None:
        """Settle a call whose stream ended well, once guards have read it. Raises what they say against it."""
        if self.is_held_back:
            try:
                await check_answer(self.reserved, sent.stored, bill, self.candidate)
            except Problem:
                self.settled.append(True)
                raise
        self._settle(bill, None, sent)

    def _failed(self, problem: Problem) -> bytes:
        """The last events of a stream that did not end well. Raises the problem if nothing of the stream was sent."""
        if self.is_held_back:
            raise problem from None
        return self.api.fail(problem)

    async def _end(self) -> bytes:
        """The last events of a stream that the provider has ended without [DONE], or without the last line break.

        Raises StreamBroken if the model had not come to its end.
        """
        shown = b""
        for _ in range(2):
            if self.relay.kept_bytes:
                shown += await self._feed(b"\n")
        if not self.relay.done and self.relay.is_answered:
            shown += await self._feed(b"data: [DONE]\n\n")
        if not self.relay.done:
            raise StreamBroken("ended its stream before the answer was complete")
        return shown

    async def _feed(self, data: bytes) -> bytes:
        """The bytes for the caller that are complete with these of the provider; a long event is read in a thread."""
        size_bytes = self.relay.kept_bytes + len(data)
        if size_bytes <= LONG_BYTES:
            return translate_events(self._translate, data)
        return await run_aside(size_bytes, translate_events, self._translate, data)

    async def _feed_end(self, data: bytes) -> bytes:
        """As `_feed`, for a stream whose caller has left."""
        self.times.end_wait_for_provider()
        return await self._feed(data)

    def _translate(self, data: bytes) -> bytes:
        events = self.relay.feed(data)
        return self._without_key(self.api.feed(events)) if events else b""

    def _without_key(self, events: bytes) -> bytes:
        return bytes(without_plain_key(events, self.candidate.key))

    @property
    def _usage(self) -> Usage:
        """The usage of what was sent; where the provider reports none, the least that it can be."""
        return self.relay.usage or self._estimated_usage(self.relay.least_tokens)

    def _estimated_usage(self, output_tokens: int) -> Usage:
        seconds = self.relay.spoken_seconds
        prices = self.candidate.token_prices
        return estimated_usage(self.reserved.chat, prices, output_tokens=output_tokens, spoken_seconds=seconds)

    def _bill_of(self, usage: Usage) -> Bill:
        prices = self.candidate.token_prices
        return make_bill(prices, usage, max_sound_tokens(prices, self.reserved.chat))

    @property
    def _model_name(self) -> ModelName:
        return self.candidate.provider.slug, self.candidate.model.upstream

    @property
    def _reasons(self) -> bool:
        """Whether the model thinks before it answers: it reported so lately, or the caller asks for it."""
        asked = self.reserved.chat.body.get("reasoning_effort")
        is_known = self.reserved.gateway.reasoning_rates.reasons(self._model_name)
        return is_known or (asked is not None and asked != "none")

    @property
    def _may_reason(self) -> bool:
        """Whether the model may think before it answers: it does, or has a price and reported no usage yet."""
        if self._reasons:
            return True
        is_known = self.reserved.gateway.reasoning_rates.is_known(self._model_name)
        return not is_known and self._bill_of(self._usage).cost > 0

    def _note_rate(self) -> None:
        usage = self.relay.usage
        if usage is None:
            return
        self.reserved.gateway.reasoning_rates.note(
            self._model_name,
            output_tokens=usage.output,
            reasoning_tokens=usage.reasoning,
            seconds=self.times.provider_seconds,
        )

    def _bill_of_part(self, problem: Problem | None) -> Bill:
        """The bill of a stream that did not come to its end. Hidden reasoning of which the provider has not reported
        the tokens counts by the time that it took; where nothing was measured of the model, it may be a loss.
        """
        bill = self._bill_of(self._usage)
        if not isinstance(problem, Cancelled) or self.relay.usage or self.relay.is_answered or not self._reasons:
            return bill
        gateway, chat = self.reserved.gateway, self.reserved.chat
        hidden = gateway.reasoning_rates.tokens(self._model_name, self.times.provider_seconds)
        most = chat.max_output_tokens(gateway.settings.chat_output_tokens)
        tokens = max(self.relay.least_tokens, min(hidden.number, most))
        likely = self._bill_of(self._estimated_usage(tokens))
        if hidden.is_measured:
            return likely
        self.reserved.losses.append(Nanos(max(0, likely.cost - bill.cost)))
        return bill

    def _note_problem(self, error: Exception) -> Problem:
        """Return why a stream was not passed on as a whole; a failure of the provider is counted against it."""
        name = self.candidate.provider.name
        seconds = f"{self.times.max_seconds:g} seconds"
        match error:
            case CallerTooSlow():
                return Cancelled(f"The caller took longer than {seconds} to read its stream.")
            case ProcessStopped():
                return process_stopped()
            case ProviderTooSlow():
                problem: Problem = UpstreamTimeout(f"{name} took longer than {seconds} for its stream.")
            case StreamBroken():
                problem = UpstreamError(f"{name} {self._describe(error)}.")
            case _:
                problem = UpstreamError(f"{name} closed the connection before the end of its stream.")
        self.watch.fail("broken")
        self.reserved.record_failure(self.candidate, Failure("broken", problem.message))
        return problem

    def _describe(self, broken: StreamBroken) -> str:
        """What was wrong with a stream, with the provider's own message if it sent an error."""
        if not broken.event:
            return str(broken)
        message = failure_in_body(self.candidate, broken.event).message
        return f"{broken}: {message.rstrip('.')}"

    def _settle(self, bill: Bill, problem: Problem | None, sent: SentBytes) -> None:
        """Charge what was sent of a stream, or record it as a loss if its caller is not to blame for the problem."""
        self.settled.append(True)
        if isinstance(problem, Cancelled) and self.reserved.gateway.interrupts.is_stopped:
            problem = process_stopped()  # which did not come to be sent, because the caller did not read
        is_charged = problem is None or isinstance(problem, Cancelled)
        if not is_charged:
            self.reserved.losses.append(bill.cost)
        is_cancelled = isinstance(problem, Cancelled | Unavailable)
        is_shown = problem is None or not self.is_held_back
        keeps_items = is_charged and is_shown and self.reserved.keeps_items
        self.reserved.settle(
            "completed" if problem is None else "cancelled" if is_cancelled else "upstream_failure",
            candidate=self.candidate,
            bill=bill if is_charged else None,
            response_bytes=sent.size,
            response=bytes(sent.stored) if is_shown else b"",
            items=items_of(self.api.output_json()) if keeps_items else (),
            problem=problem,
        )
