"""A process that delivers webhooks from a SQLite file until it is killed; its argument is JSON.

Every name is at 127.0.0.1. `later_seconds` sets its clock forward, for restarts that would have to wait for a lease.
`spare_files` leaves it that many file descriptors, until SIGUSR1 gives them back.
"""

import asyncio
import json
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from penstock.clock import Clock
from penstock.net.client import HttpClient
from penstock.settings import Settings
from penstock.store.migrate import package_migrations
from penstock.store.queries import package_queries
from penstock.store.sqlite import open_sqlite
from penstock.vault import Vault
from penstock.webhooks.deliveries import Deliveries
from penstock.webhooks.sender import Sender


class LaterClock(Clock):
    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._ahead_ms = round(seconds * 1000)

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms

    def steady_ms(self) -> int:
        return super().steady_ms() + self._ahead_ms


async def at_home(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


def starve(spare_files: int) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    signal.signal(signal.SIGUSR1, lambda *_: resource.setrlimit(resource.RLIMIT_NOFILE, most))
    used = max(int(item.name) for item in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare_files, most[1]))


async def main(database: str, ca_file: str, settings: dict[str, Any], later_seconds: float, spare_files: int) -> None:
    store = await open_sqlite(Path(database), package_queries(), package_migrations())
    client = HttpClient(ca_file=Path(ca_file), resolver=at_home)
    clock = LaterClock(later_seconds)
    chosen = msgspec.convert(settings, Settings)
    sender = Sender(store, client, Vault("v" * 43), clock, chosen)
    deliveries = Deliveries(store, sender, clock, chosen)
    if spare_files:
        starve(spare_files)
    await deliveries.run()


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
