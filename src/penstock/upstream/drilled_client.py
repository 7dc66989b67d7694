"""Calls to providers in which faults happen that the caller has asked for, instead of or on top of the real thing."""

from dataclasses import replace
from typing import Any, Literal

import msgspec

from penstock.net.errors import MaybeSent, NotSent
from penstock.net.response import ByteStream
from penstock.providers.spec import Reply, Result
from penstock.upstream.candidate import Candidate
from penstock.upstream.client import Upstream
from penstock.upstream.drill import Drill
from penstock.upstream.failures import AttemptFailed, Failure, connection_failure, http_failure

# What would be sent: a generation, a call whose response is passed on, or a question about a job that runs.
Sent = Literal["generation", "call", "question"]
_NOTE = " (simulated: the call asked for it by X-Service-Fault)"


class DrilledUpstream(Upstream):
    """Every call to a provider passes here. One without a drill goes straight on.

    What is simulated in full calls nobody. A slow provider is called, and its answer held back.
    """

    async def submit(self, candidate: Candidate, *args: Any, **more: Any) -> Result:
        if candidate.drill is None:
            return await super().submit(candidate, *args, **more)
        self._fail(candidate, candidate.drill, "generation")
        candidate.drill.submitted = started = candidate.drill.clock.monotonic()
        result = await super().submit(candidate, *args, **more)
        await self._slow_down(candidate, candidate.drill, started)
        return result

    async def poll(self, candidate: Candidate, *args: Any, **more: Any) -> Result:
        if candidate.drill is None:
            return await super().poll(candidate, *args, **more)
        self._fail(candidate, candidate.drill, "question")
        return _held_back(candidate.drill, await super().poll(candidate, *args, **more))

    async def cancel(self, candidate: Candidate, *args: Any, **more: Any) -> bool:
        try:
            if candidate.drill is not None:
                self._fail(candidate, candidate.drill, "question")
        except AttemptFailed:
            return False
        return await super().cancel(candidate, *args, **more)

    async def send_chat(self, candidate: Candidate, *args: Any, **more: Any) -> Reply:
        if candidate.drill is None:
            return await super().send_chat(candidate, *args, **more)
        self._fail(candidate, candidate.drill, "call")
        started = candidate.drill.clock.monotonic()
        reply = await super().send_chat(candidate, *args, **more)
        await self._slow_down(candidate, candidate.drill, started)
        return reply

    async def stream_chat(self, candidate: Candidate, *args: Any, **more: Any) -> ByteStream:
        if candidate.drill is None:
            return await super().stream_chat(candidate, *args, **more)
        self._fail(candidate, candidate.drill, "call")
        started = candidate.drill.clock.monotonic()
        stream = await super().stream_chat(candidate, *args, **more)
        try:
            await self._slow_down(candidate, candidate.drill, started)
        except BaseException:
            await stream.aclose()
            raise
        return stream

    def _fail(self, candidate: Candidate, drill: Drill, sent: Sent) -> None:
        """Raise AttemptFailed as the real thing would, if a fault takes the place of the call."""
        fault = drill.current
        try:
            if fault is None or fault.kind == "slow":
                return
            if fault.kind == "status":
                self._refuse(candidate, Reply(int(fault.number), {}, b"{}"), sent)
            if fault.kind == "lost" and sent != "question":
                raise AttemptFailed(connection_failure(candidate.provider, MaybeSent("simulated")))
            raise AttemptFailed(connection_failure(candidate.provider, NotSent("simulated")))
        except AttemptFailed as problem:
            raise AttemptFailed(_noted(problem.failure)) from None

    def _refuse(self, candidate: Candidate, reply: Reply, sent: Sent) -> None:
        """Raise AttemptFailed for a status of an error, as this kind of call does."""
        if sent == "generation":
            self._read_submission(candidate, reply)
        raise AttemptFailed(http_failure(candidate, reply))

    async def _slow_down(self, candidate: Candidate, drill: Drill, started: float) -> None:
        """Wait so that a call that began then takes longer. Raises AttemptFailed if it takes longer than it may."""
        if (slowness := drill.slowness) is None:
            return
        took = drill.clock.monotonic() - started
        whole = slowness.whole_seconds(took)
        most = self._settings.upstream_seconds
        await drill.clock.sleep(max(0.0, min(whole, most) - took))
        if whole > most:
            timeout = MaybeSent("simulated", timeout=True)
            raise AttemptFailed(_noted(connection_failure(candidate.provider, timeout)))


def _held_back(drill: Drill, result: Result) -> Result:
    """The state of a job at a slow provider: it runs until it has taken as long as the fault says."""
    slowness = drill.slowness
    if slowness is None or result.status != "completed":
        return result
    now = drill.clock.monotonic()
    job = str(sorted(result.ref.items()))
    due = drill.due.setdefault(job, drill.submitted + slowness.whole_seconds(now - drill.submitted))
    if now >= due:
        return result
    return msgspec.structs.replace(result, status="in_progress", files=(), usage={}, cost_usd=None)


def _noted(failure: Failure) -> Failure:
    return replace(failure, message=failure.message + _NOTE)
