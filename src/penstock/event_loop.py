"""Keep the event loop responsive: long work in turns or in threads; and cancel tasks and wait for their end."""

import asyncio
import ctypes
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

LONG_BYTES = 64 * 1024  # work on fewer bytes takes too little time to matter: JSON of this size may have 30,000 values
LONG_FILE_BYTES = 256 * 1024  # files are only copied and hashed
# One thread: several would take turns with each other in the interpreter, and the event loop would wait for each.
_thread = ThreadPoolExecutor(1, thread_name_prefix="long-work")


async def run_aside(
    size_bytes: int, function: Callable[Arguments, Result], *arguments: Arguments.args, **options: Arguments.kwargs
) -> Result:
    """Call a function that works on so many bytes: at once when they are few, in a thread when they are many.

    The event loop runs meanwhile, except during a single step of the function that does not let other threads run, such
    as the decoding of a long string.
    """
    if size_bytes <= LONG_BYTES:
        return function(*arguments, **options)
    return await asyncio.get_running_loop().run_in_executor(_thread, lambda: function(*arguments, **options))


class LoopThreads:
    """A few threads that call functions for the event loop, mostly to wait for the disk.

    As `asyncio.to_thread` does, for a quarter of the processor time: 3 to 6 µs of the event loop for a call, where the
    executors of the standard library take 21 to 26. A cancelled caller does not stop the function.
    """

    def __init__(self, count: int, name: str) -> None:
        """The threads are started when they are first needed. One thread calls functions in their order."""
        self._count = count
        self._name = name
        self._threads: list[threading.Thread] = []
        self._orders: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = SimpleQueue()

    def start(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **options: Arguments.kwargs
    ) -> "asyncio.Future[Result]":
        """Have a function called in one of the threads; return the future with its result."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._orders.put((partial(function, *arguments, **options), future))
        if len(self._threads) < self._count:
            # Daemons: what a process that ends has not waited for was not promised to anybody.
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def stop(self) -> None:
        """End the threads after what they were given, and wait for that."""
        for _ in self._threads:
            self._orders.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while order := self._orders.get():
            self._call(*order)
            del order  # while it waits, the thread keeps nothing in memory

    def _call(self, function: Callable[[], Any], future: "asyncio.Future[Any]") -> None:
        value = None
        failure = None
        try:
            value = function()
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):  # the loop was closed without waiting
            future.get_loop().call_soon_threadsafe(settle, future, value, failure)


def settle(future: "asyncio.Future[Any]", value: Any, failure: BaseException | None = None) -> None:
    """End a future with a value or, if there is one, with a failure; one that is done stays as it is."""
    if future.done():  # its caller was cancelled
        return
    if failure is None:
        future.set_result(value)
    else:
        future.set_exception(failure)


# Files that are synced at the same time share the waits of the disk, so there are more threads than processors.
FILE_THREADS = 8
in_file_thread = LoopThreads(FILE_THREADS, "file").start


class LoopTurns:
    """Lets one long piece of work run per round of the event loop, so that other tasks run in between."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def wait_turn(self, size_bytes: int) -> None:
        """Wait for a turn before working on so many bytes. Returns at once when they are few."""
        if size_bytes > LONG_BYTES:
            async with self._lock:
                await asyncio.sleep(0)


# ---------------------------------------------------------------------------------------------------------------- tasks

_CANCEL_AGAIN_SECONDS = 0.2


async def cancel_and_wait(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended; their exceptions are ignored.

    Python 3.11 may lose a cancellation that coincides with the end of `asyncio.wait_for`, so tasks are cancelled
    repeatedly until they end.
    """
    everyone = set(tasks)
    left = everyone
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_CANCEL_AGAIN_SECONDS)
    await asyncio.gather(*everyone, return_exceptions=True)


# ------------------------------------------------------------------------------------------------ settings of a process

_SWITCH_SECONDS = 0.001  # Python's default is five milliseconds
_LARGE_BUFFER_BYTES = 4 * 1024**2
_M_MMAP_THRESHOLD = -3  # in malloc.h of glibc


def configure_process() -> None:
    """Let the event loop of this process wait less for threads and for memory.

    A thread that computes gives the interpreter away after a millisecond. And a large buffer that grows, such as a body
    that arrives, is not copied each time: glibc takes it from the system, which can move it. By default glibc stops
    doing so for buffers up to 32 MiB as soon as one of that size was freed; then a body is copied for 20 ms at a time.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BUFFER_BYTES)
