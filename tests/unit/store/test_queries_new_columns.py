"""A process runs beside a newer version of itself, which has added columns to the tables that both of them use."""

from collections import Counter
from typing import Any

import apsw
import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from penstock.store.queries import Query, package_queries
from tests import postgres
from tests.many_cases import check_each
from tests.table_columns import additions, migrated_sqlite

INT8 = 20  # the number of that type in Postgres
Read = tuple[str, str]  # a table and a column


def reads(connection: apsw.Connection, query: Query) -> list[Read]:
    """Every column that a statement reads. Raises apsw.SQLError if it is not clear which table a column belongs to."""
    found: list[Read] = []

    def note(operation: int, table: str | None, column: str | None, *_: str | None) -> int:
        if operation == apsw.SQLITE_READ:
            found.append((table or "", column or ""))
        return apsw.SQLITE_OK

    connection.authorizer = note
    try:
        connection.execute("EXPLAIN " + query.sql, dict.fromkeys(query.parameters)).fetchall()
    finally:
        connection.authorizer = None
    return found


def test_statements_read_the_same_columns_of_sqlite_after_others_were_added() -> None:
    before = migrated_sqlite()
    after = migrated_sqlite()
    for statement in additions():
        after.execute(statement)

    def check(name: str) -> None:
        query = package_queries().sqlite[name]
        old, new = Counter(reads(before, query)), Counter(reads(after, query))
        changed = (old - new) | (new - old)
        assert not changed, f"it reads {sum(changed.values())} columns otherwise, such as {min(changed)}"

    check_each(check, sorted(package_queries().sqlite))


async def test_prepared_statements_of_postgres_run_on_after_columns_were_added(fresh_database: str) -> None:
    """A connection that lives through the migration of a newer version has prepared its statements before."""
    await postgres.migrate(fresh_database)
    connection = await psycopg.AsyncConnection.connect(fresh_database, autocommit=True)
    pgconn = connection.pgconn
    queries = package_queries().postgres
    statements = {name: query for query in queries.values() for name, query in versions(query)}
    before: dict[str, list[bytes | None]] = {}
    for name, query in statements.items():
        prepared = prepare(pgconn, name, query)
        assert succeeded(prepared), prepared.error_message
        before[name] = result_columns(pgconn.describe_prepared(name.encode()))
    for statement in additions():
        assert succeeded(pgconn.exec_(statement.encode()))

    def check(name: str) -> None:
        query = statements[name]
        assert result_columns(pgconn.describe_prepared(name.encode())) == before[name]
        values: list[Any] = [None] * len(query.parameters)
        pgconn.exec_(b"BEGIN")
        result = pgconn.exec_prepared(name.encode(), values)
        pgconn.exec_(b"ROLLBACK")
        # Without values an insert is refused for what a column requires, which is no matter here.
        assert succeeded(result) or b"not-null" in result.error_message, result.error_message
        prepared = prepare(pgconn, f"{name} again", query)
        assert succeeded(prepared), prepared.error_message

    try:
        check_each(check, sorted(statements))
    finally:
        await connection.close()


def versions(query: Query) -> list[tuple[str, Query]]:
    """A query, and its version for many rows if it has one."""
    return [(query.name, query), *([(f"{query.name} many", query.many)] if query.many else [])]


def prepare(pgconn: PGconn, name: str, query: Query) -> PGresult:
    """Prepare a statement with the types that the store gives, where the server would not find them by itself."""
    types = [INT8 if parameter in ("amount", "floor", "reserved") else 0 for parameter in query.parameters]
    return pgconn.prepare(name.encode(), query.sql.encode(), types)


def succeeded(result: PGresult) -> bool:
    return result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


def result_columns(described: PGresult) -> list[bytes | None]:
    return [described.fname(number) for number in range(described.nfields)]
