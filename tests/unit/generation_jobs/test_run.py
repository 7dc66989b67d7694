"""A generation may be interrupted at any line and still ends, once."""

import asyncio
import errno
import gc
import random
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock import failpoints
from penstock.errors import Problem, StorageUnavailable
from penstock.generation_jobs import run
from penstock.generation_jobs.job import NewGeneration
from penstock.generations.accept import Accepted
from penstock.jobs.running import Lease, RunningJob
from penstock.media.transfer import Transfer
from penstock.states import VIDEO
from penstock.store import groups
from penstock.store.base import Transaction
from penstock.values import Nanos, nanos
from tests.fake_providers import faults
from tests.fake_providers.scripted import ScriptedProvider
from tests.gateway import Installation, OpenGateway, RunningGateway, failpoint_raises, sqlite_only, two_providers
from tests.leases import claim_lease

HOOK = "https://receiver.example/hook"
UNTOUCHED = (nanos("10"), 0)

# Where a job may be interrupted, and how the video then ends. The provider was called once in each case, so it either
# made the one video that is charged, or the outcome is unknown and nothing is charged.
PLACES = {
    "submit.intent_committed": "UPSTREAM_OUTCOME_UNKNOWN",
    "submit.response_read": "UPSTREAM_OUTCOME_UNKNOWN",
    "submit.id_committed": "completed",
    "poll.mid": "completed",
    "fetch.start": "completed",
    "media.after_fsync": "completed",
    "settle.in_tx": "completed",
    "settle.after_commit": "completed",
}


async def interrupt(running: RunningGateway, place: str, passage: int = 1) -> str:
    """A video whose job is interrupted at a place."""
    with failpoint_raises(place, passage):
        video_id: str = (await running.video(webhook_url=HOOK)).json["id"]

        async def met() -> bool:
            return bool(failpoints._passed.get(place, 0) >= passage) and running.gateway.jobs.running == 0

        await running.wait_until(met)
    return video_id


async def end_once(running: RunningGateway, video_id: str) -> str:
    """How it ended, after checking that money, messages and files show exactly one end."""
    done = await running.wait_for_video(video_id, step_seconds=3)
    outcome: str = done["error"]["code"] if done["error"] else done["status"]
    transfers = await running.transfers(video_id)
    if outcome == "completed":
        assert transfers == {"hold": nanos("0.4"), "capture": nanos("0.4")}
        assert await running.money() == (nanos("9.6"), 0)
    else:
        assert transfers == {"hold": nanos("0.4"), "release": nanos("0.4")}
        assert await running.money() == UNTOUCHED
    events = [row["event"] for row in await running.rows("SELECT event FROM messages")]
    assert events == ["video.completed" if outcome == "completed" else "video.failed"]
    files = [row["role"] for row in await running.rows("SELECT role FROM media")]
    assert files == (["output"] if outcome == "completed" else [])
    return outcome


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.sweep(3)
async def test_interrupted_and_resumed_by_the_next_process(open_gateway: OpenGateway, place: str) -> None:
    async with two_providers() as labs:
        async with open_gateway(labs=labs) as running:
            video_id = await interrupt(running, place)
        async with open_gateway(labs=labs) as running:
            assert await end_once(running, video_id) == PLACES[place]
        assert len(labs[0].videos) <= 1, "never sent twice"


@sqlite_only
async def test_interrupted_where_sending_again_is_safe(open_gateway: OpenGateway) -> None:
    """The outcome is unknown, which does not matter: making the video again costs nothing."""
    async with two_providers() as labs:
        async with open_gateway(labs=labs, disabled_providers=()) as running:
            with failpoint_raises("submit.response_read"):
                video_id = (await running.video(model="atelier/clip", seconds=1, size="64x64")).json["id"]
                await running.wait_until_idle()
        async with open_gateway(labs=labs, disabled_providers=()) as running:
            assert (await running.wait_for_video(video_id))["status"] == "completed"
            assert [row["state"] for row in await running.attempts(video_id)] == ["completed"]


@pytest.mark.parametrize("place", ["submit.id_committed", "media.after_fsync", "settle.in_tx"])
async def test_interrupted_and_resumed_by_the_same_process(open_gateway: OpenGateway, place: str) -> None:
    async with open_gateway() as running:
        assert await end_once(running, await interrupt(running, place)) == "completed"
        assert len(running.lab.videos) == 1


@pytest.mark.parametrize("number", range(6))
@pytest.mark.sweep(3)
async def test_a_commit_without_an_answer(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """One of the writes after the acceptance takes effect, but its connection breaks before the database says so."""
    async with open_gateway() as running:
        store = running.gateway.store
        write = store.write
        count = 0

        async def write_and_break(work: Any, **options: Any) -> Any:
            nonlocal count
            is_in_group = getattr(work, "__module__", "") == groups.__name__  # the first such write is the acceptance
            count += bool(count) or is_in_group
            is_broken = count == number + 2
            result = await write(work, **options)
            if is_broken:
                raise StorageUnavailable("Storage is unavailable.", should_retry=False)
            return result

        monkeypatch.setattr(store, "write", write_and_break)
        video_id = (await running.video(webhook_url=HOOK)).json["id"]
        assert await end_once(running, video_id) == "completed"
        assert len(running.lab.videos) == 1
        assert count > number + 1


@pytest.mark.parametrize("place", ["submit.response_read", "fetch.start", "settle.in_tx"])
@pytest.mark.sweep(3)
async def test_interrupted_while_several_videos_are_made(open_gateway: OpenGateway, place: str) -> None:
    """Three videos in one request, each with its own submission: the second is interrupted, and all with it."""
    async with two_providers() as labs:
        async with open_gateway(labs=labs) as running:
            with failpoint_raises(place, 1 if place == "settle.in_tx" else 2):
                video_id = (await running.video(n=3)).json["id"]
                await running.wait_until_idle()
        async with open_gateway(labs=labs) as running:
            done = await running.wait_for_video(video_id)
            made = 2 if place == "submit.response_read" else 3
            assert (done["status"], len(done["outputs"])) == ("completed", made)
            assert done["metadata"]["cost"] == Decimal("0.4") * made
        assert len(labs[0].videos) == 3


@pytest.mark.parametrize("place", ["submit.response_read", "media.after_fsync", "settle.in_tx"])
@sqlite_only
async def test_an_interrupted_image(open_gateway: OpenGateway, place: str) -> None:
    """The provider's response was not stored: nothing is charged, and nothing is sent again."""
    async with two_providers() as labs:
        async with open_gateway(labs=labs) as running:
            with failpoint_raises(place), pytest.raises(Problem, match="not finished yet"):
                await running.image()
        async with open_gateway(labs=labs) as running:
            (row,) = await running.records()
            record = await running.wait_for_request(row["id"])
            assert (record["status"], record["error_code"], record["cost"]) == ("upstream_failure", "UPSTREAM_ERROR", 0)
            assert await running.money() == UNTOUCHED
        assert len(labs[0].images) == 1


@sqlite_only
async def test_interrupted_at_every_turn_of_the_event_loop(installation: Installation) -> None:
    """Not at named places but wherever it waits: the task is cancelled after a number of turns."""
    chance = random.Random(5)
    async with two_providers() as labs:
        ids = []
        turns = [0, 1, 2, 3, 5, 8, *(chance.randrange(400) for _ in range(3))]
        for number in turns:
            async with installation.open(labs=labs) as running:
                ids.append((await running.video(seconds=1)).json["id"])
                for turn in range(number):
                    await asyncio.sleep(0)
                    running.clock.advance(0.5 if turn % 20 == 0 else 0)
        async with installation.open(labs=labs) as running:
            shown = [await running.wait_for_video(video_id, step_seconds=3) for video_id in ids]
            completed = [video for video in shown if video["status"] == "completed"]
            unknown = [video for video in shown if video["status"] == "failed"]
            assert all(video["error"]["code"] == "UPSTREAM_OUTCOME_UNKNOWN" for video in unknown)
            assert await running.money() == (nanos("10") - len(completed) * nanos("0.1"), 0)
        assert len(labs[0].videos) <= len(ids)
        assert len(completed) <= len(labs[0].invoice)


async def test_a_generation_that_crashes_each_worker_fails(open_gateway: OpenGateway) -> None:
    """It fails after five crashes; others go on."""
    async with open_gateway() as running:
        with failpoint_raises("fetch.start"):
            video_id = (await running.video()).json["id"]
            done = await running.wait_for_video(video_id, step_seconds=5)
        assert done["error"]["code"] == "INTERNAL_ERROR"
        assert len(running.lab.videos) == 1
        assert await running.money() == UNTOUCHED
        assert (await running.wait_for_video((await running.video()).json["id"]))["status"] == "completed"


@sqlite_only
async def test_a_regular_restart_is_no_crash(open_gateway: OpenGateway) -> None:
    async with two_providers() as labs:
        labs[0].videos.next(faults.never_ends)
        async with open_gateway(labs=labs) as running:
            video_id = (await running.video()).json["id"]
            await labs[0].videos.reached(1)
        for _ in range(7):
            async with open_gateway(labs=labs):
                pass
        next(iter(labs[0].video_jobs.values())).states.append("completed")
        async with open_gateway(labs=labs) as running:
            assert (await running.wait_for_video(video_id))["status"] == "completed"


# ------------------------------------------------------------------------------------------------------------- one end


async def test_two_workers_and_one_generation(open_gateway: OpenGateway) -> None:
    """The first was stopped for so long that the second took over; when it goes on, it changes nothing."""
    async with open_gateway() as running:
        gate = faults.Gate()
        running.lab.polls.next(gate)
        video_id = (await running.video(webhook_url=HOOK)).json["id"]

        async def polled() -> bool:
            return len(running.lab.polls) == 1

        await running.wait_until(polled)
        await run_to_end(running, await take_over(running, video_id))
        messages = "SELECT id, event, body FROM messages"
        before = await running.get_video(video_id), await running.money(), await running.rows(messages)
        gate.open()
        await running.wait_until_idle()
        assert (await running.get_video(video_id), await running.money(), await running.rows(messages)) == before
        assert await end_once(running, video_id) == "completed"


@sqlite_only
async def test_a_running_job_keeps_nothing_of_its_acceptance(open_gateway: OpenGateway) -> None:
    """Its request and plan may be large, and there are thousands of jobs."""
    async with open_gateway() as running:
        running.lab.videos.next(faults.never_ends)
        video_id = (await running.video()).json["id"]
        await running.lab.videos.reached(1)
        accepted = [item for item in gc.get_objects() if isinstance(item, Accepted | NewGeneration)]
        kept = [item for item in accepted if item.row.id == video_id]
        assert kept == []


async def take_over(running: RunningGateway, video_id: str) -> Lease:
    """Claim the lease, as if its holder had not renewed it for long; for an hour, because nothing renews it."""
    until_ms = running.clock.steady_ms() + 3_600_000

    async def write(tx: Transaction) -> Lease:
        values = {"ids": f'["{video_id}"]', "until_ms": until_ms, "now_ms": 2**62, "crashes_max": 99}
        row = await tx.one("claim_generations", **values)
        assert row is not None
        return Lease(row["id"], row["lease_token"])

    return await running.gateway.store.write(write)


async def run_to_end(running: RunningGateway, lease: Lease) -> None:
    running_job = asyncio.create_task(run.run_generation(running.gateway, RunningJob(lease)))

    async def met() -> bool:
        return running_job.done()

    await running.wait_until(met)
    await running_job


@sqlite_only
async def test_a_provider_that_was_removed_from_the_configuration(open_gateway: OpenGateway) -> None:
    """What was sent to it may have been made: its outcome is unknown, and no other provider is tried. What was not sent
    yet is made by the next provider.
    """
    async with two_providers() as (lab, annex):
        lab.videos.next(faults.never_ends)
        async with open_gateway(labs=(lab, annex), annex=True) as running:
            begun = (await running.video()).json["id"]
            await lab.videos.reached(1)
        async with open_gateway(labs=(lab, annex), annex=True, works=False, worker=False) as running:
            fresh = (await running.video()).json["id"]
        async with open_gateway(labs=(lab, annex), providers={"annex": annex.settings()}) as running:
            assert (await running.wait_for_video(begun))["error"]["code"] == "UPSTREAM_OUTCOME_UNKNOWN"
            assert (await running.wait_for_video(fresh))["metadata"]["provider"] == "annex"
        assert (len(lab.videos), len(annex.videos)) == (1, 1)


# --------------------------------------------------------------------------------------------------------------- clocks


@pytest.mark.parametrize("hours", [1, -1, 25])
async def test_a_wall_clock_that_jumps(open_gateway: OpenGateway, hours: int) -> None:
    """Leases, waits and durations do not change with it."""
    async with open_gateway() as running:
        video_id = (await running.video()).json["id"]
        await running.lab.videos.reached(1)
        running.clock.jump(hours * 3600)
        running.clock.advance(12)
        await asyncio.sleep(0)
        assert await claim_lease(running.gateway.jobs, video_id) is None, "its worker is alive"
        record = await running.wait_for_request(video_id)
        assert record["status"] == "completed"
        assert record["duration_ms"] >= 0
        shown = await running.get_video(video_id)
        assert shown["completed_at"] >= shown["created_at"]
        running.clock.jump(-hours * 3600)
        assert len(running.lab.videos) == 1


@sqlite_only
async def test_a_video_that_is_accepted_after_the_wall_clock_was_set_back(open_gateway: OpenGateway) -> None:
    """Its deadline is by the steady clock, and has not passed already."""
    async with open_gateway() as running:
        running.clock.jump(-25 * 3600)
        video_id = (await running.video()).json["id"]
        assert (await running.wait_for_request(video_id))["status"] == "completed"


# ---------------------------------------------------------------------------------------------------------- everything

steps = st.sampled_from(
    ["video", "video", "image", "refused", "failing", "lost", "partial", "cancel", "top up", "purge", "crash", "wait"]
)


class Model:
    """Random steps, and what the balance must be after them according to the provider's invoice."""

    def __init__(self, running: RunningGateway, credit: Nanos) -> None:
        self.running, self.credit = running, credit
        self.ids: list[str] = []

    async def step(self, step: str) -> None:
        act: Callable[[], Awaitable[None]] = getattr(self, "do_" + step.replace(" ", "_"))
        await act()
        assert await self.running.run_audit() == []

    async def video(self, **body: Any) -> None:
        try:
            self.ids.append((await self.running.video(seconds=1, **body)).json["id"])
        except Problem as problem:
            if problem.status != 402:
                raise

    async def do_video(self) -> None:
        await self.video()

    async def do_image(self) -> None:
        try:
            await self.running.image()
        except Problem as problem:
            if problem.status not in (402, 504):
                raise

    async def do_refused(self) -> None:
        with pytest.raises(Problem):
            await self.running.video(seconds=10**4)

    async def do_failing(self) -> None:
        self.running.lab.videos.next(faults.fails)
        await self.video()

    async def do_lost(self) -> None:
        self.running.lab.videos.next(faults.dropped)
        await self.video()

    async def do_partial(self) -> None:
        self.running.lab.videos.next(faults.ok, faults.broken)
        await self.video(n=2)

    async def do_cancel(self) -> None:
        if self.ids:
            await self.running.cancel(self.ids[len(self.ids) // 2])

    async def do_top_up(self) -> None:
        await self.running.add_credit("0.2")
        self.credit = Nanos(self.credit + nanos("0.2"))

    async def do_purge(self) -> None:
        rows = await self.running.records()
        done = [row["id"] for row in rows if row["status"] not in ("pending", "processing")]
        if done:
            await self.running.purge(done[0])

    async def do_crash(self) -> None:
        with failpoint_raises("poll.mid", 1):
            for _ in range(10):
                await asyncio.sleep(0)
                self.running.clock.advance(1)

    async def do_wait(self) -> None:
        self.running.clock.advance(2)
        await self.running.add_credit("0")  # what was to be written before is written now

    async def end(self) -> None:
        await self.running.add_credit("0")
        for row in await self.running.records():
            await self.running.wait_for_request(row["id"], step_seconds=3)
        rows = await self.running.records()
        spent = sum(row["cost"] for row in rows)
        assert await self.running.money() == (self.credit - spent, 0)
        lab: ScriptedProvider = self.running.lab
        assert spent <= nanos(lab.bill_usd), "nothing is charged that the provider did not make"
        for row in rows:
            assert row["cost"] == 0 or row["status"] == "completed"


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(plan=st.lists(steps, min_size=5, max_size=30))
@sqlite_only
def test_money_is_conserved(plan: list[str], tmp_path_factory: pytest.TempPathFactory, dialect: str) -> None:
    """After every step, in any order, the audit finds nothing; and in the end no money is missing."""

    async def main() -> None:
        installation = Installation(tmp_path_factory.mktemp("installation"), "")
        async with installation.open(starting_credit_usd="0.9") as running:
            model = Model(running, nanos("0.9"))
            for step in plan:
                await model.step(step)
            await model.end()

    asyncio.run(main())


# --------------------------------------------------------------------------------------------------------------- states

EVENTS = ("show", "complete", "fail", "cancel", "claim", "stale")


@sqlite_only
async def test_states_only_move_forward(open_gateway: OpenGateway) -> None:
    """Thousands of events in random order, each with the statements that jobs use."""
    chance = random.Random(3)
    async with open_gateway(works=False, worker=False, starting_credit_usd="1000", audited=False) as running:
        store, org_id = running.gateway.store, running.caller.org_id
        for _ in range(30):
            video_id = (await running.video(seconds=1)).json["id"]
            state = "queued"
            token = 0  # not claimed yet

            async def write(tx: Transaction, event: str, token: int, video_id: str = video_id) -> int:
                values: dict[str, Any] = {"id": video_id, "lease_token": token}
                if event == "show":
                    return await tx.run("check_lease", **values, is_progress=0, percent=chance.randrange(100))
                if event == "complete":
                    values |= {"result": b"{}", "at_ms": 1, "expires_at_ms": 2, "payload_expires_at_ms": 3}
                    return await tx.run("complete_generation", **values)
                if event == "cancel":
                    return int(await tx.one("request_cancel", id=video_id, org_id=org_id) is not None)
                values |= {"error_code": "X", "error_message": "x", "payload_expires_at_ms": 3}
                return await tx.run("fail_generation", **values)

            for event in chance.choices(EVENTS, k=40):
                if event == "claim":
                    lease = await claim_lease(running.gateway.jobs, video_id)
                    token = lease.token if lease else token
                    running.clock.advance(running.gateway.settings.lease_seconds)
                    continue
                used = token - 1 if event == "stale" else token
                changed = await store.write(lambda tx, e=event, u=used: write(tx, e, u))  # type: ignore[misc]
                row = await store.one("get_generation", id=video_id, org_id=org_id)
                assert row is not None
                now = row["status"]
                assert now == state or now in VIDEO[state], (state, event, now)
                assert not (event == "stale" and changed), "a worker that lost its lease changes nothing"
                ended = now == "completed"
                assert all((row[name] is not None) == ended for name in ("completed_at_ms", "expires_at_ms", "result"))
                state = now


SHORTAGES = [MemoryError(), RuntimeError("can't start new thread"), OSError(errno.EMFILE, "Too many open files")]


def without_resources(monkeypatch: pytest.MonkeyPatch, problem: Exception, times: int) -> None:
    """Let this process fail so often to store an output."""
    store_output = Transfer.store_output
    left = iter(range(times))

    async def fail_or_store(*arguments: Any, **options: Any) -> Any:
        if next(left, None) is not None:
            raise problem
        return await store_output(*arguments, **options)

    monkeypatch.setattr(Transfer, "store_output", fail_or_store)


@pytest.mark.parametrize("problem", SHORTAGES, ids=str)
@sqlite_only
async def test_a_shortage_of_this_machine_is_waited_for_and_counts_no_crash(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    without_resources(monkeypatch, problem, 10)
    async with open_gateway() as running:
        video_id = (await running.video(webhook_url=HOOK)).json["id"]
        assert await end_once(running, video_id) == "completed"
        assert len(running.lab.videos) == 1
        assert await running.rows("SELECT crashes FROM generations") == [{"crashes": 0}]


@sqlite_only
async def test_a_shortage_that_lasts_ends_at_the_deadline(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_resources(monkeypatch, MemoryError(), 10_000)
    async with open_gateway(job_deadline_seconds=60) as running:
        done = await running.wait_for_video((await running.video()).json["id"], step_seconds=5)
        assert done["error"]["code"] == "STORAGE_UNAVAILABLE"
        assert await running.money() == UNTOUCHED


@sqlite_only
async def test_other_errors_are_not_waited_for(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    without_resources(monkeypatch, RuntimeError("a mistake"), 1)
    async with open_gateway() as running:
        video_id = (await running.video()).json["id"]
        await running.wait_until_idle()
        assert (await running.get_video(video_id))["status"] == "in_progress"
