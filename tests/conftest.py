"""What every test may use: coroutines as tests, a real Postgres, a free port."""

import asyncio
import inspect
import secrets
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, TypeVarTuple
from weakref import WeakKeyDictionary

import hypothesis
import psycopg
import pytest
import structlog

from penstock.store.base import Dialect
from tests import gateway, postgres
from tests.databases import BOTH
from tests.ports import unused_port

pytest_plugins = ["pytester"]

# A busy machine is no failure; a test that hangs runs into pytest's own limit.
hypothesis.settings.register_profile("penstock", deadline=None)
hypothesis.settings.load_profile("penstock")

# A task that is about to end gets this many turns of the loop to do so before it counts as left over.
LAST_TURNS = 3

Sent = TypeVarTuple("Sent")
ASYNCIO = str(Path(asyncio.__file__).parent)
CREATED: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()


def pytest_configure() -> None:
    """Log lines as plain text: rendering tracebacks in colour takes longer than most tests."""
    plainly = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[structlog.processors.add_log_level, plainly])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Let `async def` tests run; pytest's own hook then calls what it takes for a plain function."""
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):
        pyfuncitem.obj = plain(test)
    elif inspect.iscoroutinefunction(inner := getattr(getattr(test, "hypothesis", None), "inner_test", None)):
        test.hypothesis.inner_test = plain(inner)


def plain(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """The test as a plain function with a loop of its own."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        with asyncio.Runner(loop_factory=watched_loop) as runner:
            runner.run(alone(test(*args, **kwargs)))

    return run


def watched_loop() -> asyncio.AbstractEventLoop:
    """Remembers where each task was created, and refuses calls from the wrong thread. So does asyncio's debug mode,
    which notes the whole stack for every future and callback as well, and takes a third of a test's time for it.
    """
    loop = Watched()
    loop.set_task_factory(noted)
    return loop


class Watched(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self.home = threading.get_ident()

    def call_soon(self, callback: Callable[[*Sent], object], *args: *Sent, context: Any = None) -> asyncio.Handle:
        self.check_home()
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Sent], object], *args: *Sent, context: Any = None
    ) -> asyncio.TimerHandle:
        self.check_home()
        return super().call_at(when, callback, *args, context=context)

    def check_home(self) -> None:
        if threading.get_ident() != self.home:
            raise RuntimeError("Called from another thread than the loop's; there is call_soon_threadsafe for that.")


def noted(loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
    task = asyncio.Task(coroutine, loop=loop, **more)
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_code.co_filename.startswith(ASYNCIO):
        frame = frame.f_back
    if frame:
        CREATED[task] = f"{frame.f_code.co_qualname}, line {frame.f_lineno} of {frame.f_code.co_filename}"
    return task


async def alone(test: Awaitable[None]) -> None:
    """Run a test and fail it for work it started and neither awaited nor cancelled, or whose failure nobody saw."""
    unseen: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(told(context)))
    await test
    left = await still_running()
    if left:
        pytest.fail(f"{len(left)} task(s) left running:\n" + "\n".join(where(task) for task in left), pytrace=False)
    if unseen:
        pytest.fail("failed where nobody looked:\n" + "\n".join(unseen), pytrace=False)


async def still_running() -> list[asyncio.Task[Any]]:
    for _ in range(LAST_TURNS):
        await asyncio.sleep(0)
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


def where(task: asyncio.Task[Any]) -> str:
    """What a task is, where our code created it and where it waits."""
    created = [f"\n    created in {CREATED[task]}"] if task in CREATED else []
    waits = [
        f"\n    waits in {frame.f_code.co_qualname}, line {frame.f_lineno} of {frame.f_code.co_filename}"
        for frame in task.get_stack()
    ]
    return f"  {task.get_name()}: {task.get_coro()!r}" + "".join(created + waits)


def told(context: dict[str, Any]) -> str:
    problem = context.get("exception")
    return f"  {context['message']}" + (f": {problem!r}" if problem else "")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Address of a Postgres server without a database name; started by the first test that asks, once per worker."""
    with postgres.server() as address:
        yield address


@pytest.fixture
def fresh_database(postgres_url: str) -> Iterator[str]:
    """Address of an empty database that belongs to this test alone."""
    name = f"test_{secrets.token_hex(8)}"
    with psycopg.connect(f"{postgres_url}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield f"{postgres_url}/{name}"
        # A test that breaks connections on purpose may leave some open.
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def free_port() -> int:
    return unused_port()


@pytest.fixture(params=BOTH)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    """SQLite and Postgres in turn; a test that cares for neither says `@sqlite_only`."""
    found: Dialect = request.param
    return found


@pytest.fixture
def ground(request: pytest.FixtureRequest, dialect: Dialect) -> gateway.Ground:
    return gateway.ground_for(request, dialect)


@pytest.fixture
def open_gateway(ground: gateway.Ground) -> gateway.OpenGateway:
    """Opens whole gateways on a database of the test's own."""
    return ground.open
