"""Compare one and two connections that write to a SQLite database, as one or two server processes would.

    python -m bench.sqlite_writers [--works 20000]

A work inserts a row with two indexes and changes a balance. With one connection, as in the gateway, 32 works share a
commit and its sync. With two that take turns, each commits its own 16: as many calls at a time, from two processes.
After a commit of the other, SQLite forgets the pages that a connection has in memory.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import apsw

from penstock.store.queries import Queries
from penstock.store.sqlite_session import SETTINGS, open_session

_TABLES = """
CREATE TABLE requests (id TEXT PRIMARY KEY, org TEXT, at INTEGER, body TEXT) WITHOUT ROWID;
CREATE INDEX by_time ON requests (org, at);
CREATE TABLE orgs (id TEXT PRIMARY KEY, available INTEGER);
"""


def measure(writers: int, works: int, calls_at_once: int = 32) -> tuple[float, float, int]:
    """Return microseconds of processor time and of time a work, and the number of syncs."""
    with tempfile.TemporaryDirectory() as folder:
        sessions = [open_session(Path(folder) / "bench.db", Queries()) for _ in range(writers)]
        sessions[0].connection.execute(_TABLES)
        sessions[0].connection.execute("INSERT INTO orgs VALUES ('org', 0)")
        group = calls_at_once // writers
        commits = 0
        processor = time.process_time()
        started = time.perf_counter()
        for first in range(0, works, group):
            connection = sessions[commits % writers].connection
            connection.execute("BEGIN IMMEDIATE")
            for number in range(first, first + group):
                values = (os.urandom(12).hex(), number, "a lighthouse at dusk " * 10)
                connection.execute("INSERT INTO requests VALUES (?, 'org', ?, ?)", values)
                connection.execute("UPDATE orgs SET available = available - 1 WHERE id = 'org'")
            connection.execute("COMMIT")
            commits += 1
        figures = (time.process_time() - processor) / works * 1e6, (time.perf_counter() - started) / works * 1e6
        for session in sessions:
            session.connection.close()
        return *figures, commits


def main(works: int) -> None:
    print(f"SQLite {apsw.sqlite_lib_version()}, synchronous={SETTINGS['synchronous']}, {works} works")
    print(f"{'connections':>12}{'processor µs':>14}{'µs':>10}{'syncs':>8}")
    for _ in range(3):
        for writers in (1, 2):
            processor, elapsed, syncs = measure(writers, works)
            print(f"{writers:>12}{processor:>14.1f}{elapsed:>10.1f}{syncs:>8}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", type=int, default=20_000)
    main(parser.parse_args().works)
