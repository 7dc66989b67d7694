"""The mailbox of a caller that waits: unfinished images, and the end of the job."""

import asyncio

from penstock.generation_jobs.mailbox import Mailbox, PartialImages
from penstock.jobs.running import Lease, RunningJob


async def test_unfinished_images_are_kept_up_to_a_limit_and_the_job_does_not_wait() -> None:
    running = RunningJob(Lease("req_1", 1))
    running.task = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]
    images = PartialImages(2)
    mailbox = Mailbox(images)
    for number in range(3):
        images.add({"number": number})
    assert await mailbox.wait(running, 60) is False
    assert images.take_all() == [{"number": 1}, {"number": 2}]
    assert images.take_all() == []
    assert await mailbox.wait(running, 0) is False
    running.task.cancel()
    assert await mailbox.wait(running, 60) is True
