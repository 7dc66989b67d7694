"""The hooks and fixtures of conftest.py: coroutine tests fail when they should, databases are separate."""

import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from pytest_socket import SocketConnectBlockedError

from penstock.store.postgres_session import PostgresConnection, Statement
from penstock.store.queries import Query
from tests import postgres

HERE = Path(__file__).parent
THIS_MACHINE = "0.0.0.0"  # noqa: S104 - reaches this machine only, and is not in the list of allowed hosts


@pytest.fixture
def pytester_with_hooks(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder where tests run with the hooks of our conftest only."""
    pytester.makeconftest(f"import sys\nsys.path.insert(0, {str(HERE.parent)!r})\nfrom tests.conftest import *")
    return pytester


def outcome(pytester_with_hooks: pytest.Pytester, source: str) -> pytest.RunResult:
    pytester_with_hooks.makepyfile(f"import asyncio, gc\n{source}")
    return pytester_with_hooks.runpytest_inprocess("-p", "no:cacheprovider", "--disable-plugin-autoload", "-q")


def test_coroutine_passes(pytester_with_hooks: pytest.Pytester) -> None:
    source = "async def test_it(tmp_path):\n    await asyncio.sleep(0)\n    assert tmp_path"
    outcome(pytester_with_hooks, source).assert_outcomes(passed=1)


@pytest.mark.parametrize(("options", "passed"), [([], 4), (["--whole"], 8)])
def test_a_sweep_is_sampled_unless_the_whole_is_asked_for(
    pytester_with_hooks: pytest.Pytester, options: list[str], passed: int
) -> None:
    pytester_with_hooks.makepyfile(
        "import pytest\n"
        "@pytest.mark.sweep(3)\n@pytest.mark.parametrize('kind', range(7))\ndef test_it(kind): ...\n"
        "def test_other(): ..."
    )
    pytester_with_hooks.makeini("[pytest]\nmarkers = sweep(every): ...")
    options = [*options, "-p", "no:cacheprovider", "--disable-plugin-autoload", "-q"]
    pytester_with_hooks.runpytest_inprocess(*options).assert_outcomes(passed=passed, deselected=8 - passed)


def test_coroutine_fails(pytester_with_hooks: pytest.Pytester) -> None:
    outcome(pytester_with_hooks, "async def test_it():\n    await asyncio.sleep(0)\n    assert 0").assert_outcomes(
        failed=1
    )


def test_coroutine_with_parameters(pytester_with_hooks: pytest.Pytester) -> None:
    source = "import pytest\n@pytest.mark.parametrize('n', [1, 2, 3])\nasync def test_it(n):\n    assert n < 3"
    outcome(pytester_with_hooks, source).assert_outcomes(passed=2, failed=1)


@pytest.mark.parametrize(("claim", "expected"), [("n >= 0", {"passed": 1}), ("n < 10", {"failed": 1})])
def test_coroutine_under_hypothesis(pytester_with_hooks: pytest.Pytester, claim: str, expected: dict[str, int]) -> None:
    source = f"""
from hypothesis import given, settings, strategies
@settings(database=None)
@given(n=strategies.integers(0, 20))
async def test_it(n):
    await asyncio.sleep(0)
    assert {claim}
"""
    outcome(pytester_with_hooks, source).assert_outcomes(**expected)


def test_task_left_running(pytester_with_hooks: pytest.Pytester) -> None:
    source = """
async def forever():
    await asyncio.Event().wait()
async def test_it():
    task = asyncio.create_task(forever(), name="a forgotten task")
    kept.add(task)
kept = set()  # or the garbage collector could remove it first
"""
    result = outcome(pytester_with_hooks, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*1 task(s) left running*",
            "*a forgotten task*",
            "*created in test_it, line 6 of *test_task_left_running.py",
            "*waits in forever, line 4 of *test_task_left_running.py",
        ]
    )


def test_task_about_to_end_passes(pytester_with_hooks: pytest.Pytester) -> None:
    source = "async def test_it():\n    task = asyncio.create_task(asyncio.sleep(0))"
    outcome(pytester_with_hooks, source).assert_outcomes(passed=1)


def test_failure_that_is_never_read(pytester_with_hooks: pytest.Pytester) -> None:
    source = """
async def fail():
    raise ValueError("unseen")
async def test_it():
    asyncio.create_task(fail())
    await asyncio.sleep(0)
    gc.collect()
"""
    result = outcome(pytester_with_hooks, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*failed unnoticed*", "*ValueError('unseen')*"])


@pytest.mark.parametrize(("how", "expected"), [("call_soon", {"failed": 1}), ("call_soon_threadsafe", {"passed": 1})])
def test_call_from_another_thread(pytester_with_hooks: pytest.Pytester, how: str, expected: dict[str, int]) -> None:
    source = f"""
async def test_it():
    await asyncio.to_thread(asyncio.get_running_loop().{how}, print)
"""
    outcome(pytester_with_hooks, source).assert_outcomes(**expected)


def test_own_failure_wins_over_tasks_left(pytester_with_hooks: pytest.Pytester) -> None:
    source = "async def test_it():\n    task = asyncio.create_task(asyncio.sleep(9))\n    raise ValueError('its own')"
    outcome(pytester_with_hooks, source).stdout.fnmatch_lines(["*ValueError: its own*"])


def test_a_fresh_database_is_as_new_for_each_test(postgres_url: str) -> None:
    """It has neither tables, schemas nor settings of the test before, and no connection that keeps locks."""
    reads = {
        "schemas": "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1",
        "tables": "SELECT schemaname, tablename FROM pg_tables WHERE schemaname !~ '^pg_|^information_schema$'",
        "lock timeout": "SHOW lock_timeout",
    }

    def state() -> dict[str, object]:
        with psycopg.connect(postgres.fresh_database(postgres_url)) as connection:
            return {name: connection.execute(sql.encode()).fetchall() for name, sql in reads.items()}

    new = state()
    assert new == {"schemas": [("information_schema",), ("public",)], "tables": [], "lock timeout": [("0",)]}
    with closing(psycopg.connect(postgres.fresh_database(postgres_url))) as connection:
        connection.execute("CREATE TABLE one (a integer)")
        connection.execute("CREATE SCHEMA more CREATE TABLE two (a integer)")
        connection.execute("ALTER DATABASE fresh SET lock_timeout = '7s'")
        connection.commit()
        connection.execute("LOCK TABLE one, more.two")
        assert state() == new


def test_a_shared_database_is_as_new_after_a_test(shared_database: postgres.SharedDatabase) -> None:
    """It has neither the test's rows nor its changes of the migrations' rows, no locks, and sequences begin again."""
    reads = {
        "facts": "SELECT name FROM facts",
        "versions": "SELECT version, name FROM schema_version ORDER BY version",
        "next job": "SELECT nextval('procrastinate_jobs_id_seq')",
    }

    def state() -> dict[str, object]:
        with psycopg.connect(shared_database.url) as connection:
            return {name: connection.execute(sql.encode()).fetchall() for name, sql in reads.items()}

    shared_database.empty()
    new = state()
    assert new["versions"]
    with closing(psycopg.connect(shared_database.url)) as connection:
        connection.execute("INSERT INTO facts (name, value) VALUES ('a', 'b')")
        connection.execute("UPDATE schema_version SET name = 'changed'")
        connection.commit()
        connection.execute("LOCK TABLE facts")
        shared_database.empty()
        assert state() == new


async def test_a_kept_connection_is_as_new(migrated_database: str) -> None:
    reads = (
        "SHOW lock_timeout",
        "SELECT name FROM pg_prepared_statements",
        "SELECT pg_listening_channels()",
        "SELECT mode FROM pg_locks WHERE locktype = 'advisory'",
    )

    async def state(connection: psycopg.AsyncConnection[Any]) -> list[object]:
        return [await (await connection.execute(sql.encode())).fetchall() for sql in reads]

    async with await psycopg.AsyncConnection.connect(migrated_database, autocommit=True) as first:
        new = await state(first)
        await first.execute("SET lock_timeout = '1s'")
        await first.execute("PREPARE one AS SELECT 1")
        await first.execute("LISTEN wakeups")
        await first.execute("NOTIFY wakeups")
        await first.execute("SELECT pg_advisory_lock(1)")
        assert all(before != now for before, now in zip(new, await state(first), strict=True))
        pid = first.info.backend_pid
    async with await psycopg.AsyncConnection.connect(migrated_database, autocommit=True) as second:
        assert (second.info.backend_pid, await state(second)) == (pid, new)
        assert [notify async for notify in second.notifies(timeout=0)] == []


async def test_a_kept_connection_of_the_store_has_what_the_store_prepared(migrated_database: str) -> None:
    statement = Statement(Query("two", "Two.", "SELECT $1::integer + 1 AS two", ("one",), writes=False), [1])
    other = Statement(Query("three", "Three.", "SELECT $1::integer + 2 AS three", ("one",), writes=False), [1])
    prepared = "SELECT count(*) AS count FROM pg_prepared_statements"

    async def run(*statements: Statement) -> tuple[int, list[Any], Any]:
        async with await PostgresConnection.connect(
            migrated_database, autocommit=True, row_factory=dict_row
        ) as connection:
            rows = [result.rows for result in await connection.run_together(statements)]
            await connection.execute("SET lock_timeout = '1s'")
            return connection.info.backend_pid, rows, await (await connection.execute(prepared)).fetchone()

    first = await run(statement)
    assert first[1:] == ([[{"two": 2}]], {"count": 1})
    assert await run(statement) == first
    assert await run(statement, other) == (first[0], [[{"two": 2}], [{"three": 3}]], {"count": 2})


async def test_a_connection_in_a_transaction_or_ended_by_the_server_is_not_kept(migrated_database: str) -> None:
    first = await psycopg.AsyncConnection.connect(migrated_database)
    await first.execute("LOCK TABLE facts")
    pids = [first.info.backend_pid]
    await first.close()
    async with await psycopg.AsyncConnection.connect(migrated_database, autocommit=True) as second:
        pids.append(second.info.backend_pid)
    with psycopg.connect(migrated_database, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", (pids[-1],))
    async with await psycopg.AsyncConnection.connect(migrated_database) as third:
        await third.execute("SELECT value FROM facts")
        assert third.info.backend_pid not in pids


@pytest.mark.parametrize("change", ["CREATE TABLE more (a TEXT)", "ALTER TABLE orgs ADD more TEXT", "DROP TABLE facts"])
def test_shared_tables_cannot_be_changed(migrated_database: str, change: str) -> None:
    with (
        psycopg.connect(migrated_database) as connection,
        pytest.raises(psycopg.errors.RaiseException, match="fresh_database"),
    ):
        connection.execute(change.encode())


def test_free_port_is_free(free_port: int) -> None:
    with socket.create_server(("127.0.0.1", free_port)) as listening:
        assert listening.getsockname()[1] == free_port


def test_no_network_beyond_this_machine() -> None:
    with (
        socket.socket() as outside,
        pytest.warns(UserWarning, match=THIS_MACHINE),
        pytest.raises(SocketConnectBlockedError),
    ):
        outside.connect((THIS_MACHINE, 9))
