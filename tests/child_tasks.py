"""Run child tasks in a thread of the test's own process: starting a child process takes longer than most tasks."""

import asyncio
import queue
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.imaging import child, messages
from penstock.imaging.child import ChildTask
from penstock.imaging.children import Sign
from penstock.imaging.messages import Progress, Reply, ToSign, Work
from penstock.imaging.workers import WorkerPool
from penstock.long_bodies.buffers import Buffer
from penstock.values import OrgId


def run_tasks_in_threads(pool: WorkerPool) -> None:
    """Let a pool run its tasks in threads. Its shares of organizations, its messages and its failures stay real."""

    async def take_child(_: OrgId) -> Any:
        return ChildInThread(pool._tasks)

    pool._take_child = take_child  # type: ignore[method-assign, assignment]


class ChildInThread:
    """Looks like a child process to its pool, for one task."""

    def __init__(self, tasks: Mapping[str, ChildTask]) -> None:
        self.tasks_done = 0
        self.process = self
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._replies: asyncio.Queue[Reply] = asyncio.Queue()
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def kill(self) -> None:
        """Do nothing: the thread ends with its task, and the event loop waits for it when it is closed."""

    async def wait(self) -> int:
        return 0

    async def send(self, work: Work) -> Sequence[Buffer]:
        received = messages.decode_work(parts(messages.encode(work)))
        self._loop.run_in_executor(None, self._run, received)
        return ()

    async def receive(self, files: Sequence[Buffer]) -> Reply:
        return await self._replies.get()

    def _run(self, work: Work) -> None:
        self._reply(
            child._run_task(self._tasks, work, lambda fraction: self._reply(Progress(fraction)), self._ask_to_sign)
        )

    def _ask_to_sign(self, data: bytes) -> bytes:
        self._reply(ToSign(data))
        signature = self._answers.get(timeout=60)
        if signature is None:
            raise ValueError("the gateway cannot sign")
        return signature

    async def answer(self, question: ToSign, sign: Sign | None) -> None:
        if sign is None:
            self._answers.put(None)
            raise EOFError("The child asked for a signature that it may not have.")
        self._answers.put(await sign(question.data))

    def _reply(self, reply: Reply) -> None:
        received = messages.decode_reply(parts(messages.encode(reply)))
        self._loop.call_soon_threadsafe(self._replies.put_nowait, received)


def parts(pieces: list[Buffer]) -> list[bytes]:
    """The parts of a message as they arrive, without the sizes that are sent before them."""
    first, *files = map(bytes, pieces)
    return [first[1 + first[0] * messages.SIZE_BYTES :], *files]
