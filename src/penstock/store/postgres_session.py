"""One connection to Postgres, which sends several statements together: one round trip for all of them.

psycopg's own cursors need about 140 µs of processor time for a statement, its wrapper of libpq 20 to 50 µs. So this
uses libpq's pipeline mode directly; connecting, waiting, cancelling and the conversion of values are psycopg's.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import abc
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Ready, Wait

from penstock.store.base import Row
from penstock.store.queries import Query

_BINARY: Final = 1


class Statement(NamedTuple):
    """A query with the values of its parameters, in their order."""

    query: Query
    values: Sequence[Any] = ()


class Result(NamedTuple):
    """What a statement did."""

    rows: list[Row]
    affected: int  # how many rows were returned, inserted, updated or deleted
    tag: str  # the server's name of what was done, such as `COMMIT`


@dataclass(slots=True, eq=False)
class _Prepared:
    """A statement that the server has prepared for these types of parameters; 0 is the type of NULL."""

    name: bytes
    query: Query
    types: tuple[int, ...]
    columns: tuple[str, ...] = ()

    def accepts(self, types: tuple[int, ...]) -> bool:
        return types == self.types or all(given in (0, known) for given, known in zip(types, self.types, strict=True))


class _Bound(NamedTuple):
    """A prepared statement with the values to send."""

    prepared: _Prepared
    values: Sequence[Any]
    formats: Sequence[Any]


class PostgresConnection(psycopg.AsyncConnection[Row]):
    """A connection in autocommit mode."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._statements: dict[str, list[_Prepared]] = {}
        self._count = 0
        self._converter: abc.Transformer | None = None
        self.completed = 0  # statements of the last round trip that succeeded

    async def run_together(self, statements: Iterable[Statement]) -> list[Result]:
        """Run statements in their order and return their results.

        Raises the error of the first one that fails. The server runs none after it. Outside a transaction, those before
        it are undone.
        """
        self.completed = 0
        bound = [self._bind(statement) for statement in statements]
        pgconn = self.pgconn
        sent: list[tuple[_Prepared, bool]] = []  # and whether it was to be prepared
        pgconn.enter_pipeline_mode()
        try:
            for prepared, values, formats in bound:
                if prepared not in self._statements.get(prepared.query.sql, ()) and (prepared, True) not in sent:
                    pgconn.send_prepare(prepared.name, prepared.query.sql.encode(), prepared.types)
                    sent.append((prepared, True))
                pgconn.send_query_prepared(prepared.name, values, formats, result_format=_BINARY)
                sent.append((prepared, False))
            pgconn.pipeline_sync()
            received = await self.wait(_receive(pgconn))
        finally:
            _leave_pipeline_mode(pgconn)
        return self._read(sent, received)

    def _bind(self, statement: Statement) -> _Bound:
        if self._converter is None:  # not earlier: the types of a connection are set after it was made
            self._converter = Transformer(self)
        query, values = statement
        dumped = self._converter.dump_sequence(values, [PyFormat.BINARY] * len(values))
        types = tuple(self._converter.types or ())
        formats = list(self._converter.formats or ())
        for prepared in self._statements.get(query.sql, ()):
            if prepared.accepts(types):
                return _Bound(prepared, dumped, formats)
        self._count += 1
        return _Bound(_Prepared(b"s%d" % self._count, query, types), dumped, formats)

    def _read(self, sent: list[tuple[_Prepared, bool]], received: list[PGresult]) -> list[Result]:
        found: list[Result] = []
        for (prepared, is_preparation), result in zip(sent, received, strict=False):
            if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
                raise error_from_result(result)
            if is_preparation:
                # The most specific first: it accepts NULL for each parameter too.
                self._statements.setdefault(prepared.query.sql, []).insert(0, prepared)
            else:
                found.append(self._load(prepared, result))
                self.completed += 1
        if len(received) > len(sent):  # the server ended the connection before it had committed what came last
            raise error_from_result(received[len(sent)])
        if len(received) < len(sent):
            raise psycopg.OperationalError("the connection was lost before all results were received")
        return found

    def _load(self, prepared: _Prepared, result: PGresult) -> Result:
        rows: list[Row] = []
        if self._converter and result.ntuples:
            if not prepared.columns:
                names = [result.fname(column) or b"" for column in range(result.nfields)]
                prepared.columns = tuple(name.decode() for name in names)
            columns = prepared.columns
            self._converter.set_pgresult(result)
            rows = self._converter.load_rows(0, result.ntuples, lambda row: dict(zip(columns, row, strict=True)))
        tag = (result.command_status or b"").decode()
        return Result(rows, result.command_tuples or 0, tag)


def _receive(pgconn: PGconn) -> Generator[Wait, Ready | int, list[PGresult]]:
    """Send what is queued, and return the results up to the end of the pipeline, or up to an error that ended the
    connection.
    """
    results: list[PGresult] = []
    try:
        while pgconn.flush():
            ready = yield Wait.RW
            if ready and ready & Ready.R:
                pgconn.consume_input()
        while pgconn.status == psycopg.pq.ConnStatus.OK:
            while pgconn.is_busy():
                if (yield Wait.R):
                    pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:  # after the results of each statement
                continue
            if result.status == ExecStatus.PIPELINE_SYNC:
                break
            results.append(result)
    except psycopg.OperationalError:
        if not any(result.status == ExecStatus.FATAL_ERROR for result in results):
            raise  # otherwise the server has said why it closed the connection
    return results


def _leave_pipeline_mode(pgconn: PGconn) -> None:
    try:
        pgconn.exit_pipeline_mode()
    except psycopg.OperationalError:  # results are missing, so the connection is of no more use
        pgconn.finish()
