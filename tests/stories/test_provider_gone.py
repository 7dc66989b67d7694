"""Calls are recorded with a provider, exported as files, and replayed by a gateway without that provider."""

import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.errors import RecordingNotFound
from penstock.generations import endpoints, retrieve
from penstock.recordings import files, folders
from tests.gateway import Installation, RunningGateway, two_providers
from tests.manual_clock import ManualClock

VIDEO = {"model": "video-1", "prompt": "a train", "seconds": 4}
IMAGE = {"model": "image-1", "prompt": "a pear", "size": "64x64", "response_format": "b64_json"}
RECORD, REPLAY = {"x-service-replay": "record"}, {"x-service-replay": "replay-or-error"}


def connections(port: int) -> int:
    """Return how many sockets of this process are connected to that port; the client keeps them open for a minute."""
    reached = psutil.Process(os.getpid()).net_connections("tcp")
    return sum(bool(connection.raddr) and connection.raddr.port == port for connection in reached)


async def run(running: RunningGateway, headers: dict[str, str]) -> tuple[Any, Any]:
    """Generate an image and a video, and wait for the video."""
    image = await endpoints.make_images(running.gateway, running.call(IMAGE, endpoint="/image", headers=headers))
    started = await endpoints.start_video(running.gateway, running.call(VIDEO, headers=headers))
    await running.wait_for_request(started.json["id"])
    video = await retrieve.video(running.gateway, running.call(id=started.json["id"]))
    return image, video


async def test_recordings_replace_a_provider_that_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    async with two_providers() as labs:
        first = Installation(tmp_path / "first", "", ManualClock())
        async with first.open(labs=labs) as running:
            image, video = await run(running, RECORD)
            assert connections(running.lab.port) > 0  # so that the same look below means something
            assert len(running.lab.invoice) == 2
            recordings = running.gateway.recordings
            for listed in (await recordings.page(running.caller.org_id)).data:
                row = await recordings.get(running.caller.org_id, listed.id)
                folders.save_recording(folder, *await files.export_recording(recordings, row))
        port = labs[0].port
        second = Installation(tmp_path / "second", "", ManualClock())
        async with second.open(labs=labs, providers={}) as running:
            for document in sorted(folder.glob("*.json")):
                loaded = folders.load_recording(document)
                now = running.clock.now_ms()
                await files.import_recording(
                    running.gateway.store,
                    running.gateway.recordings,
                    running.caller.org_id,
                    *loaded,
                    now,
                    pool=running.gateway.worker_pool,
                )
            before = await running.money()
            again, video_again = await run(running, REPLAY)
            assert again.json["data"] == image.json["data"]
            assert video_again.json["output"]["size_bytes"] == video.json["output"]["size_bytes"]
            assert video_again.json["metadata"]["executed_model"] == video.json["metadata"]["executed_model"]
            assert video_again.json["id"] != video.json["id"]
            assert await running.money() == before
            other = running.call({**IMAGE, "size": "128x128"}, endpoint="/image", headers=REPLAY)
            with pytest.raises(RecordingNotFound):
                await endpoints.make_images(running.gateway, other)
            assert connections(port) == 0
        assert len(labs[0].invoice) == 2
