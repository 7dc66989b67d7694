"""A video that runs until the test ends."""

from tests.fake_providers import faults
from tests.gateway import RunningGateway


async def start_video(running: RunningGateway) -> str:
    """Start the video and return its id when the provider has the job."""
    running.lab.videos.next(faults.never_ends)
    video_id: str = (await running.video()).json["id"]
    await running.lab.videos.reached(1)

    async def submitted() -> bool:
        return [row["state"] for row in await running.attempts(video_id)] == ["submitted"]

    await running.wait_until(submitted, step_seconds=0)
    return video_id
