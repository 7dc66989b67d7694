"""Child processes run tasks within their limits, and the gateway survives whatever happens to them."""

from __future__ import annotations

import asyncio
import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from PIL import Image

from penstock.imaging import children, fork_server, workers
from penstock.imaging.child import ChildTask
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.upstream.local import child_tasks
from penstock.values import OrgId
from penstock_atelier.table import PROVIDER
from tests.unit.imaging.images import png, slow_png
from tests.work import peak_bytes

ORG = OrgId("org_1")

T = TypeVar("T")
SOURCE = Path(workers.__file__).parents[2]
ATELIER_TASKS = child_tasks((PROVIDER,))
VIDEO: dict[str, Any] = {"prompt": "sea", "image": None, "seconds": 20, "width": 1280, "height": 720, "seed": 0}


def noise_png() -> bytes:
    """A file of 8 MB that is returned as it came."""
    noise = Image.frombytes("RGB", (1660, 1660), random.Random(2).randbytes(3 * 1660 * 1660))
    buffer = io.BytesIO()
    noise.save(buffer, "PNG", compress_level=0)
    return buffer.getvalue()


async def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in a minute"
        await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@asynccontextmanager
async def busy_child(pool: WorkerPool) -> AsyncIterator[tuple[asyncio.Task[dict[str, Any]], int]]:
    """Start a long video; yield its task and the id of the process that works on it."""
    begun = asyncio.Event()
    job = asyncio.create_task(pool.run("atelier:clip", for_org=ORG, progress=lambda _: begun.set(), **VIDEO))
    async with asyncio.timeout(60):
        await begun.wait()
    (pid,) = pool.pids
    assert not job.done()
    yield job, pid


async def test_a_task_returns_what_its_function_returns() -> None:
    async with WorkerPool() as pool:
        result = await pool.run("image.normalise_input", data=png(40, 30), for_org=ORG)
    assert result == {"data": png(40, 30), "content_type": "image/png", "width": 40, "height": 30}


async def test_a_child_is_kept_for_the_next_task() -> None:
    async with WorkerPool(workers=2) as pool:
        assert pool.pids == []
        await pool.run("image.normalise_input", data=png(), for_org=ORG)
        first = pool.pids
        await pool.run("image.normalise_input", data=png(), for_org=ORG)
        assert pool.pids == first
        assert len(first) == 1


async def test_a_child_only_gets_the_files_of_one_organization() -> None:
    async with WorkerPool(workers=2) as pool:
        seen: dict[str, set[int]] = {"a": set(), "b": set(), "c": set()}
        for name in "abcabcaab":
            await pool.run("image.normalise_input", data=png(), for_org=OrgId(name))
            seen[name].add(pool._idle[-1].pid)
            assert len(pool.pids) <= 2
    assert seen["a"].isdisjoint(seen["b"] | seen["c"])
    assert seen["b"].isdisjoint(seen["c"])


async def test_organizations_that_take_turns_keep_their_children() -> None:
    async with WorkerPool(workers=2) as pool:
        for _ in range(3):
            for name in "ab":
                await pool.run("image.normalise_input", data=png(), for_org=OrgId(name))
            pids = pool.pids
            assert len(pids) == 2
            for name in "ba":
                await pool.run("image.normalise_input", data=png(), for_org=OrgId(name))
            assert pool.pids == pids


async def test_the_pool_recovers_when_the_process_that_forks_dies() -> None:
    async with WorkerPool() as pool:
        await pool.run("image.normalise_input", data=png(), for_org=ORG)
        (pid,) = pool.pids
        forker = pool._fork_server._process
        assert forker is not None
        os.kill(forker.pid, signal.SIGKILL)
        await wait_until(lambda: not is_running(pid))
        await wait_until(lambda: pool._fork_server._control is None)
        assert (await pool.run("image.normalise_input", data=png(), for_org=ORG))["width"] == 40
        assert pid not in pool.pids


async def test_there_are_no_more_children_than_workers() -> None:
    async with WorkerPool(workers=2) as pool:
        jobs = [pool.run("image.convert", data=png(), output_format="jpeg", for_org=ORG) for _ in range(8)]
        results = await asyncio.gather(*jobs)
        assert len(pool.pids) == 2
    assert {result["content_type"] for result in results} == {"image/jpeg"}


async def test_a_refusal_carries_its_message_and_keeps_the_child() -> None:
    async with WorkerPool() as pool:
        await pool.run("image.normalise_input", data=png(), for_org=ORG)
        before = pool.pids
        with pytest.raises(WorkFailed, match="not one of") as caught:
            await pool.run("image.normalise_input", data=b"%!PS-Adobe-3.0 EPSF-3.0", for_org=ORG)
        assert caught.value.kind == "refused"
        assert pool.pids == before


async def test_an_unexpected_error_is_a_crash_and_the_child_is_replaced() -> None:
    async with WorkerPool() as pool:
        await pool.run("image.normalise_input", data=png(), for_org=ORG)
        before = pool.pids
        with pytest.raises(WorkFailed, match="TypeError") as caught:
            await pool.run("image.normalise_input", unknown=1, for_org=ORG)
        assert caught.value.kind == "crashed"
        assert (await pool.run("image.normalise_input", data=png(), for_org=ORG))["width"] == 40
        assert set(pool.pids).isdisjoint(before)


async def test_an_unknown_task_starts_no_child() -> None:
    async with WorkerPool() as pool:
        with pytest.raises(KeyError):
            await pool.run("os.system", command="true", for_org=ORG)
        assert pool.pids == []


async def test_a_killed_child_fails_only_its_task() -> None:
    async with WorkerPool(workers=2, tasks=ATELIER_TASKS) as pool:
        async with busy_child(pool) as (job, pid):
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(WorkFailed, match="SIGKILL") as caught:
                await job
        assert caught.value.kind == "crashed"
        assert (await pool.run("image.normalise_input", data=png(), for_org=ORG))["width"] == 40
        assert pid not in pool.pids


async def test_an_idle_child_that_died_is_replaced() -> None:
    async with WorkerPool() as pool:
        await pool.run("image.normalise_input", data=png(), for_org=ORG)
        (pid,) = pool.pids
        os.kill(pid, signal.SIGKILL)
        await wait_until(lambda: not is_running(pid))
        await asyncio.sleep(0)
        await wait_until(lambda: not any(child.is_alive() for child in pool._idle))
        assert (await pool.run("image.normalise_input", data=png(), for_org=ORG))["width"] == 40


async def test_a_task_fails_when_no_child_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    async with WorkerPool() as pool:
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", "/nowhere/python")
            with pytest.raises(WorkFailed, match="No child process") as caught:
                await pool.run("image.normalise_input", data=png(), for_org=ORG)
        assert caught.value.kind == "crashed"
        assert (await pool.run("image.normalise_input", data=png(), for_org=ORG))["width"] == 40


async def test_a_task_that_takes_too_long_is_killed() -> None:
    tasks = {"brief": ChildTask("penstock.imaging.convert:convert", wall_seconds=0.45)}
    async with WorkerPool(tasks=tasks) as pool:
        with pytest.raises(WorkFailed, match=r"0\.45 seconds") as caught:
            await pool.run("brief", data=slow_png(), output_format="webp", for_org=ORG)
        assert caught.value.kind == "timeout"
        assert pool.pids == []


async def test_cancelling_the_caller_kills_the_child() -> None:
    async with WorkerPool(tasks=ATELIER_TASKS) as pool:
        async with busy_child(pool) as (job, pid):
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job
            await wait_until(lambda: not is_running(pid))
        assert pool.pids == []
        assert (await pool.run("image.normalise_input", data=png(), for_org=ORG))["width"] == 40


async def test_a_task_that_needs_too_much_memory_crashes() -> None:
    async with WorkerPool(tasks=ATELIER_TASKS, memory_bytes=160 << 20) as pool:
        with pytest.raises(WorkFailed) as caught:
            await pool.run("atelier:enlarge", data=png(900, 900), factor=6, for_org=ORG)
        assert caught.value.kind == "crashed"
        assert (await pool.run("image.normalise_input", data=png(), for_org=ORG))["width"] == 40


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_the_files_of_a_task_are_gone_when_the_next_one_is_read() -> None:
    size = 60_000_000
    async with WorkerPool(2) as pool:
        peaks = []
        for _ in range(2):
            await pool.run("image.is_cleaned_svg", for_org=ORG, data=bytes(size))
            status = Path(f"/proc/{pool.pids[0]}/status").read_text()
            peaks.append(int(status.partition("VmHWM:")[2].split()[0]) * 1024)
        assert peaks[1] - peaks[0] < size // 2


async def test_progress_reaches_the_caller() -> None:
    seen: list[float] = []
    small = {**VIDEO, "seconds": 2, "width": 320, "height": 180}
    async with WorkerPool(tasks=ATELIER_TASKS) as pool:
        result = await pool.run("atelier:clip", for_org=ORG, progress=seen.append, **small)
    assert result["seconds"] == pytest.approx(2, abs=0.05)
    assert seen == sorted(seen)
    assert seen
    assert all(0 <= fraction <= 1 for fraction in seen)


async def test_long_tasks_leave_a_child_for_short_ones() -> None:
    async with WorkerPool(workers=2, tasks=ATELIER_TASKS) as pool:
        videos = [asyncio.create_task(pool.run("atelier:clip", for_org=ORG, **VIDEO)) for _ in range(3)]
        await wait_until(lambda: len(pool.pids) == 1)
        assert (await pool.run("image.normalise_input", data=png(), for_org=ORG))["width"] == 40
        assert not any(video.done() for video in videos)
        for video in videos:
            video.cancel()
        await asyncio.gather(*videos, return_exceptions=True)


async def test_closing_the_pool_ends_the_children_and_refuses_more_work() -> None:
    pool = WorkerPool()
    await pool.run("image.normalise_input", data=png(), for_org=ORG)
    (pid,) = pool.pids
    await pool.close()
    assert not is_running(pid)
    with pytest.raises(RuntimeError, match="closed"):
        await pool.run("image.normalise_input", data=png(), for_org=ORG)


async def test_a_large_file_is_written_in_slices_with_other_tasks_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter runs on the same event loop; each slice is written in another turn of the loop."""
    file = noise_png()
    turns = 0
    slices: list[tuple[int, int]] = []
    write = asyncio.StreamWriter.write

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def record(writer: asyncio.StreamWriter, data: bytes) -> None:
        slices.append((len(data), turns))
        write(writer, data)

    async with WorkerPool() as pool:
        await pool.run("image.normalise_input", data=png(), for_org=ORG)
        counting = asyncio.create_task(count_turns())
        monkeypatch.setattr(asyncio.StreamWriter, "write", record)
        await pool.run("image.normalise_input", data=file, for_org=ORG)
        counting.cancel()
    message, *parts = slices
    assert message[0] < 200
    assert sum(size for size, _ in parts) == len(file)
    assert max(size for size, _ in parts) == children.CHUNK_BYTES
    assert len({turn for _, turn in parts}) == len(parts)


async def test_a_large_file_is_not_copied_as_a_whole_on_its_way_to_a_child_and_back() -> None:
    """Each copy would hold up the event loop. Besides a changed file that came back there are only slices in memory."""
    file = noise_png()
    longer = file + b"trailing"
    async with WorkerPool() as pool:
        await pool.run("image.normalise_input", data=png(), for_org=ORG)
        changed = await peak_bytes(lambda: pool.run("image.normalise_input", data=longer, for_org=ORG))
        unchanged = await peak_bytes(lambda: pool.run("image.normalise_input", data=file, for_org=ORG))
        assert (await pool.run("image.normalise_input", data=file, for_org=ORG))["data"] is file
    assert len(file) < changed < 1.2 * len(file)
    assert unchanged < 0.2 * len(file)


def test_a_busy_child_dies_with_its_parent() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, env={"PYTHONPATH": str(SOURCE)}, text=True
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
    asyncio.run(wait_until(lambda: not is_running(pid)))


# Its child works when it prints the child's id: an idle child would end anyway, with its input.
PARENT = f"""
import asyncio
from penstock_atelier.table import PROVIDER
from penstock.imaging.workers import WorkerPool
from penstock.upstream.local import child_tasks

async def main():
    pool = WorkerPool(tasks=child_tasks((PROVIDER,)))
    report = lambda _: print(pool.pids[0], flush=True)
    await pool.run("atelier:clip", for_org="org_1", progress=report, **{VIDEO!r})

asyncio.run(main())
"""


async def test_children_see_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    async with WorkerPool() as pool:
        await pool.run("image.normalise_input", data=png(), for_org=ORG)
        environment = Path(f"/proc/{pool.pids[0]}/environ").read_bytes()
    assert b"sk-secret" not in environment


async def test_children_have_low_priority_and_a_memory_limit() -> None:
    async with WorkerPool(memory_bytes=900 << 20) as pool:
        await pool.run("image.normalise_input", data=png(), for_org=ORG)
        pid = pool.pids[0]
        limits = Path(f"/proc/{pid}/limits").read_text()
        own_priority = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, own_priority + fork_server.NICENESS)
    assert f"{900 << 20}" in next(line for line in limits.splitlines() if line.startswith("Max address space"))


async def test_a_task_waits_for_one_child_however_many_another_organization_has_queued() -> None:
    """Counted when it is its turn: while it runs, the other child may do any number of tasks."""
    async with WorkerPool(workers=2) as pool:
        ended: list[int] = []

        async def run(number: int) -> None:
            await pool.run("image.normalise_input", data=png(), for_org=OrgId("org_a"))
            ended.append(number)

        async def load() -> bytes:
            ended_at_its_turn.append(len(ended))
            return png()

        many = [asyncio.create_task(run(number)) for number in range(20)]
        # Not the first: its child may start so slowly that the other has done all the rest by then.
        await asyncio.wait(many, return_when=asyncio.FIRST_COMPLETED)
        ended_before = len(ended)
        assert ended_before < 10, "most of them wait"
        ended_at_its_turn: list[int] = []
        await pool.run("image.normalise_input", for_org=OrgId("org_b"), load=load)
        assert ended_at_its_turn[0] - ended_before <= 2, "the one that ran, and one whose result had just come"
        await asyncio.gather(*many)


async def test_a_spare_child_takes_the_next_organization_at_once() -> None:
    async def convert(pool: WorkerPool, org: str) -> int:
        arguments: dict[str, Any] = {"source": "pcm", "source_rate": 24_000, "target": "wav", "rate": 24_000}
        async with pool.stream("sound.convert", for_org=OrgId(org), **arguments) as child:
            await child.write(b"\1\0" * 24_000)
            await child.end_file()
            await child.end()
            while await child.read():
                pass
            return max(pool.pids)

    async with WorkerPool(2, has_spare=True) as pool:
        first = await convert(pool, "org_1")
        spare = await pool.spare_pid()
        assert spare not in (None, first)
        await convert(pool, "org_2")
        assert spare in pool.pids, "it was waiting, and has its own organization now"
        assert await pool.spare_pid() not in (None, spare), "the next one waits already"
    assert pool.pids == []
