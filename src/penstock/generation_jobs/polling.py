"""Poll the job that a provider runs for an attempt, until it has ended, is cancelled or takes too long."""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from msgspec.structs import replace

from penstock.accounts.prices import is_callers_risk
from penstock.clock import Clock
from penstock.errors import Cancelled, UpstreamTimeout
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generation_jobs.job import Job, confirm_survival, is_cancel_requested, store_progress
from penstock.providers.spec import FailureKind, Result
from penstock.telemetry.call_report import provider_wait
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, job_failure, unknown_outcome

# How long the answers to polls may be of these kinds, without any other: the provider does not know the job; or what it
# says cannot be read, which may pass, as a proxy's page does, or a state of jobs that is new.
_PATIENCE_SECONDS: Mapping[FailureKind, float] = {"rejected": 120.0, "unreadable": 3600.0}
_GIVEN_UP: Mapping[FailureKind, str] = {
    "rejected": "{} no longer knows the job.",
    "unreadable": "{} reports on the job in a form that the gateway cannot read.",
}
_PAUSE_SECONDS_MIN = 0.05
# A random factor of each pause, which is then shortened to the next shared moment: by a sixteenth on average, at most.
_PAUSE_FACTOR_MIN = 0.95
_PAUSE_FACTOR_MAX = 1.15
_FIRST_POLLS_PER_SECOND = 500
_CANCELLED_POLLS = 5
_CANCELLED_POLL_SECONDS = 1.0
_POLLS_APART_SECONDS = 0.02  # at least, between the moments at which jobs are polled
_POLLED_TOGETHER = 32  # jobs, if there are so many
_SHORTENED_PART = 8  # a pause is shortened by at most this part of it
_PAUSE_GROWTH = 1.15  # each pause between polls as a multiple of the one before


class Polling:
    """Polls the job of one attempt. `submit_again` sends its request again, if the provider has forgotten the job."""

    def __init__(
        self, gateway: Gateway, job: Job, candidate: Candidate, submit_again: Callable[[], Awaitable[Result]]
    ) -> None:
        self.gateway = gateway
        self.job = job
        self.candidate = candidate
        self.provider = candidate.provider
        self.op = candidate.model.op
        self.submit_again = submit_again
        self.ended: Result | None = None  # how the job ended that was cancelled, or took too long

    async def wait_until_done(self, result: Result) -> Result:
        """Poll a job to its end and return its completed result. Raises AttemptFailed when the provider failed it,
        Cancelled or UpstreamTimeout when it was cancelled or took too long; failed polls are repeated.
        """
        if not result.done:
            with self.job.running.wakeups.waiting() as wakeup:
                result = await self._poll_until_done(result, wakeup)
        if result.status == "cancelled" and await is_cancel_requested(self.gateway, self.job):
            self.ended = result
            raise Cancelled()
        if result.status != "completed":
            raise AttemptFailed(job_failure(self.candidate, result))
        return result

    async def _poll_until_done(self, result: Result, wakeup: asyncio.Event) -> Result:
        """Poll after pauses that the provider hints at or that grow, and that grow faster while polls fail."""
        clock = self.gateway.clock
        pause_max = self.gateway.settings.poll_seconds_max
        pause = min(self.op.poll_seconds, pause_max)
        backoff = 0.0
        lost = _LostJob(self.provider.name, clock)
        rounds = 0
        while not result.done:
            await store_progress(self.gateway, self.job, result)
            if rounds and not self.op.safe_to_resubmit:  # one that is sent again starts from nothing
                await confirm_survival(self.gateway, self.job)
            rounds += 1
            hinted = min(result.poll_after_seconds or pause, pause_max)
            seconds = max(hinted, backoff, _PAUSE_SECONDS_MIN)
            with provider_wait():
                await clock.wait(wakeup, self._pause_seconds(rounds, seconds))
            wakeup.clear()
            await self._cancel_if_requested(result)
            await self._stop_at_deadline(result)
            try:
                polled = await self.gateway.upstream.poll(self.candidate, result.ref)
            except AttemptFailed as problem:
                if problem.failure.kind == "rejected" and self.op.safe_to_resubmit:
                    result = await self.submit_again()
                else:
                    lost.note_failed_poll(problem.failure.kind)
                backoff = min(2 * max(backoff, pause), pause_max)
                continue
            failpoint("poll.mid")
            backoff = 0.0
            lost.note_poll()
            pause = max(pause, min(pause * _PAUSE_GROWTH, pause_max / 4))
            result = _with_ids_of(polled, result)
        return result

    def _pause_seconds(self, rounds: int, seconds: float) -> float:
        """A pause of about `seconds`. The first pause of a resumed job is random, so that a restart with thousands of
        jobs does not poll them all at once; a suspect does not wait, because its trial must be short.
        """
        shortest = seconds * _PAUSE_FACTOR_MIN
        longest = seconds * _PAUSE_FACTOR_MAX
        if self.job.history.is_resumed and rounds == 1:
            if self.job.running.lease.is_suspect:
                return 0.0
            shortest = 0.0
            longest = max(longest, self.gateway.jobs.running / _FIRST_POLLS_PER_SECOND)
        pause = random.uniform(shortest, longest)  # noqa: S311 - guards nothing
        return shared_pause(self.gateway.clock.monotonic(), pause, self.gateway.jobs.running)

    async def _cancel_if_requested(self, result: Result) -> None:
        """Ask the provider to cancel if a cancel was requested; raise Cancelled if it did.

        A job that has just ended is not cancelled: some providers would delete outputs that are made and paid for. A
        cancel wakes its job, so one that was never woken need not ask the store.
        """
        if not self.job.running.wakeups.was_woken or not await is_cancel_requested(self.gateway, self.job):
            return
        with suppress(AttemptFailed):
            if (await self.gateway.upstream.poll(self.candidate, result.ref)).done:
                return
        if await self.gateway.upstream.cancel(self.candidate, result.ref):
            # A cancelled job can often no longer be asked about: then this is None.
            last = await self._poll_cancelled(result)
            if last is None or last.status != "completed":
                self.ended = last
                raise Cancelled()

    async def _stop_at_deadline(self, result: Result) -> None:
        """After the deadline, ask the provider to cancel and raise UpstreamTimeout, unless the job has just ended."""
        if self.gateway.clock.steady_ms() < self.job.row.deadline_ms:
            return
        last = await poll_or_none(self.gateway, self.candidate, result)
        if last is None or not last.done:
            await self.gateway.upstream.cancel(self.candidate, result.ref)
            self.ended = await self._poll_cancelled(result) if self._is_callers_risk else None
            raise UpstreamTimeout(f"{self.provider.name} did not finish in time.", should_retry=False)

    async def _poll_cancelled(self, result: Result) -> Result | None:
        """Ask about a job after its cancel; None if it can no longer be asked about. Where the caller pays for the time
        of the machine, some times, until the provider says how long that was.
        """
        last = await poll_or_none(self.gateway, self.candidate, result)
        for _ in range(_CANCELLED_POLLS if self._is_callers_risk else 0):
            if last is None or last.done:
                break
            await self.gateway.clock.sleep(_CANCELLED_POLL_SECONDS)
            last = await poll_or_none(self.gateway, self.candidate, result)
        return last

    @property
    def _is_callers_risk(self) -> bool:
        return is_callers_risk(self.candidate.model, self.job.request)


class _LostJob:
    """Gives a job up about which polls have learned nothing for too long."""

    def __init__(self, provider_name: str, clock: Clock) -> None:
        self.provider_name = provider_name
        self.clock = clock
        self.kind: FailureKind | None = None
        self.since = 0.0

    def note_poll(self) -> None:
        self.kind = None

    def note_failed_poll(self, kind: FailureKind) -> None:
        """Raises AttemptFailed if polls have failed like this for longer than they may."""
        if kind != self.kind:
            self.kind = kind
            self.since = self.clock.monotonic()
        elif kind in _PATIENCE_SECONDS and self.clock.monotonic() - self.since > _PATIENCE_SECONDS[kind]:
            raise AttemptFailed(unknown_outcome(_GIVEN_UP[kind].format(self.provider_name)))


def shared_pause(now: float, pause: float, jobs: int) -> float:
    """Shorten a pause so that it ends together with those of other jobs, of which so many run in this process.

    Jobs that end at the same moment share transactions and waits for the disk, so each of them costs less. The more
    jobs there are, the closer are these moments, so that the event loop is never busy with polls for long.
    """
    return max(0.0, pause - (now + pause) % _moments_apart(pause, jobs))


def _moments_apart(pause: float, jobs: int) -> float:
    """The seconds between two moments, doubled as often as possible: so jobs with different pauses share moments."""
    longest = min(pause / _SHORTENED_PART, _POLLED_TOGETHER * pause / max(jobs, 1))
    doublings = math.frexp(longest / _POLLS_APART_SECONDS)[1] - 1
    return math.ldexp(_POLLS_APART_SECONDS, max(0, doublings))


def _with_ids_of(polled: Result, before: Result) -> Result:
    """The result of a poll with those ids of the one before that it does not repeat."""
    if polled.upstream_id and polled.ref == before.ref:
        return polled
    return replace(polled, ref={**before.ref, **polled.ref}, upstream_id=polled.upstream_id or before.upstream_id)


async def poll_or_none(gateway: Gateway, candidate: Candidate, result: Result) -> Result | None:
    """Poll once; None if that fails."""
    try:
        return await gateway.upstream.poll(candidate, result.ref)
    except AttemptFailed:
        return None
