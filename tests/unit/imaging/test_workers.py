"""Children do the work, keep to their limits, and never take the gateway down with them."""

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
from typing import Any

import msgspec
import pytest
from PIL import Image

from penstock.atelier.table import PROVIDER
from penstock.imaging import workers
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.upstream.local import child_tasks

SOURCE = Path(workers.__file__).parents[2]
ATELIER_TASKS = child_tasks((PROVIDER,))


def png(width: int = 40, height: int = 30, colour: str = "teal") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(buffer, "PNG")
    return buffer.getvalue()


def slow_png() -> bytes:
    """Noise with a noisy alpha channel: several seconds of work to turn into WebP."""
    noise = random.Random(1).randbytes(4 * 2000 * 2000)
    buffer = io.BytesIO()
    Image.frombytes("RGBA", (2000, 2000), noise).save(buffer, "PNG", compress_level=0)
    return buffer.getvalue()


async def eventually(true: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def at_work(children: WorkerPool) -> AsyncIterator[tuple[asyncio.Task[dict[str, Any]], int]]:
    """A long conversion and the process that is busy with it."""
    job = asyncio.create_task(children.run("pictures.convert", data=slow_png(), output_format="webp"))
    await eventually(lambda: len(children.pids) == 1)
    (pid,) = children.pids
    started = processor_seconds(pid)
    await eventually(lambda: processor_seconds(pid) > started + 0.5)
    assert not job.done()
    yield job, pid


async def test_a_task_returns_what_its_function_returns() -> None:
    async with WorkerPool() as children:
        measured = await children.run("pictures.measure", data=png(40, 30))
    assert measured == {"format": "png", "width": 40, "height": 30, "frames": 1, "has_alpha": False}


async def test_a_child_is_kept_for_the_next_task() -> None:
    async with WorkerPool(workers=2) as children:
        assert children.pids == []
        await children.run("pictures.measure", data=png())
        first = children.pids
        await children.run("pictures.measure", data=png())
        assert children.pids == first
        assert len(first) == 1


async def test_not_more_children_than_workers() -> None:
    async with WorkerPool(workers=2) as children:
        jobs = [children.run("pictures.convert", data=png(), output_format="jpeg") for _ in range(8)]
        results = await asyncio.gather(*jobs)
        assert len(children.pids) == 2
    assert {result["content_type"] for result in results} == {"image/jpeg"}


async def test_a_refusal_carries_its_message_and_keeps_the_child() -> None:
    async with WorkerPool() as children:
        await children.run("pictures.measure", data=png())
        before = children.pids
        with pytest.raises(WorkFailed, match="not one of") as caught:
            await children.run("pictures.measure", data=b"%!PS-Adobe-3.0 EPSF-3.0")
        assert caught.value.kind == "refused"
        assert children.pids == before


async def test_a_fault_of_ours_is_a_crash_and_the_child_is_replaced() -> None:
    async with WorkerPool() as children:
        await children.run("pictures.measure", data=png())
        before = children.pids
        with pytest.raises(WorkFailed, match="TypeError") as caught:
            await children.run("pictures.measure", unknown=1)
        assert caught.value.kind == "crashed"
        assert (await children.run("pictures.measure", data=png()))["width"] == 40
        assert set(children.pids).isdisjoint(before)


async def test_a_name_outside_the_registry_is_refused_before_anything_starts() -> None:
    async with WorkerPool() as children:
        with pytest.raises(KeyError):
            await children.run("os.system", command="true")
        assert children.pids == []


def test_a_child_runs_only_what_its_parent_registered() -> None:
    for task in ("atelier:enlarge", "os:system", "os.system", "pictures.unknown"):
        with child() as process:
            output, _ = process.communicate(frame(task, command="true"))
        assert msgspec.msgpack.decode(output[4:], type=workers.Failed).message == f"KeyError: {task!r}"


async def test_a_killed_child_fails_its_task_only() -> None:
    async with WorkerPool(workers=2) as children:
        async with at_work(children) as (job, pid):
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(WorkFailed, match="SIGKILL") as caught:
                await job
        assert caught.value.kind == "crashed"
        assert (await children.run("pictures.measure", data=png()))["width"] == 40
        assert pid not in children.pids


async def test_a_child_that_died_idle_is_replaced_unnoticed() -> None:
    async with WorkerPool() as children:
        await children.run("pictures.measure", data=png())
        (pid,) = children.pids
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: not is_running(pid))
        await asyncio.sleep(0)
        await eventually(lambda: not any(child.is_alive() for child in children._idle))
        assert (await children.run("pictures.measure", data=png()))["width"] == 40


async def test_a_child_that_cannot_start_is_a_failure_of_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    async with WorkerPool() as children:
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", "/nowhere/python")
            with pytest.raises(WorkFailed, match="No child") as caught:
                await children.run("pictures.measure", data=png())
        assert caught.value.kind == "crashed"
        assert (await children.run("pictures.measure", data=png()))["width"] == 40


async def test_wall_clock_limit_kills_and_replaces() -> None:
    async with WorkerPool(patience=0.005) as children:
        with pytest.raises(WorkFailed, match=r"0\.45 seconds") as caught:
            await children.run("pictures.convert", data=slow_png(), output_format="webp")
        assert caught.value.kind == "timeout"
        assert children.pids == []


async def test_cancelling_the_caller_kills_the_child() -> None:
    async with WorkerPool() as children:
        async with at_work(children) as (job, pid):
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job
            await eventually(lambda: not is_running(pid))
        assert children.pids == []
        assert (await children.run("pictures.measure", data=png()))["width"] == 40


async def test_memory_limit_is_a_crash_not_a_swap_storm() -> None:
    async with WorkerPool(tasks=ATELIER_TASKS, memory_bytes=160 << 20) as children:
        with pytest.raises(WorkFailed) as caught:
            await children.run("atelier:enlarge", data=png(900, 900), factor=6)
        assert caught.value.kind == "crashed"
        assert (await children.run("pictures.measure", data=png()))["width"] == 40


async def test_progress_reaches_the_caller(tmp_path: Path) -> None:
    seen: list[float] = []
    async with WorkerPool(tasks=ATELIER_TASKS) as children:
        result = await children.run(
            "atelier:clip",
            progress=seen.append,
            path=str(tmp_path / "a.mp4"),
            prompt="sea",
            seconds=2,
            width=320,
            height=180,
        )
    assert result["seconds"] == pytest.approx(2, abs=0.05)
    assert seen == sorted(seen)
    assert seen
    assert all(0 <= fraction <= 1 for fraction in seen)


async def test_long_tasks_leave_a_child_for_short_ones(tmp_path: Path) -> None:
    async with WorkerPool(workers=2, tasks=ATELIER_TASKS) as children:
        films = [
            asyncio.create_task(children.run("atelier:clip", path=str(tmp_path / f"{n}.mp4"), prompt="sea", seconds=20))
            for n in range(3)
        ]
        await eventually(lambda: len(children.pids) == 1)
        assert (await children.run("pictures.measure", data=png()))["width"] == 40
        assert not any(film.done() for film in films)
        for film in films:
            film.cancel()
        await asyncio.gather(*films, return_exceptions=True)


async def test_closing_ends_the_children_and_refuses_more_work() -> None:
    children = WorkerPool()
    await children.run("pictures.measure", data=png())
    (pid,) = children.pids
    await children.close()
    assert not is_running(pid)
    with pytest.raises(RuntimeError, match="closed"):
        await children.run("pictures.measure", data=png())


async def test_large_payloads_leave_the_loop_free() -> None:
    """8 MB in and 8 MB out, while a task on the same loop asks for its turn every millisecond."""
    noise = Image.frombytes("RGB", (1660, 1660), random.Random(2).randbytes(3 * 1660 * 1660))
    buffer = io.BytesIO()
    noise.save(buffer, "PNG", compress_level=0)
    worst = 0.0

    async def probe() -> None:
        nonlocal worst
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            worst = max(worst, time.thread_time() - before)

    async with WorkerPool() as children:
        await children.run("pictures.measure", data=png())
        probing = asyncio.create_task(probe())
        await children.run("pictures.mask_for", data=_with_alpha(noise), polarity="alpha")
        await children.run("pictures.measure", data=buffer.getvalue())
        probing.cancel()
    assert worst < 0.02  # seconds of our own work in one turn; bench/pictures.py also measures the wait by the clock


def _with_alpha(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.convert("RGBA").save(buffer, "PNG", compress_level=0)
    return buffer.getvalue()


ARGUMENTS = [str(1 << 30), workers.encode_tasks(workers.TASKS)]


def child() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "penstock.imaging.workers", *ARGUMENTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(SOURCE)},
    )


def frame(task: str, cpu_seconds: float = 10, **arguments: Any) -> bytes:
    body = msgspec.msgpack.encode(workers.Work(task, arguments, cpu_seconds))
    return len(body).to_bytes(4, "big") + body


def test_processor_time_is_limited_for_each_task() -> None:
    with child() as process:
        output, _ = process.communicate(
            frame("pictures.convert", 30, data=slow_png(), output_format="jpeg")
            + frame("pictures.convert", 1, data=slow_png(), output_format="webp")
        )
    assert process.returncode == -signal.SIGXCPU
    first = msgspec.msgpack.decode(output[4:], type=workers.Done)  # the first task's allowance was its own
    assert first.result["content_type"] == "image/jpeg"


def test_a_child_ends_when_its_input_ends() -> None:
    with child() as process:
        output, _ = process.communicate(b"")
    assert process.returncode == 0
    assert output == b""


def test_a_busy_child_dies_with_its_parent() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, env={"PYTHONPATH": str(SOURCE)}, text=True
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        # Busy, not waiting for input, whose end would tell it anyway.
        asyncio.run(eventually(lambda: processor_seconds(pid) > 0.8))
        assert is_running(pid)
        parent.kill()
    asyncio.run(eventually(lambda: not is_running(pid), 1))


PARENT = """
import asyncio, io, random
from PIL import Image
from penstock.imaging.workers import WorkerPool

buffer = io.BytesIO()
Image.frombytes("RGBA", (2000, 2000), random.Random(1).randbytes(16_000_000)).save(buffer, "PNG", compress_level=0)

async def main():
    children = WorkerPool()
    job = asyncio.create_task(children.run("pictures.convert", data=buffer.getvalue(), output_format="webp"))
    while not children.pids:
        await asyncio.sleep(0.01)
    print(children.pids[0], flush=True)
    await job

asyncio.run(main())
"""


async def test_children_see_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    async with WorkerPool() as children:
        await children.run("pictures.measure", data=png())
        environment = Path(f"/proc/{children.pids[0]}/environ").read_bytes()
    assert b"sk-secret" not in environment


async def test_children_are_nice_and_limited() -> None:
    async with WorkerPool(memory_bytes=900 << 20) as children:
        await children.run("pictures.measure", data=png())
        pid = children.pids[0]
        limits = Path(f"/proc/{pid}/limits").read_text()
        assert os.getpriority(os.PRIO_PROCESS, pid) == workers.NICENESS + os.getpriority(os.PRIO_PROCESS, 0)
    assert f"{900 << 20}" in next(line for line in limits.splitlines() if line.startswith("Max address space"))


def test_printing_in_a_child_does_not_reach_its_replies() -> None:
    script = "import os, penstock.imaging.workers as p; q = p._perform; "
    script += "p._perform = lambda *a: (os.write(1, b'noise'), q(*a))[1]; p.main()"
    process = subprocess.run(
        [sys.executable, "-c", script, *ARGUMENTS],
        input=frame("pictures.measure", data=png()),
        capture_output=True,
        env={"PYTHONPATH": str(SOURCE)},
        check=True,
    )
    assert b"noise" in process.stderr
    assert msgspec.msgpack.decode(process.stdout[4:], type=workers.Done).result["width"] == 40
