"""Pass on what a provider makes piece by piece, such as speech or a transcript, and settle the call at its end."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Generic, Protocol, TypeVar

import msgspec

from penstock.chat.form import SentBytes
from penstock.chat.pricing import Bill
from penstock.chat.reserved import ReservedCall
from penstock.chat.stream import CallerTooSlow, ProviderTooSlow, StreamBroken, WaitingTimes
from penstock.chat.streamed_call import caller_disconnected, process_stopped
from penstock.errors import Cancelled, Problem, Unavailable, UpstreamError, UpstreamTimeout
from penstock.interrupts import CallerLine, ProcessStopped
from penstock.net.errors import MaybeSent, NotSent
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure, failure_in_body
from penstock.upstream.watch import INTERRUPTED, AttemptWatch

BROKEN = (StreamBroken, MaybeSent, NotSent, ProviderTooSlow)  # how a provider's stream ends too early

Piece = TypeVar("Piece")
Written = TypeVar("Written", contravariant=True)


class Form(Protocol[Written]):
    """Makes the caller's bytes of the pieces."""

    def part(self, piece: Written) -> bytes: ...
    def fail(self, problem: Problem) -> bytes: ...


class BillOf(Protocol):
    """What that which came so far costs."""

    def __call__(self, *, is_whole: bool) -> Bill: ...


class PassedOn(msgspec.Struct, Generic[Piece], frozen=True):
    """A call while one candidate answers it piece by piece."""

    reserved: ReservedCall
    candidate: Candidate
    watch: AttemptWatch
    times: WaitingTimes
    form: Form[Piece]
    bill: BillOf
    end: Callable[[Bill], bytes]  # the last bytes of a call that ends well
    what: str  # is passed on, such as `sound`
    stores: bool = False  # whether the response may be stored

    async def chunks(self, pieces: AsyncGenerator[Piece, None], first: Piece) -> AsyncGenerator[bytes, None]:
        """Yield the bytes for the caller; settle the call and close the connection however it ends. A call that ends
        well is settled before its end is sent, so that the caller's next call finds its place free.

        What breaks off costs nothing, and neither does a call that is interrupted because the process stops; what the
        provider bills for it is a loss. A caller who disconnects or reads too slowly pays for what came.
        """
        reserved = self.reserved
        problem: Problem | None = caller_disconnected()
        sent = SentBytes(stores=self.stores and reserved.stores_payload)
        bill: Bill | None = None
        try:
            try:
                if data := sent.count(self.form.part(first)):
                    yield data
                with reserved.gateway.interrupts.allowed(CallerLine()):  # the server notices who leaves
                    async with aclosing(pieces):
                        async for piece in pieces:
                            if data := sent.count(self.form.part(piece)):
                                yield data
                problem = None
                bill = self.bill(is_whole=True)
                last = self.end(bill)
                sent.count(last)
                self._settle(bill, problem, sent)
                await reserved.free_place()
                if last:
                    yield last
            except (*BROKEN, AttemptFailed, CallerTooSlow, ProcessStopped, Unavailable) as error:
                problem = self._note_problem(error)
                if last := self.form.fail(problem):
                    yield last
                raise problem from None  # the connection is closed without the end of the response
        finally:
            await pieces.aclose()
            if bill is None:
                bill = self.bill(is_whole=False)
                self._settle(bill, problem, sent)
            if isinstance(problem, Cancelled | Unavailable):
                self.watch.fail(INTERRUPTED)
            self.watch.note_tokens(bill.tokens)
            self.watch.end()

    def _note_problem(self, error: Exception) -> Problem:
        """Return why the call was not answered as a whole; a failure of the provider is counted against it."""
        name = self.candidate.provider.name
        seconds = f"{self.times.max_seconds:g} seconds"
        match error:
            case CallerTooSlow():
                return Cancelled(f"The caller took longer than {seconds} to read its {self.what}.")
            case ProcessStopped():
                return process_stopped()
            case Unavailable():
                return error
            case ProviderTooSlow():
                problem: Problem = UpstreamTimeout(f"{name} took longer than {seconds} for the {self.what}.")
            case AttemptFailed():
                problem = UpstreamError(error.failure.message)
            case StreamBroken():
                problem = UpstreamError(nothing_came(self.candidate, error, self.what).message)
            case _:
                problem = UpstreamError(f"{name} closed the connection before the end of the {self.what}.")
        self.watch.fail("broken")
        self.reserved.record_failure(self.candidate, Failure("broken", problem.message))
        return problem

    def _settle(self, bill: Bill, problem: Problem | None, sent: SentBytes) -> None:
        """Charge what came, or record it as a loss if the caller is not to blame for the problem."""
        reserved = self.reserved
        if isinstance(problem, Cancelled) and reserved.gateway.interrupts.is_stopped:
            problem = process_stopped()
        is_charged = problem is None or isinstance(problem, Cancelled)
        if not is_charged:
            reserved.losses.append(bill.cost)
        is_cancelled = isinstance(problem, Cancelled | Unavailable)
        reserved.settle(
            "completed" if problem is None else "cancelled" if is_cancelled else "upstream_failure",
            candidate=self.candidate,
            bill=bill if is_charged else None,
            response_bytes=sent.size,
            response=sent.stored,
            problem=problem,
        )


def nothing_came(candidate: Candidate, problem: BaseException, what: str) -> Failure:
    """Why a provider made nothing, or not all of it; `what` is that which it was asked for."""
    name = candidate.provider.name
    if isinstance(problem, StreamBroken) and problem.event:
        return failure_in_body(candidate, problem.event)
    reason = str(problem) if isinstance(problem, StreamBroken) else f"did not send any {what}"
    return Failure("unreadable", f"{name} {reason}.")
