"""Keep connections to a database open from test to test.

A new connection is a new process of the server, which first has to read what tables and functions there are. That takes
more processor time than most tests. What the store has prepared stays prepared: to parse and plan all statements anew
takes most of the server's time for a test.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg import pq
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn

from penstock.store.postgres_session import PostgresConnection

# A gateway has about five connections. Where more than this were used at the same time, the oldest ones are closed.
KEPT_MAX = 20

CLOSED = pq.PGconn.connect_start(b"not a connection string")
CLOSED.finish()


DISCARD = b"DISCARD ALL"
# The same, but statements that were prepared, and their plans, stay.
DISCARD_OTHERS = (
    b"CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; SELECT pg_advisory_unlock_all(); "
    b"DISCARD TEMP; DISCARD SEQUENCES"
)
# What the store's connections know about the statements that they have prepared.
PREPARED = ("_statements", "_count")


class Kept(NamedTuple):
    """A connection that waits for its next owner."""

    parameters: str  # with which it was made
    connection: PGconn
    owner: type[Any]
    prepared: dict[str, Any]


class KeptConnections:
    """Connections to one database that their owners have closed and that wait for the next owner."""

    def __init__(self, url: str) -> None:
        self._database = url.rpartition("/")[2].encode()
        self._kept: list[Kept] = []

    @property
    def pids(self) -> list[int]:
        """The ids of their processes of the server."""
        return [kept.connection.backend_pid for kept in self._kept]

    def take(self, owner: type[Any], parameters: str) -> Kept | None:
        """Return a connection of that class with these parameters that the server has not ended meanwhile, if any."""
        for index in reversed(range(len(self._kept))):
            if (self._kept[index].owner, self._kept[index].parameters) == (owner, parameters):
                kept = self._kept.pop(index)
                if kept.connection.exec_(b"").status == ExecStatus.EMPTY_QUERY:
                    return kept
                kept.connection.finish()
        return None

    def keep(self, owner: Any) -> bool:
        """Keep the connection of an owner and let it be as new, unless something is still under way on it."""
        connection: PGconn = owner.pgconn
        is_idle = connection.transaction_status == TransactionStatus.IDLE
        if connection.db != self._database or not is_idle:
            return False
        has_only_ours = isinstance(owner, PostgresConnection) and not owner._prepared._names
        if connection.exec_(DISCARD_OTHERS if has_only_ours else DISCARD).status != ExecStatus.COMMAND_OK:
            return False
        while connection.notifies():
            pass
        prepared = {name: getattr(owner, name) for name in PREPARED} if has_only_ours else {}
        self._kept.append(Kept(owner.parameters, connection, type(owner), prepared))
        if len(self._kept) > KEPT_MAX:
            self._kept.pop(0).connection.finish()
        return True

    def close(self) -> None:
        while self._kept:
            self._kept.pop().connection.finish()


@contextmanager
def keep_connections(url: str) -> Iterator[KeptConnections]:
    """Meanwhile keep what asyncio's side of psycopg connects to this database, in this process."""
    kept = KeptConnections(url)
    connect = psycopg.AsyncConnection._connect_gen.__func__  # type: ignore[attr-defined]
    close = psycopg.AsyncConnection.close

    def take_or_connect(cls: type[Any], parameters: str) -> Generator[Any, Any, Any]:
        found = kept.take(cls, parameters)
        connection = (yield from connect(cls, parameters)) if found is None else cls(found.connection)
        for name, value in found.prepared.items() if found else ():
            setattr(connection, name, value)
        connection.parameters = parameters
        return connection

    async def keep_or_close(connection: Any) -> None:
        if not connection.closed and kept.keep(connection):
            connection.pgconn = CLOSED
        else:
            await close(connection)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(psycopg.AsyncConnection, "_connect_gen", classmethod(take_or_connect))
        patched.setattr(psycopg.AsyncConnection, "close", keep_or_close)
        yield kept
    kept.close()
