"""Move the time of an event loop, so that no test waits for a timeout."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def pass_time(seconds: float) -> None:
    """Move the time of the running loop forward: timers that are due by then run when the caller next awaits."""
    loop: Any = asyncio.get_running_loop()
    loop_time = loop.time
    loop.time = lambda: loop_time() + seconds


@contextmanager
def jumping_time() -> Iterator[None]:
    """When nothing can run, jump to the next timer of the running loop. For tests without sockets and threads."""
    loop: Any = asyncio.get_running_loop()
    now = loop.time()
    select = loop._selector.select
    loop_time = loop.time

    def jump(timeout: float | None = None) -> Any:
        nonlocal now
        now += timeout or 0
        return select(0)

    loop.time = lambda: now
    loop._selector.select = jump
    try:
        yield
    finally:
        loop.time = loop_time
        loop._selector.select = select
