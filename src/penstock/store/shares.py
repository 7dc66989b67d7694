"""Share connections to Postgres among the writes of organizations, and keep some for reads; share slow reads, too."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.errors import StorageUnavailable
from penstock.store.base import Row
from penstock.values import OrgId


def share_of(values: Row) -> OrgId:
    """For whom a slow read is made, by the parameters of its query: an organization, or the gateway itself."""
    return OrgId(values.get("org_id") or "")


class WriteShares:
    """Limits how many writes use a connection at a time: all of them together, and those of one organization.

    A transaction that waits for a locked row keeps its connection meanwhile. Without these limits, the calls of one
    organization whose balance is locked would soon wait on every connection.
    """

    def __init__(self, connections: int, wait_seconds: float) -> None:
        self._wait_seconds = wait_seconds
        self._all = asyncio.Semaphore(max(1, connections - connections // 4))
        self._per_org = max(1, connections // 2)
        self._by_org: dict[str, tuple[asyncio.Semaphore, int]] = {}  # with the number of its users

    @asynccontextmanager
    async def take(self, org_id: OrgId | None) -> AsyncIterator[None]:
        """Wait for a share, and keep it while this is open. Raises StorageUnavailable when none becomes free."""
        if org_id is None:
            async with self._hold(self._all):
                yield
            return
        semaphore, users = self._by_org.get(org_id) or (asyncio.Semaphore(self._per_org), 0)
        self._by_org[org_id] = semaphore, users + 1
        try:
            async with self._hold(semaphore), self._hold(self._all):
                yield
        finally:
            _, users = self._by_org.pop(org_id)
            if users > 1:
                self._by_org[org_id] = semaphore, users - 1

    @asynccontextmanager
    async def _hold(self, semaphore: asyncio.Semaphore) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._wait_seconds if semaphore.locked() else None):
                await semaphore.acquire()
        except TimeoutError:
            message = "Storage is unavailable: too many writes wait for a connection to the database."
            raise StorageUnavailable(message) from None
        try:
            yield
        finally:
            semaphore.release()
