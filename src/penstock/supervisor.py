"""Run several processes that serve one port together, and replace those that die."""

import gc
import os
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import structlog

log = structlog.get_logger()
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_SETTLED_SECONDS = 60.0  # a process that lived this long did not die of how it was started
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """What one of the processes knows about itself."""

    number: int  # from 1
    is_replacement: bool  # another one with this number has died
    tell_ready: Callable[[], None]  # to be called when the process takes calls


@dataclass(slots=True)
class _Place:
    """One of the places for processes: its number, and the process that has it now."""

    number: int
    pid: int = 0  # 0: none runs
    starts: int = 0
    started_at: float = 0.0
    start_at: float = 0.0
    pause_seconds: float = _FIRST_PAUSE_SECONDS


@dataclass(slots=True)
class Supervisor:
    """Forks the processes, watches them, and passes SIGTERM and SIGINT on to them as SIGTERM.

    The first process starts alone, and the others when it takes calls: it migrates the database, and if the settings
    are wrong, it is the only one to say so. A process that dies later is replaced, after pauses that grow while
    replacements die soon. This process opens nothing and starts no threads, so that it can fork at any time. Should it
    be killed, its processes stop as after SIGTERM.
    """

    run_process: Callable[[ServerProcess], int]  # serves until SIGTERM, and returns the exit status
    count: int
    _places: list[_Place] = field(init=False)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _stop_requests: int = 0
    _stops_passed_on: int = 0
    _status: int = 0

    def __post_init__(self) -> None:
        self._places = [_Place(number) for number in range(1, self.count + 1)]

    def run(self) -> int:
        """Run the processes until SIGTERM or SIGINT; return the exit status."""
        ready_out, ready_in = os.pipe()
        lifeline_out, lifeline_in = os.pipe()
        self._selector.register(ready_out, selectors.EVENT_READ)
        with self._watch_signals():
            first = self._places[0]
            self._start(first, ready_in, lifeline_out, lifeline_in)
            is_ready = False
            while True:
                is_ready = self._wait(ready_out) or is_ready
                self._pass_stops_on()
                self._reap()
                if self._stop_requests and not any(place.pid for place in self._places):
                    return self._status
                if not is_ready and not first.pid:
                    return 1
                if is_ready and not self._stop_requests:
                    for place in self._due():
                        self._start(place, ready_in, lifeline_out, lifeline_in)

    # --------------------------------------------------------------------------------------------------------- waiting

    @contextmanager
    def _watch_signals(self) -> Iterator[None]:
        """Have signals wake `_wait` up; what they ask for is done there, between two steps."""
        wakeup_out, wakeup_in = socket.socketpair()
        wakeup_out.setblocking(False)
        wakeup_in.setblocking(False)
        self._selector.register(wakeup_out, selectors.EVENT_READ, wakeup_out)
        before = {number: signal.signal(number, self._note_signal) for number in _SIGNALS}
        signal.set_wakeup_fd(wakeup_in.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.close()
            wakeup_out.close()
            wakeup_in.close()

    def _note_signal(self, number: int, frame: object) -> None:
        if number != signal.SIGCHLD:
            self._stop_requests += 1

    def _wait(self, ready_out: int) -> bool:
        """Wait for a signal, a process that is ready, or the time to start one; return whether one is ready."""
        due = [place.start_at for place in self._places if not place.pid and place.starts]
        timeout = max(0.0, min(due) - time.monotonic()) if due and not self._stop_requests else None
        is_ready = False
        for key, _ in self._selector.select(timeout):
            if isinstance(key.fileobj, socket.socket):
                with suppress(BlockingIOError):
                    while key.fileobj.recv(4096):
                        pass
            else:
                is_ready = bool(os.read(ready_out, 4096))
        return is_ready

    def _pass_stops_on(self) -> None:
        """Tell all processes to stop, as often as this one was told: the second time they stop at once."""
        while self._stops_passed_on < self._stop_requests:
            self._stops_passed_on += 1
            for place in self._places:
                if place.pid:
                    os.kill(place.pid, signal.SIGTERM)

    def _reap(self) -> None:
        for place in self._places:
            if place.pid:
                pid, status = os.waitpid(place.pid, os.WNOHANG)
                if pid:
                    self._note_end(place, os.waitstatus_to_exitcode(status))

    def _note_end(self, place: _Place, status: int) -> None:
        pid, place.pid = place.pid, 0
        if self._stop_requests:  # one that was told to stop while it started is ended by the signal itself
            self._status = self._status or (0 if status == -signal.SIGTERM else abs(status))
            return
        now = time.monotonic()
        if now - place.started_at >= _SETTLED_SECONDS:
            place.pause_seconds = _FIRST_PAUSE_SECONDS
        place.start_at = now + place.pause_seconds
        facts = {"number": place.number, "pid": pid, "status": status, "pause_seconds": place.pause_seconds}
        log.error("server process ended, another takes its place", **facts)
        place.pause_seconds = min(2 * place.pause_seconds, _LONGEST_PAUSE_SECONDS)

    def _due(self) -> list[_Place]:
        now = time.monotonic()
        return [place for place in self._places if not place.pid and place.start_at <= now]

    # -------------------------------------------------------------------------------------------------------- starting

    def _start(self, place: _Place, ready_in: int, lifeline_out: int, lifeline_in: int) -> None:
        """Fork a process. Signals wait meanwhile: one that came before the child is prepared would be lost."""
        place.starts += 1
        place.started_at = time.monotonic()
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # what is shared with the children stays shared
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        place.pid = os.fork()
        if place.pid:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            return
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the supervisor passes it on
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.close(lifeline_in)
        threading.Thread(target=_stop_with_supervisor, args=(lifeline_out,), daemon=True).start()
        self._run_and_exit(ServerProcess(place.number, place.starts > 1, lambda: _write_byte(ready_in)))

    def _run_and_exit(self, process: ServerProcess) -> None:
        """Run the child and end it, without returning to what called `Supervisor.run`."""
        status = 1
        try:
            status = self.run_process(process)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


def _stop_with_supervisor(lifeline: int) -> None:
    """Stop this process when the supervisor has ended, and with it the other end of the pipe."""
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _write_byte(descriptor: int) -> None:
    os.write(descriptor, b".")
