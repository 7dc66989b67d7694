"""A photo of a camera becomes an edit, a picture for the web and a video, and the video still names the camera."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import openai
import pytest

from penstock.imaging.sniff import sniff
from tests.gateway import sqlite_only
from tests.signed_files import camera_photo, damaged
from tests.stories.processes import ROOT, Serving

pytestmark = pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")


def fetched(url: str | None) -> bytes:
    with urlopen(url or "") as response:  # noqa: S310
        found: bytes = response.read()
        return found


def verified(*files: Path) -> tuple[int, list[dict[str, Any]]]:
    command = [sys.executable, "-m", "penstock", "verify", *map(str, files), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


@sqlite_only
def test_a_video_names_the_camera_whose_photo_it_was_made_from(served: Serving, tmp_path: Path) -> None:
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(camera_photo())
    with openai.OpenAI(base_url=served.base_url, api_key=served.key, timeout=30) as client:
        edited = client.images.edit(model="edit-1", prompt="a hat", image=photo)
        assert edited.data is not None
        edit = tmp_path / "edit.png"
        edit.write_bytes(fetched(edited.data[0].url))
        converted = client.images.edit(model="edit-1", prompt="a scarf", image=edit, output_format="webp")
        assert converted.data is not None
        web = tmp_path / "web.webp"
        web.write_bytes(fetched(converted.data[0].url))
        made = client.videos.create(model="atelier/clip", prompt="it snows", seconds="4", input_reference=web)
        done = client.videos.poll(made.id)
        assert done.status == "completed"
        video = tmp_path / "video.mp4"
        video.write_bytes(client.videos.download_content(made.id).read())
    types = [found.content_type for file in (edit, web, video) if (found := sniff(file.read_bytes()))]
    assert types == ["image/png", "image/webp", "video/mp4"]

    status, (said,) = verified(video)
    chain = said["credentials"]["chain"]
    assert (status, said["verdict"], len(chain)) == (0, "ai_marked", 4)
    assert [link["actions"] for link in chain] == [
        ["c2pa.created"],
        ["c2pa.created", "c2pa.converted"],
        ["c2pa.created"],
        ["c2pa.created"],
    ]
    assert [link["model"] for link in chain] == ["atelier/clip", "lab/easel-1", "lab/easel-1", "A camera"]
    assert [link.get("digital_source_type") for link in chain] == [
        "algorithmicMedia",
        "compositeWithTrainedAlgorithmicMedia",
        "compositeWithTrainedAlgorithmicMedia",
        "digitalCapture",
    ]
    assert [link.get("relationship") for link in chain] == [None, "inputTo", "inputTo", "inputTo"]

    broken = tmp_path / "broken.mp4"
    broken.write_bytes(damaged(video.read_bytes()))
    status, (said,) = verified(broken)
    assert (status, said["verdict"]) == (1, "tampered")
