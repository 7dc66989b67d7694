"""Calls that wait are interrupted when their caller disconnects or the process stops, and only then."""

import asyncio

import pytest

from penstock.interrupts import CallerGone, CallerLine, Interrupts, ProcessStopped


async def wait_for_ever(interrupts: Interrupts, line: CallerLine) -> str:
    """Wait where it may be interrupted; then go on in the same task."""
    try:
        with interrupts.allowed(line):
            await asyncio.Event().wait()
    except CallerGone:
        await asyncio.sleep(0)  # the task is not cancelled any more
        return "gone"
    except ProcessStopped:
        await asyncio.sleep(0)
        return "stopped"
    return "ended"


async def started(interrupts: Interrupts, line: CallerLine) -> asyncio.Task[str]:
    task = asyncio.create_task(wait_for_ever(interrupts, line))
    await asyncio.sleep(0)
    return task


async def test_a_caller_who_disconnects_interrupts_its_own_call_only() -> None:
    interrupts = Interrupts()
    line = CallerLine()
    other_line = CallerLine()
    task = await started(interrupts, line)
    other = await started(interrupts, other_line)
    line.close()
    assert await task == "gone"
    assert not other.done()
    interrupts.stop()
    assert await other == "stopped"
    assert task.cancelling() == other.cancelling() == 0


async def test_a_call_that_begins_to_wait_too_late_is_interrupted_before_it_waits() -> None:
    line = CallerLine()
    line.close()
    with pytest.raises(CallerGone), Interrupts().allowed(line):
        pytest.fail("the block ran")
    interrupts = Interrupts()
    interrupts.stop()
    with pytest.raises(ProcessStopped), interrupts.allowed(CallerLine()):
        pytest.fail("the block ran")


async def test_nothing_is_interrupted_outside_of_the_block() -> None:
    interrupts = Interrupts()
    line = CallerLine()
    go_on = asyncio.Event()

    async def work() -> str:
        with interrupts.allowed(line):
            pass
        await go_on.wait()
        return "ended"

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    line.close()
    interrupts.stop()
    go_on.set()
    assert await task == "ended"


async def test_a_task_that_is_cancelled_for_another_reason_stays_cancelled() -> None:
    task = await started(Interrupts(), CallerLine())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("reason", ["gone", "stopped"])
async def test_a_block_is_interrupted_also_after_a_block_inside_it_has_ended(reason: str) -> None:
    """A stream may be interrupted, and so may the calls to providers that it makes one after the other."""
    interrupts = Interrupts()
    line = CallerLine()

    async def work() -> None:
        with interrupts.allowed(line):
            with interrupts.allowed(line):
                await asyncio.sleep(0)
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    for _ in range(3):
        await asyncio.sleep(0)
    if reason == "gone":
        line.close()
    else:
        interrupts.stop()
    ended, _ = await asyncio.wait({task}, timeout=60)
    assert ended
    assert isinstance(task.exception(), CallerGone if reason == "gone" else ProcessStopped)
    assert task.cancelling() == 0
