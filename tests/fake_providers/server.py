"""The base of all fake providers: routes as small functions, acts that tests script, and a list of received requests.

    class Acme(FakeProvider):
        credential = ("authorization", "Bearer acme-canary")

        @route("POST /v1/tasks")
        def create(self, call: Exchange) -> FakeResponse:
            job = self.begin(call.request.fields)
            return FakeResponse({"id": job.id, "status": job.next_state()}, 201)

        @route("GET /v1/tasks/{id}")
        def show(self, call: Exchange) -> FakeResponse:
            job = self.jobs.get(call.params["id"])
            if job is None:
                return self.missing()
            state = job.next_state()
            url = self.put(mp4(), "video/mp4") if state == "done" else None
            return FakeResponse({"id": job.id, "status": state, "url": url})

    async with serving(Acme(usual=("waiting", "working", "done"))) as acme:  # or `serve_in_thread`
        acme.next("create", responds({"error": "slow down"}, 429, retry_after="7"), faults.dropped)
        acme.next_states.append(("waiting", "failed"))  # of the next job; the submission shows the first
        ...
        assert acme.received("create")[0].fields["prompt"] == "a fox"

A route without a scripted act answers normally. The acts of tests/fake_providers/faults.py work here too, except those
for videos.
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

from tests.fake_providers.exchange import Exchange, FakeResponse, OpenExchange, ReceivedRequest, listening

# ---------------------------------------------------------------------------------------------------------------- acts


@dataclass(frozen=True)
class FakeCall:
    """What an act gets: the exchange, and a function that does what the request asks for."""

    exchange: Exchange
    accept: Callable[[], FakeResponse]  # the act itself sends the response

    @property
    def request(self) -> ReceivedRequest:
        return self.exchange.request


Act = Callable[[FakeCall], Awaitable[None]]


async def serve(call: FakeCall) -> None:
    """Do what the request asks for, and send the response."""
    await deliver(call, call.accept())


async def deliver(call: FakeCall, response: FakeResponse) -> None:
    if response.events:
        await call.exchange.begin(200, "text/event-stream", {})
        for event in response.events:
            await call.exchange.more(event_bytes(event))
        await call.exchange.end()
    elif response.status == 204:
        await call.exchange.begin(204, "text/plain", {})
        await call.exchange.end()
    elif response.content_type != "application/json":
        await call.exchange.send(response.file, response.status, response.content_type, **response.headers)
    else:
        await call.exchange.json(response.json, response.status, **response.headers)


def event_bytes(event: bytes) -> bytes:
    """An event of a stream as it is sent; comments and events with a name are complete already."""
    return (event if event.startswith((b":", b"event:")) else b"data: " + event) + b"\n\n"


def responds(json: Any, status: int = 200, **headers: str) -> Act:
    """An act that sends this response and does nothing else."""

    async def act(call: FakeCall) -> None:
        await call.exchange.json(json, status, **headers)

    return act


class Endpoint:
    """One endpoint of a fake provider: its received requests, and the acts for the next ones."""

    def __init__(self) -> None:
        self.received: list[ReceivedRequest] = []
        self._arrivals = asyncio.Condition()
        self._next: deque[Act] = deque()
        self._always: Act = serve

    def next(self, *acts: Act) -> None:
        """One act for each of the next requests, in the order in which they arrive."""
        self._next.extend(acts)

    def always(self, act: Act) -> None:
        """Use this act for all requests without an act from `next`."""
        self._always = act

    async def take(self, request: ReceivedRequest) -> Act:
        self.received.append(request)
        async with self._arrivals:
            self._arrivals.notify_all()
        return self._next.popleft() if self._next else self._always

    def __len__(self) -> int:
        return len(self.received)

    async def reached(self, count: int) -> None:
        """Wait until this many requests have arrived. For a fake provider in this event loop."""
        async with asyncio.timeout(45), self._arrivals:
            await self._arrivals.wait_for(lambda: len(self.received) >= count)


# ------------------------------------------------------------------------------------------------------ fake providers

Route = Callable[[Any, Exchange], FakeResponse]


def route(template: str) -> Callable[[Route], Route]:
    """Mark a method as a route, such as `GET /v1/tasks/{id}`. `{rest*}` matches slashes too. The first match counts."""

    def mark(function: Route) -> Route:
        function.__dict__["route"] = template
        return function

    return mark


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+\*?)\}", path)
    named = (f"(?P<{part[:-1]}>.+)" if part.endswith("*") else f"(?P<{part}>[^/]+)" for part in parts[1::2])
    texts = map(re.escape, parts[::2])
    return re.compile("".join(part for pair in itertools.zip_longest(texts, named, fillvalue="") for part in pair))


@dataclass(slots=True)
class Job:
    """A job. Each call of `next_state` returns its next state; the last state stays."""

    id: str
    fields: dict[str, Any]
    states: deque[Any]
    cancelled: bool = False

    def next_state(self) -> Any:
        return self.states.popleft() if len(self.states) > 1 else self.states[0]

    def cancel(self, state: Any) -> None:
        self.cancelled = True
        self.states = deque([state])


class FakeProvider:
    """A simulated provider. A subclass has routes, and the usual states of its jobs."""

    credential: ClassVar[tuple[str, str] | None] = None  # the header that all routes except the files require
    usual: Sequence[Any] = ()
    _routes: ClassVar[list[tuple[str, re.Pattern[str], str]]] = []

    def __init_subclass__(cls) -> None:
        methods = [(name, value) for base in cls.__mro__ for name, value in vars(base).items()]
        templates = [(name, value.route) for name, value in methods if hasattr(value, "route")]
        cls._routes = [(template.split()[0], _pattern(template.split()[1]), name) for name, template in templates]

    def __init__(self, usual: Sequence[Any] | None = None) -> None:
        self.port = 0
        self.find_problem: Callable[[ReceivedRequest], str | None] = lambda request: None  # why it would be refused
        self.usual = self.usual if usual is None else usual
        self.next_states: deque[Sequence[Any]] = deque()  # for the next jobs
        self.jobs: dict[str, Job] = {}
        self.endpoints = {name: Endpoint() for _, _, name in self._routes} | {"files": Endpoint(), "others": Endpoint()}
        self._files: dict[str, FakeResponse] = {}
        self._numbers = itertools.count(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # ------------------------------------------------------------------------------------------------- for the test

    def next(self, name: str, *acts: Act) -> None:
        """Use these acts for the next requests to a route, or to the `files`."""
        self.endpoints[name].next(*acts)

    def always(self, name: str, act: Act) -> None:
        self.endpoints[name].always(act)

    def received(self, name: str) -> list[ReceivedRequest]:
        return self.endpoints[name].received

    # ------------------------------------------------------------------------------------------------ for the routes

    def new_id(self, prefix: str = "") -> str:
        return f"{prefix}{next(self._numbers):06}"

    def begin(self, fields: dict[str, Any], prefix: str = "job-") -> Job:
        states = self.next_states.popleft() if self.next_states else self.usual
        job = Job(self.new_id(prefix), fields, deque(states))
        self.jobs[job.id] = job
        return job

    def put(self, data: bytes, content_type: str) -> str:
        """Store a file that can be fetched without a credential; return its URL."""
        name = f"{self.new_id('file-')}.{content_type.split('/')[1]}"
        self._files[name] = FakeResponse(file=data, content_type=content_type)
        return f"{self.url}/files/{name}"

    def knows(self, request: ReceivedRequest) -> bool:
        return self.credential is None or request.headers.get(self.credential[0]) == self.credential[1]

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"error": {"message": "Who are you?"}}, 401)

    def missing(self) -> FakeResponse:
        return FakeResponse({"error": {"message": "Not found."}}, 404)

    def refused(self, problem: str) -> FakeResponse:
        """A malformed request: with the explanation at the places where providers have it."""
        return FakeResponse({"code": 400, "message": problem, "error": {"message": problem}}, 400)

    # ----------------------------------------------------------------------------------------------------- responding

    async def respond(self, request: ReceivedRequest, open_exchange: OpenExchange) -> None:
        name, params, make = self._find_route(request)
        exchange = open_exchange(params)
        act = await self.endpoints[name].take(request)
        await act(FakeCall(exchange, lambda: make(exchange)))

    def _find_route(
        self, request: ReceivedRequest
    ) -> tuple[str, Mapping[str, str], Callable[[Exchange], FakeResponse]]:
        path = request.path.partition("?")[0]
        if path.startswith("/files/") and request.method == "GET":
            file = self._files.get(path.removeprefix("/files/"))
            return "files", {}, lambda _: file or self.missing()
        for method, pattern, name in self._routes:
            match = pattern.fullmatch(path)
            if match and method == request.method:
                return name, match.groupdict(), self._handler(name, request)
        return "others", {}, lambda _: self.missing()

    def _handler(self, route_name: str, request: ReceivedRequest) -> Callable[[Exchange], FakeResponse]:
        if not self.knows(request):
            return lambda _: self.unauthorized()
        if problem := self.find_problem(request):
            return lambda _: self.refused(problem)
        handler: Callable[[Exchange], FakeResponse] = getattr(self, route_name)
        return handler


# -------------------------------------------------------------------------------------------------------------- serving


class Server(Protocol):
    """What `serving` can run."""

    port: int

    async def respond(self, request: ReceivedRequest, open_exchange: OpenExchange) -> None: ...


Served = TypeVar("Served", bound=Server)


@asynccontextmanager
async def serving(provider: Served) -> AsyncIterator[Served]:
    """Run a fake provider in this event loop."""
    async with listening(provider.respond) as provider.port:
        yield provider


@contextmanager
def serve_in_thread(provider: Served) -> Iterator[Served]:
    """Run a fake provider in a thread, for tests that block: with a real server process or a blocking client."""
    ready = threading.Event()
    stop: list[Callable[[], object]] = []
    failures: list[BaseException] = []

    async def run() -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(stopped.set))
        async with listening(provider.respond) as provider.port:
            ready.set()
            await stopped.wait()

    def run_in_thread() -> None:
        try:
            asyncio.run(run())
        except BaseException as problem:
            failures.append(problem)
        finally:
            ready.set()

    thread = threading.Thread(target=run_in_thread, name=type(provider).__name__)
    thread.start()
    ready.wait()
    try:
        yield provider
    finally:
        stop[0]()
        thread.join()
    if failures:
        raise failures[0]
