"""A child process does what its messages say, and no more than its parent allowed."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeVar

from penstock.imaging import child, messages, workers
from tests.unit.imaging.images import png, slow_png

T = TypeVar("T")
SOURCE = Path(child.__file__).parents[2]
RUN = """
import sys, msgspec, penstock.imaging.child as child
child.run_tasks(1 << 30, msgspec.json.decode(sys.argv[1], type=dict[str, child.ChildTask]))
"""
ARGUMENTS = [child.encode_tasks(workers.TASKS)]


def start_child() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", RUN, *ARGUMENTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(SOURCE)},
    )


def encoded(task: str, cpu_seconds: float = 10, **arguments: Any) -> bytes:
    return b"".join(messages.encode(messages.Work(task, arguments, cpu_seconds)))


def first_reply(output: bytes, kind: type[T]) -> T:
    """The reply to the first task; in the message before it the child says how it is confined."""
    incoming = io.BytesIO(output)
    replies = []
    for _ in range(2):
        sizes = messages.read_sizes(incoming.read(incoming.read(1)[0] * messages.SIZE_BYTES))
        replies.append(messages.decode_reply([incoming.read(size) for size in sizes]))
    assert isinstance(replies[1], kind)
    return replies[1]


def test_processor_time_is_limited_for_each_task() -> None:
    with start_child() as process:
        output, _ = process.communicate(
            encoded("image.convert", 30, data=slow_png(), output_format="jpeg")
            + encoded("image.convert", 1, data=slow_png(5000), output_format="webp")
        )
    assert process.returncode == -signal.SIGXCPU
    first = first_reply(output, messages.Done)  # the first task's allowance was its own
    assert first.result["content_type"] == "image/jpeg"


# What is imported for each child that starts, and not needed by it.
NOT_FOR_A_CHILD = {"asyncio", "dataclasses", "logging", "penstock.imaging.workers", "penstock.values", "structlog"}


def test_a_child_imports_little_and_ends_when_its_input_ends() -> None:
    script = RUN + "print(*sys.modules, file=sys.stderr)"
    process = subprocess.run(
        [sys.executable, "-P", "-c", script, *ARGUMENTS],
        input=b"",
        capture_output=True,
        env={"PYTHONPATH": str(SOURCE)},
        check=True,
    )
    assert process.stdout == b""
    imported = process.stderr.decode().split()
    assert "penstock.imaging.child" in imported
    assert NOT_FOR_A_CHILD & set(imported) == set()


def test_a_child_runs_only_the_tasks_that_its_parent_registered() -> None:
    for task in ("atelier:enlarge", "os:system", "os.system", "image.unknown"):
        with start_child() as process:
            output, _ = process.communicate(encoded(task, command="true"))
        assert first_reply(output, messages.Failed).message == f"KeyError: {task!r}"


def test_output_that_a_library_prints_does_not_reach_the_replies() -> None:
    script = "import os, penstock.imaging.child as p; q = p._run_task; "
    script += "p._run_task = lambda *a: (os.write(1, b'noise'), q(*a))[1]\n" + RUN
    process = subprocess.run(
        [sys.executable, "-c", script, *ARGUMENTS],
        input=encoded("image.normalise_input", data=png()),
        capture_output=True,
        env={"PYTHONPATH": str(SOURCE)},
        check=True,
    )
    assert b"noise" in process.stderr
    assert first_reply(process.stdout, messages.Done).result["width"] == 40
