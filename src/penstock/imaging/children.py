"""Start, kill and await child processes, which a fork server makes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from penstock.imaging import messages
from penstock.imaging.child import ChildTask, encode_tasks
from penstock.imaging.fork_server import FORK, ORDER, REPORT, STARTED
from penstock.imaging.messages import Reply, Signature, Signed, ToSign, Work
from penstock.long_bodies.buffers import Buffer, GrowingBuffer
from penstock.values import OrgId

MAX_REPLY_BYTES = 512 << 20
MAX_SIGNED_BYTES = 64 << 10
CHUNK_BYTES = 256 << 10

Sign = Callable[[bytes], Awaitable[bytes | None]]  # the signature, or none if it cannot be had

# The environment holds the credentials of providers; a child gets only what Python itself needs.
INHERITED = ("PATH", "PYTHONPATH", "PYTHONHOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")


class Children:
    """The fork server, which is started with the first child and again if it has died."""

    def __init__(self, memory_bytes: int, tasks: Mapping[str, ChildTask]) -> None:
        self._arguments = (str(memory_bytes), encode_tasks(tasks))
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._control: socket.socket | None = None
        self._starts: deque[asyncio.Future[int]] = deque()
        self._exits: dict[int, asyncio.Future[int]] = {}

    async def start(self, org_id: OrgId) -> Child:
        """Start a child for the files of one organization. Raises OSError."""
        loop = asyncio.get_running_loop()
        async with self._lock:
            if self._control is None:
                await self._start_server()
            control = self._control
            if control is None:
                raise OSError(0, "the process that forks them has ended")
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    socket.send_fds(control, [ORDER.pack(FORK)], [theirs.fileno()])
                started: asyncio.Future[int] = loop.create_future()
                self._starts.append(started)
                pid = await started
                reader, writer = await asyncio.open_connection(sock=ours, limit=CHUNK_BYTES)
            except BaseException:
                ours.close()
                raise
        return Child(self, org_id, pid, self._exits[pid], reader, writer)

    def kill(self, pid: int) -> None:
        if self._control is not None:
            with contextlib.suppress(OSError):  # it has ended, and all children with it
                self._control.send(ORDER.pack(pid))

    async def close(self) -> None:
        """End the fork server."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        if self._listening is not None:
            await self._listening

    async def _start_server(self) -> None:
        environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
        roots = [str(Path(__file__).parents[2]), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, roots))
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", "penstock.imaging.fork_server", *self._arguments),
                    str(theirs.fileno()),
                    pass_fds=[theirs.fileno()],
                    stdin=asyncio.subprocess.DEVNULL,
                    env=environment,
                    start_new_session=True,  # Ctrl-C in a terminal reaches only the gateway, which ends its children
                )
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        self._control = ours
        self._listening = asyncio.create_task(self._listen(ours))

    async def _listen(self, control: socket.socket) -> None:
        """Take the reports of the fork server until it ends."""
        loop = asyncio.get_running_loop()
        report = b""
        with contextlib.suppress(OSError):
            while received := await loop.sock_recv(control, REPORT.size - len(report)):
                report += received
                if len(report) == REPORT.size:
                    self._take_report(*REPORT.unpack(report))
                    report = b""
        self._control = None
        control.close()
        for started in self._starts:
            if not started.done():
                started.set_exception(OSError(0, "the process that forks them has ended"))
        self._starts.clear()
        for pid in list(self._exits):
            self._take_report(pid, -signal.SIGKILL)

    def _take_report(self, pid: int, status: int) -> None:
        if pid == FORK or status == STARTED:
            started = self._starts.popleft()
            if pid == FORK:
                if not started.done():
                    started.set_exception(OSError(status, os.strerror(status)))
                return
            self._exits[pid] = asyncio.get_running_loop().create_future()
            if started.done():  # nobody waits for it any more
                self.kill(pid)
            else:
                started.set_result(pid)
            return
        exited = self._exits.pop(pid)
        if not exited.done():
            exited.set_result(status)


class Child:
    """One child process, seen from the parent."""

    def __init__(
        self,
        children: Children,
        org_id: OrgId,
        pid: int,
        exited: asyncio.Future[int],
        output: asyncio.StreamReader,
        input_: asyncio.StreamWriter,
    ) -> None:
        self.org_id = org_id  # whose files it has seen
        self.pid = pid
        self.tasks_done = 0
        self._children = children
        self._exited = exited
        self._output = output
        self._input = input_

    def is_alive(self) -> bool:
        return not self._exited.done() and not self._output.at_eof()

    def kill(self) -> None:
        self._input.close()
        if not self._exited.done():
            self._children.kill(self.pid)

    async def wait(self) -> int:
        """Wait until it has ended; return its exit status, which is negative for a signal."""
        return await asyncio.shield(self._exited)

    async def send(self, work: Work) -> Sequence[Buffer]:
        """Send a task; return its files, of which replies may contain only the numbers."""
        pieces = messages.encode(work)
        for piece in pieces:
            view = memoryview(piece)
            for start in range(0, len(view), CHUNK_BYTES):  # so that other tasks of the event loop run in between
                self._input.write(view[start : start + CHUNK_BYTES])
                await self._input.drain()
                await asyncio.sleep(0)
        return pieces[1:]

    async def answer(self, question: ToSign, sign: Sign | None) -> None:
        """Sign what a task asks to be signed. Raises EOFError if it may not ask."""
        if sign is None or len(question.data) > MAX_SIGNED_BYTES:
            raise EOFError("The child asked for a signature that it may not have.")
        signature = await sign(question.data)
        stamp = signature.stamp if isinstance(signature, Signed) else b""
        self._input.writelines(messages.encode(Signature(signature and bytes(signature), stamp)))
        await self._input.drain()

    async def write(self, data: bytes) -> None:
        """Send bytes to the task that runs. Raises OSError if the child is gone."""
        self._input.write(data)
        await self._input.drain()

    async def receive(self, files: Sequence[Buffer]) -> Reply:
        (count,) = await self._output.readexactly(1)
        sizes = list(messages.read_sizes(await self._output.readexactly(count * messages.SIZE_BYTES)))
        if not sizes or sum(sizes) > MAX_REPLY_BYTES:
            raise EOFError("The child sent no message, or one that is too large.")
        return messages.decode_reply([await self._read(size) for size in sizes], files)

    async def _read(self, size: int) -> Buffer:
        """Read so many bytes as they arrive: `readexactly` would collect them all, and then copy them at once."""
        if size <= CHUNK_BYTES:
            return await self._output.readexactly(size)
        buffer = GrowingBuffer(size)
        while size > 0:
            chunk = await self._output.read(min(size, CHUNK_BYTES))
            if not chunk:
                raise EOFError("The child ended in the middle of a message.")
            buffer.write(chunk)
            size -= len(chunk)
        return buffer.finish()
