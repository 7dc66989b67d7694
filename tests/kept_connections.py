"""Keep connections to a database open from test to test.

A new connection is a new process of the server, which first has to read what tables and functions there are. That takes
more processor time than most tests.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import pq
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn

# A gateway has about five connections. Where more than this were used at the same time, the oldest ones are closed.
KEPT_MAX = 20

CLOSED = pq.PGconn.connect_start(b"not a connection string")
CLOSED.finish()


class KeptConnections:
    """Connections to one database that their owners have closed and that wait for the next owner."""

    def __init__(self, url: str) -> None:
        self._database = url.rpartition("/")[2].encode()
        self._kept: list[tuple[str, PGconn]] = []  # with the parameters that they were made with

    @property
    def pids(self) -> list[int]:
        """The ids of their processes of the server."""
        return [connection.backend_pid for _, connection in self._kept]

    def take(self, parameters: str) -> PGconn | None:
        """Return a connection with these parameters that the server has not ended meanwhile, if there is one."""
        for index in reversed(range(len(self._kept))):
            if self._kept[index][0] == parameters:
                _, connection = self._kept.pop(index)
                if connection.exec_(b"").status == ExecStatus.EMPTY_QUERY:
                    return connection
                connection.finish()
        return None

    def keep(self, parameters: str, connection: PGconn) -> bool:
        """Keep a connection and let it be as new, unless something is still under way on it."""
        is_idle = connection.transaction_status == TransactionStatus.IDLE
        if connection.db != self._database or not is_idle:
            return False
        if connection.exec_(b"DISCARD ALL").status != ExecStatus.COMMAND_OK:
            return False
        while connection.notifies():
            pass
        self._kept.append((parameters, connection))
        if len(self._kept) > KEPT_MAX:
            self._kept.pop(0)[1].finish()
        return True

    def close(self) -> None:
        while self._kept:
            self._kept.pop()[1].finish()


@contextmanager
def keep_connections(url: str) -> Iterator[KeptConnections]:
    """Meanwhile keep what asyncio's side of psycopg connects to this database, in this process."""
    kept = KeptConnections(url)
    connect = psycopg.AsyncConnection._connect_gen.__func__  # type: ignore[attr-defined]
    close = psycopg.AsyncConnection.close

    def take_or_connect(cls: type[Any], parameters: str) -> Generator[Any, Any, Any]:
        found = kept.take(parameters)
        connection = (yield from connect(cls, parameters)) if found is None else cls(found)
        connection.parameters = parameters
        return connection

    async def keep_or_close(connection: Any) -> None:
        if not connection.closed and kept.keep(connection.parameters, connection.pgconn):
            connection.pgconn = CLOSED
        else:
            await close(connection)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(psycopg.AsyncConnection, "_connect_gen", classmethod(take_or_connect))
        patched.setattr(psycopg.AsyncConnection, "close", keep_or_close)
        yield kept
    kept.close()
