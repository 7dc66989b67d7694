"""Fixtures and hooks for all tests: coroutines as tests, a real Postgres, a free port, whole gateways."""

import asyncio
import gc
import inspect
import logging
import os
import sys
import threading
import tomllib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import wraps
from importlib.metadata import entry_points
from pathlib import Path
from types import FrameType
from typing import Any, TypeVarTuple
from weakref import WeakKeyDictionary

import hypothesis
import pytest
import structlog

from penstock.store.base import Dialect
from tests import gateway, postgres
from tests.databases import BOTH
from tests.ports import unused_port

pytest_plugins = ["pytester"]

# The tests start many processes, and where no bytecode is kept, each of them compiles all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Hundreds of thousands of objects are made while tests are collected, and stay until the end: looking for garbage among
# them costs seconds.
gc.disable()

# Every HTTP client reads all certificates that it trusts, and the tests make thousands of clients. The key of this one
# was thrown away; tests that need TLS create an authority of their own.
os.environ |= {"SSL_CERT_FILE": str(Path(__file__).with_name("trusted.pem")), "SSL_CERT_DIR": os.devnull}

# A busy machine is no failure; a test that hangs runs into pytest's own limit.
hypothesis.settings.register_profile("penstock", deadline=None)
hypothesis.settings.load_profile("penstock")

# A task that is about to end may take this many turns of the loop before it counts as left running.
LAST_TURNS = 3

Args = TypeVarTuple("Args")
ASYNCIO = str(Path(asyncio.__file__).parent)
CREATED: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--organizations", type=int, default=5, help="How many organizations to play through a model.")
    parser.addoption("--whole", action="store_true", help="Run all cases of the tests that are otherwise sampled.")
    parser.addoption("--steps", type=int, default=8, help="How many steps each organization of the model makes.")


def beyond_samples(items: list[pytest.Item]) -> set[pytest.Item]:
    """The cases of sweeps that are not in the sample: all but the first of so many as the mark says."""
    seen: Counter[str] = Counter()
    left_out = set()
    for item in items:
        if mark := item.get_closest_marker("sweep"):
            function = item.nodeid.partition("[")[0]
            if seen[function] % mark.args[0]:
                left_out.add(item)
            seen[function] += 1
    return left_out


def is_up_to_date() -> bool:
    """Whether the entry points of pyproject.toml are those that were installed with it."""
    declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["entry-points"]
    return all(
        [point.value for point in entry_points(group=group, name=name)] == [value]
        for group, points in declared.items()
        for name, value in points.items()
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than processors: tests wait for processes, databases and files that they have started.

    Each further worker needs ten seconds to import all tests and to start a server of Postgres.
    """
    return (os.cpu_count() or 1) + 1


def pytest_configure() -> None:
    """Write log lines as plain text: rendering tracebacks in colour takes longer than most tests."""
    if not is_up_to_date():
        pytest.exit("pyproject.toml names other entry points than those installed: run `make setup`", returncode=2)
    plainly = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[structlog.processors.add_log_level, plainly])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the slow tests: one that began last would leave all processors but one idle. Of a sweep, leave out
    what only `--whole` runs.
    """
    if not config.getoption("--whole"):
        left_out = beyond_samples(items)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=list(left_out))
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """Look for garbage from here on, but not among what was collected."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many requests were compared with which description of a provider."""
    for report in terminalreporter.getreports("passed"):
        for name, counts in report.user_properties:
            if name == "compared":
                terminalreporter.section("requests compared with descriptions by others")
                for source, count in counts.items():
                    terminalreporter.write_line(f"{count:6} {source}")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Run `async def` tests: each is replaced by a plain function, which pytest's own hook then calls."""
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):
        pyfuncitem.obj = as_plain_function(test)
    elif inspect.iscoroutinefunction(inner := getattr(getattr(test, "hypothesis", None), "inner_test", None)):
        test.hypothesis.inner_test = as_plain_function(inner)


def as_plain_function(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Return the test as a plain function that runs it in an event loop of its own."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        with asyncio.Runner(loop_factory=checking_loop) as runner:
            runner.run(run_and_check_tasks(test(*args, **kwargs)))

    return run


def checking_loop() -> asyncio.AbstractEventLoop:
    """Return a loop that remembers where each task was created and refuses calls from another thread.

    asyncio's debug mode does the same, but records the stack of every future and callback as well, which takes a third
    of a test's time.
    """
    loop = CheckingLoop()
    loop.set_task_factory(create_task)
    return loop


class CheckingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self.thread = threading.get_ident()

    def call_soon(self, callback: Callable[[*Args], object], *args: *Args, context: Any = None) -> asyncio.Handle:
        self.check_thread()
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Args], object], *args: *Args, context: Any = None
    ) -> asyncio.TimerHandle:
        self.check_thread()
        return super().call_at(when, callback, *args, context=context)

    def check_thread(self) -> None:
        if threading.get_ident() != self.thread:
            raise RuntimeError("Called from another thread than the loop's; there is call_soon_threadsafe for that.")


def create_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
    task = asyncio.Task(coroutine, loop=loop, **more)
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_code.co_filename.startswith(ASYNCIO):
        frame = frame.f_back
    if frame:
        CREATED[task] = f"{frame.f_code.co_qualname}, line {frame.f_lineno} of {frame.f_code.co_filename}"
    return task


async def run_and_check_tasks(test: Awaitable[None]) -> None:
    """Run a test; fail it if a task is left running or if the failure of a task was never read."""
    unseen: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(description(context)))
    await test
    left = await still_running()
    if left:
        pytest.fail(f"{len(left)} task(s) left running:\n" + "\n".join(where(task) for task in left), pytrace=False)
    if unseen:
        pytest.fail("failed unnoticed:\n" + "\n".join(unseen), pytrace=False)


async def still_running() -> list[asyncio.Task[Any]]:
    for _ in range(LAST_TURNS):
        await asyncio.sleep(0)
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


def where(task: asyncio.Task[Any]) -> str:
    """Describe a task: where our code created it and where it waits."""
    created = [f"\n    created in {CREATED[task]}"] if task in CREATED else []
    waits = [
        f"\n    waits in {frame.f_code.co_qualname}, line {frame.f_lineno} of {frame.f_code.co_filename}"
        for frame in task.get_stack()
    ]
    return f"  {task.get_name()}: {task.get_coro()!r}" + "".join(created + waits)


def description(context: dict[str, Any]) -> str:
    problem = context.get("exception")
    return f"  {context['message']}" + (f": {problem!r}" if problem else "")


@pytest.fixture(autouse=True)
def same_process() -> Iterator[None]:
    """Fail a test that changes the logs or the priority of the process, which later tests would suffer from."""
    before = _process_state()
    yield
    assert _process_state() == before, "the test has changed the logs or the priority of the process"


def _process_state() -> tuple[Any, ...]:
    cached = structlog.get_config()["cache_logger_on_first_use"]
    policy = os.sched_getscheduler(0) if hasattr(os, "sched_getscheduler") else None  # only Linux has it
    return cached, logging.root.level, policy


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of a Postgres server, without a database name; started by the first test that needs it, once per worker."""
    with postgres.server() as url:
        yield url
        gateway.close_observers()


@pytest.fixture
def fresh_database(postgres_url: str) -> str:
    """URL of an empty database that belongs to this test alone."""
    return postgres.fresh_database(postgres_url)


@pytest.fixture(scope="session")
def shared_database(postgres_url: str) -> Iterator[postgres.SharedDatabase]:
    with postgres.shared_database(postgres_url, keeps_connections=True) as database:
        yield database


@pytest.fixture
def migrated_database(shared_database: postgres.SharedDatabase) -> Iterator[str]:
    """URL of a database with the gateway's tables, without rows and for this test alone as long as it runs."""
    yield shared_database.url
    shared_database.empty()


@pytest.fixture
def free_port() -> int:
    return unused_port()


@pytest.fixture(params=BOTH)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    """SQLite and Postgres in turn; a test marked `@sqlite_only` runs on SQLite alone."""
    found: Dialect = request.param
    return found


@pytest.fixture
def installation(request: pytest.FixtureRequest, dialect: Dialect) -> gateway.Installation:
    return gateway.installation_for(request, dialect)


@pytest.fixture
def open_gateway(installation: gateway.Installation) -> gateway.OpenGateway:
    """Opens whole gateways on a database that belongs to this test alone."""
    return installation.open
