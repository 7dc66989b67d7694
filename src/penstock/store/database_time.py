"""Take the time of leases, deadlines and retries from the database, which all processes share."""

from penstock.clock import Clock
from penstock.store.base import Store

_APART_SECONDS = 1.0  # by which clocks may differ


async def follow_database_time(store: Store, clock: Clock) -> None:
    """Let the `steady_ms` of a clock show the time of the database, as exactly as a round trip tells.

    Does nothing on SQLite, where processes that follow each other run on one machine. Raises StorageUnavailable.
    """
    if store.dialect == "sqlite":
        return
    asked_at = clock.monotonic()
    row = await store.one("get_time")
    assert row is not None, "a SELECT without FROM has one row"
    round_trip_ms = int((clock.monotonic() - asked_at) * 1000) + 1
    clock.follow(row["now_ms"], row["now_ms"] + round_trip_ms)


def describe_difference(store: Store, clock: Clock) -> str | None:
    """Say by how much the wall clock of this machine differs from the database's, if it is more than a second.

    `clock` has to follow the database.
    """
    ahead = (clock.now_ms() - clock.steady_ms()) / 1000
    if store.dialect == "sqlite" or abs(ahead) <= _APART_SECONDS:
        return None
    return f"The clock of this machine is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} the database's."
