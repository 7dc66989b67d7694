"""A running job: its wake-ups, its send guard, and the crashes that its lease counts."""

import asyncio

from penstock.jobs.running import Lease, RunningJob, SendGuard, Wakeups


async def test_a_wake_before_anything_waits_is_not_lost() -> None:
    wakeups = Wakeups()
    wakeups.wake()
    with wakeups.waiting() as wakeup:
        assert wakeup.is_set()
    with wakeups.waiting() as wakeup:
        assert not wakeup.is_set(), "it counts once"


async def test_each_waiting_part_is_woken() -> None:
    wakeups = Wakeups()
    with wakeups.waiting() as first, wakeups.waiting() as second:
        assert not first.is_set()
        wakeups.wake()
        assert first.is_set()
        assert second.is_set()


async def test_waiting_until_sent_waits_for_all_that_is_sending() -> None:
    guard = SendGuard()
    await guard.wait_until_sent()
    with guard.sending():
        with guard.sending():
            waiting = asyncio.create_task(guard.wait_until_sent())
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 60)


def test_crashes_make_a_generation_suspect_and_then_hopeless() -> None:
    leases = [Lease("req_1", 1, crashes) for crashes in range(7)]
    assert [lease.is_suspect for lease in leases] == [False, False, True, True, True, True, True]
    assert [lease.is_hopeless for lease in leases] == [False, False, False, False, False, True, True]


def test_survived_crashes_are_forgotten() -> None:
    survivor = RunningJob(Lease("req_1", 1, 3))
    survivor.forget_crashes()
    assert survivor.lease == Lease("req_1", 1, 0)
