"""Remember that the storage refused a file, so that nothing is bought that could not be stored."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from penstock.clock import Clock
from penstock.errors import StorageUnavailable
from penstock.media.storage import FileMissing, Storage, storage_key
from penstock.store.probe import Probe
from penstock.values import new_id

log = structlog.get_logger()
_PROBE_BYTES = 64 * 1024  # a disk that is almost full may have room for a few bytes


class StorageWrites:
    """Whether files can be stored: yes, until a write fails; then not before a probe succeeds."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._probe = Probe(clock, self._write)
        self._is_failing = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note whether the write in this block fails."""
        try:
            yield
        except StorageUnavailable:
            if not self._is_failing:
                log.error("files cannot be stored: images are refused until a probe succeeds")
            self._is_failing = True
            raise

    async def succeed(self) -> bool:
        """Whether files can be stored. Asks the storage only after a failure, at most every two seconds."""
        if self._is_failing and await self._probe.succeeds():
            log.warning("files can be stored again")
            self._is_failing = False
        return not self._is_failing

    async def check(self) -> None:
        """Raise StorageUnavailable while files cannot be stored, for a call that has sent and stored nothing yet."""
        if not await self.succeed():
            raise StorageUnavailable("Files cannot be stored at the moment; nothing was made.", should_retry=True)

    async def _write(self) -> bool:
        try:
            return await probe(self._storage, self._clock.now_ms())
        except FileMissing:
            return False


async def probe(storage: Storage, at_ms: int) -> bool:
    """Store a file, read it and delete it; return whether it came back as it was. Raises FileMissing and
    StorageUnavailable.
    """
    key = storage_key(new_id("probe", at_ms))
    content = os.urandom(_PROBE_BYTES)
    await storage.create(key, content, "application/octet-stream")
    found = b"".join([part async for part in storage.read(key, 0, len(content))])
    await storage.delete(key)
    return found == content
