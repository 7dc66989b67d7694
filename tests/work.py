"""Count the work that code does, instead of the time that it takes."""

import sys
import tracemalloc
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any


def lines_run(work: Callable[[], object], file: str = "") -> int:
    """Run `work` and return how many lines of Python it executed, in files whose path ends like this."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.endswith(file):
            return None
        if event == "line":
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


async def peak_bytes(work: Callable[[], Awaitable[object]]) -> int:
    """Do the work and return the most memory that Python took meanwhile, above what it had before."""
    tracemalloc.start()
    try:
        await work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
