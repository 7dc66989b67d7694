"""A running job: its wake-ups, its send guard, its trial, and the crashes that its lease counts."""

import asyncio

from penstock.jobs.running import Lease, PartialImages, RunningJob


def job(crashes: int = 0) -> RunningJob:
    return RunningJob(Lease("req_1", 1, crashes))


async def test_a_wake_before_anything_waits_is_not_lost() -> None:
    woken = job()
    woken.wake()
    with woken.wakeup() as wakeup:
        assert wakeup.is_set()
    with woken.wakeup() as wakeup:
        assert not wakeup.is_set(), "it counts once"


async def test_each_waiting_part_is_woken() -> None:
    woken = job()
    with woken.wakeup() as first, woken.wakeup() as second:
        assert not first.is_set()
        woken.wake()
        assert first.is_set()
        assert second.is_set()


async def test_waiting_until_sent_waits_for_all_that_is_sending() -> None:
    sending = job()
    await sending.wait_until_sent()
    with sending.sending():
        with sending.sending():
            waiting = asyncio.create_task(sending.wait_until_sent())
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 60)


async def test_a_trial_ends_when_work_was_survived() -> None:
    suspect = job(crashes=2)
    waiting = [asyncio.create_task(suspect.wait_until_survived()) for _ in range(2)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    suspect.mark_survived()
    await asyncio.wait_for(asyncio.gather(*waiting), 60)
    await suspect.wait_until_survived()  # from now on at once


def test_crashes_make_a_generation_suspect_and_then_hopeless() -> None:
    leases = [Lease("req_1", 1, crashes) for crashes in range(7)]
    assert [lease.is_suspect for lease in leases] == [False, False, True, True, True, True, True]
    assert [lease.is_hopeless for lease in leases] == [False, False, False, False, False, True, True]


def test_survived_crashes_are_forgotten() -> None:
    survivor = job(crashes=3)
    survivor.forget_crashes()
    assert survivor.lease == Lease("req_1", 1, 0)


async def test_unfinished_images_are_kept_up_to_a_limit_and_the_job_does_not_wait() -> None:
    watched = job()
    watched.task = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]
    watched.partial_images = PartialImages(2)
    for number in range(3):
        watched.partial_images.add({"number": number})
    assert await watched.wait_for_image(60) is False
    assert watched.partial_images.take_all() == [{"number": 1}, {"number": 2}]
    assert watched.partial_images.take_all() == []
    assert await watched.wait_for_image(0) is False
    watched.task.cancel()
    assert await watched.wait_for_image(60) is True
