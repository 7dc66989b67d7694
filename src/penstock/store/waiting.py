"""Wait for a database that cannot be reached, and try again."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import structlog

from penstock.clock import Clock
from penstock.errors import StorageUnavailable

log = structlog.get_logger()
T = TypeVar("T")
_PAUSE_SECONDS = 1.0


async def retry_while_unavailable(
    clock: Clock,
    work: Callable[[], Awaitable[T]],
    *,
    pause_seconds: float = _PAUSE_SECONDS,
    gives_up: Callable[[], bool] = lambda: False,
    **facts: Any,
) -> T:
    """Return the result of `work`, which is run again after a pause each time it raises StorageUnavailable.

    Raises the last StorageUnavailable when `gives_up()` is true after a failure. `work` must be harmless when an
    earlier run of it was written although it raised. The `facts` are added to the log line of each failure.
    """
    while True:
        try:
            return await work()
        except StorageUnavailable:
            if gives_up():
                raise
        log.warning("storage unavailable, trying again", **facts)
        await clock.sleep(pause_seconds)
