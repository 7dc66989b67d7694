"""Every video call of OpenAI's client, unchanged."""

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from tests.fake_providers.scripted import ScriptedProvider, mp4, png
from tests.gateway import sqlite_only
from tests.stories.processes import Serving, until

pytestmark = pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")


@pytest.fixture
def client(served: Serving) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served.base_url, api_key=served.key, timeout=30) as client:
        yield client


@sqlite_only
def test_every_video_call_of_the_client(client: openai.OpenAI, lab: ScriptedProvider, tmp_path: Path) -> None:
    first = client.videos.create_and_poll(model="video-1", prompt="a train", seconds="4", size="1280x720")
    assert (first.status, first.progress, first.error) == ("completed", 100, None)
    second = client.videos.create(model="video-1", prompt="a boat", input_reference=("sea.png", png(64, 64)))
    assert second.status == "queued"
    assert client.videos.poll(second.id).status == "completed"
    shown = client.videos.retrieve(second.id)
    assert (shown.id, shown.prompt, shown.object) == (second.id, "a boat", "video")

    lab.states = ("queued", "in_progress 40")
    endless = client.videos.create(model="video-1", prompt="a river")
    until(lambda: client.videos.retrieve(endless.id).status == "in_progress")
    client.videos.delete(endless.id)
    gone = client.videos.poll(endless.id)
    assert gone.error is not None
    assert (gone.status, gone.error.code) == ("failed", "CANCELLED")
    assert len(lab.cancels) == 1

    newest_first = [endless.id, second.id, first.id]
    assert [video.id for video in client.videos.list()] == newest_first
    assert [video.id for video in client.videos.list(limit=1)] == newest_first, "page by page"
    assert [video.id for video in client.videos.list(limit=2, order="asc")] == newest_first[::-1]
    assert client.videos.list(limit=1, after=second.id).data[0].id == first.id

    client.videos.download_content(first.id).write_to_file(tmp_path / "train.mp4")
    frames = mp4().partition(b"mdat")[2].partition(b"moov")[0]  # around them stand Content Credentials
    assert frames in (tmp_path / "train.mp4").read_bytes()
    with client.videos.with_streaming_response.download_content(second.id) as response:
        assert frames in b"".join(response.iter_bytes())
    with pytest.raises(openai.ConflictError):
        client.videos.download_content(endless.id)
    with pytest.raises(openai.NotFoundError):
        client.videos.retrieve("req_" + "0" * 32)
