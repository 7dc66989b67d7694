"""What simulated vendors share: routes as small functions, a script for what happens next, a record of what was heard.

    class Acme(Vendor):
        credential = ("authorization", "Bearer acme-canary")

        @route("POST /v1/tasks")
        def create(self, call: Exchange) -> Ware:
            job = self.begin(call.heard.fields)
            return Ware({"id": job.id, "status": job.turn()}, 201)

        @route("GET /v1/tasks/{id}")
        def show(self, call: Exchange) -> Ware:
            job = self.jobs.get(call.params["id"])
            if job is None:
                return self.missing()
            state = job.turn()
            done = state == "done"
            return Ware({"id": job.id, "status": state, "url": self.put(mp4(), "video/mp4") if done else None})

    async with serving(Acme(usual=("waiting", "working", "done"))) as acme:  # `serve_in_thread`
        acme.next("create", answers({"error": "slow down"}, 429, retry_after="7"), faults.dropped)
        acme.fates.append(("waiting", "failed"))  # what becomes of the next job; the first state answers its submission
        ...
        assert acme.heard("create")[0].fields["prompt"] == "a fox"

A route without an act of its own serves. Acts of tests/fake_providers/faults.py that do not concern videos work here
too.
"""

import asyncio
import itertools
import re
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

from tests.fake_providers.exchange import Exchange, Heard, Ware, listening

# ---------------------------------------------------------------------------------------------------------------- acts


@dataclass(frozen=True)
class Order:
    """An exchange in the hands of an act."""

    line: Exchange
    accept: Callable[[], Ware]  # do what was asked for; the answer is the act's to send

    @property
    def heard(self) -> Heard:
        return self.line.heard


Act = Callable[[Order], Awaitable[None]]


async def serve(order: Order) -> None:
    """What a vendor in good health does."""
    await deliver(order, order.accept())


async def deliver(order: Order, ware: Ware) -> None:
    if ware.events:
        await order.line.begin(200, "text/event-stream", {})
        for event in ware.events:
            await order.line.more((event if event.startswith(b":") else b"data: " + event) + b"\n\n")
        await order.line.end()
    elif ware.status == 204:
        await order.line.begin(204, "text/plain", {})
        await order.line.end()
    elif ware.file:
        await order.line.send(ware.file, ware.status, ware.content_type, **ware.headers)
    else:
        await order.line.json(ware.json, ware.status, **ware.headers)


def answers(json: Any, status: int = 200, **headers: str) -> Act:
    """Answers this, and does nothing."""

    async def act(order: Order) -> None:
        await order.line.json(json, status, **headers)

    return act


class Desk:
    """One kind of request: what was heard there, and how the next ones are answered."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self._arrivals = asyncio.Condition()
        self._next: deque[Act] = deque()
        self._always: Act = serve

    def next(self, *acts: Act) -> None:
        """One act for each of the next requests, in the order they arrive."""
        self._next.extend(acts)

    def always(self, act: Act) -> None:
        """For every request that has no act of its own."""
        self._always = act

    async def take(self, heard: Heard) -> Act:
        self.heard.append(heard)
        async with self._arrivals:
            self._arrivals.notify_all()
        return self._next.popleft() if self._next else self._always

    def __len__(self) -> int:
        return len(self.heard)

    async def reached(self, count: int) -> None:
        """Wait until this many requests have arrived; for a vendor in this loop."""
        async with asyncio.timeout(45), self._arrivals:
            await self._arrivals.wait_for(lambda: len(self.heard) >= count)


# -------------------------------------------------------------------------------------------------------------- vendors

Route = Callable[[Any, Exchange], Ware]


def route(template: str) -> Callable[[Route], Route]:
    """`GET /v1/tasks/{id}`; `{rest*}` may have slashes in it. The first of the class that fits is taken."""

    def mark(function: Route) -> Route:
        function.__dict__["route"] = template
        return function

    return mark


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+\*?)\}", path)
    named = (f"(?P<{part[:-1]}>.+)" if part.endswith("*") else f"(?P<{part}>[^/]+)" for part in parts[1::2])
    texts = map(re.escape, parts[::2])
    return re.compile("".join(one for pair in itertools.zip_longest(texts, named, fillvalue="") for one in pair))


@dataclass(slots=True)
class Job:
    """Work under way. Each look shows the next of its states; the last one stays."""

    id: str
    fields: dict[str, Any]
    states: deque[Any]
    cancelled: bool = False

    def turn(self) -> Any:
        return self.states.popleft() if len(self.states) > 1 else self.states[0]

    def cancel(self, state: Any) -> None:
        self.cancelled, self.states = True, deque([state])


class FakeProvider:
    """A simulated vendor: a subclass has routes, and says what its jobs usually go through."""

    credential: ClassVar[tuple[str, str] | None] = None  # the header that every route but the files' asks for
    usual: Sequence[Any] = ()
    _routes: ClassVar[list[tuple[str, re.Pattern[str], str]]] = []

    def __init_subclass__(cls) -> None:
        found = [(name, one.route) for base in cls.__mro__ for name, one in vars(base).items() if hasattr(one, "route")]
        cls._routes = [(told.split()[0], _pattern(told.split()[1]), name) for name, told in found]

    def __init__(self, usual: Sequence[Any] | None = None) -> None:
        self.port = 0
        self.usual = self.usual if usual is None else usual
        self.fates: deque[Sequence[Any]] = deque()  # for the next jobs
        self.jobs: dict[str, Job] = {}
        self.desks = {name: Desk() for _, _, name in self._routes} | {"files": Desk(), "others": Desk()}
        self._files: dict[str, Ware] = {}
        self._numbers = itertools.count(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # ------------------------------------------------------------------------------------------------- for the test

    def next(self, name: str, *acts: Act) -> None:
        """What the next requests of a route, or of the `files`, meet instead of service."""
        self.desks[name].next(*acts)

    def always(self, name: str, act: Act) -> None:
        self.desks[name].always(act)

    def heard(self, name: str) -> list[Heard]:
        return self.desks[name].heard

    # ------------------------------------------------------------------------------------------------ for the routes

    def new_id(self, prefix: str = "") -> str:
        return f"{prefix}{next(self._numbers):06}"

    def begin(self, fields: dict[str, Any], prefix: str = "job-") -> Job:
        states = self.fates.popleft() if self.fates else self.usual
        job = Job(self.new_id(prefix), fields, deque(states))
        self.jobs[job.id] = job
        return job

    def put(self, data: bytes, content_type: str) -> str:
        """A file to be fetched without credentials; its address."""
        name = f"{self.new_id('file-')}.{content_type.split('/')[1]}"
        self._files[name] = Ware(file=data, content_type=content_type)
        return f"{self.url}/files/{name}"

    def knows(self, heard: Heard) -> bool:
        return self.credential is None or heard.headers.get(self.credential[0]) == self.credential[1]

    def unauthorized(self) -> Ware:
        return Ware({"error": {"message": "Who are you?"}}, 401)

    def missing(self) -> Ware:
        return Ware({"error": {"message": "Not found."}}, 404)

    # ----------------------------------------------------------------------------------------------------- answering

    async def answer(self, heard: Heard, exchange: Callable[[Mapping[str, str]], Exchange]) -> None:
        name, params, make = self._found(heard)
        line = exchange(params)
        act = await self.desks[name].take(heard)
        await act(Order(line, lambda: make(line)))

    def _found(self, heard: Heard) -> tuple[str, Mapping[str, str], Callable[[Exchange], Ware]]:
        path = heard.path.partition("?")[0]
        if path.startswith("/files/") and heard.method == "GET":
            file = self._files.get(path.removeprefix("/files/"))
            return "files", {}, lambda _: file or self.missing()
        for method, pattern, name in self._routes:
            match = pattern.fullmatch(path)
            if match and method == heard.method:
                return (
                    name,
                    match.groupdict(),
                    getattr(self, name) if self.knows(heard) else lambda _: self.unauthorized(),
                )
        return "others", {}, lambda _: self.missing()


# -------------------------------------------------------------------------------------------------------------- serving


class Answering(Protocol):
    port: int

    async def answer(self, heard: Heard, exchange: Callable[[Mapping[str, str]], Exchange]) -> None: ...


Served = TypeVar("Served", bound=Answering)


@asynccontextmanager
async def serving(vendor: Served) -> AsyncIterator[Served]:
    """In this loop."""
    async with listening(vendor.answer) as vendor.port:
        yield vendor


@contextmanager
def serve_in_thread(vendor: Served) -> Iterator[Served]:
    """In a thread, for tests that block: a real server process, a vendor's blocking client."""
    ready, stop = threading.Event(), list[Callable[[], object]]()
    failures: list[BaseException] = []

    async def run() -> None:
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(stopped.set))
        async with listening(vendor.answer) as vendor.port:
            ready.set()
            await stopped.wait()

    def attend() -> None:
        try:
            asyncio.run(run())
        except BaseException as problem:
            failures.append(problem)
        finally:
            ready.set()

    thread = threading.Thread(target=attend, name=type(vendor).__name__)
    thread.start()
    ready.wait()
    try:
        yield vendor
    finally:
        stop[0]()
        thread.join()
    if failures:
        raise failures[0]
