"""What a job tells the caller that waits for it in this process and need not read it from the store."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.errors import Problem
from penstock.generation_jobs.rows import GenerationRow, Plan
from penstock.jobs.running import RunningJob
from penstock.schema import GenerationResult, Request, StoredOutput


class PartialImages:
    """Unfinished images on their way to a caller: at most so many are kept, and the job never waits for the caller."""

    def __init__(self, max_images: int) -> None:
        self._images: deque[Mapping[str, Any]] = deque(maxlen=max_images)
        self._changed = asyncio.Event()

    def add(self, image: Mapping[str, Any]) -> None:
        self._images.append(image)
        self._changed.set()

    def take_all(self) -> list[Mapping[str, Any]]:
        """The images that have come since the last call."""
        images = list(self._images)
        self._images.clear()
        self._changed.clear()
        return images

    async def wait(self) -> None:
        """Wait for the next image."""
        await self._changed.wait()


class CompletedGeneration(msgspec.Struct, frozen=True):
    """A generation at its end."""

    row: GenerationRow
    request: Request
    plan: Plan
    result: GenerationResult
    expires_at_ms: int
    outputs: Sequence[StoredOutput] = ()  # while they are still in memory


@dataclass(slots=True, eq=False)
class Mailbox:
    """Where a job leaves its unfinished images, if the caller wants to see them, and how it ended."""

    partial_images: PartialImages | None = None
    end: CompletedGeneration | Problem | None = None

    def take_problem(self) -> Problem:
        """Return the problem that the job ended with, and forget it: a frame that raises it and refers to it would keep
        the call in memory.
        """
        problem, self.end = self.end, None
        assert isinstance(problem, Problem), "the caller looked"
        return problem

    async def wait(self, running: RunningJob, seconds: float) -> bool:
        """Wait for the job or for the next unfinished image; return whether the job has ended."""
        if self.partial_images is None:
            return await running.wait(seconds)
        arrival = asyncio.create_task(self.partial_images.wait())
        try:
            await asyncio.wait({running.task, arrival}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            arrival.cancel()
        return running.task.done()
