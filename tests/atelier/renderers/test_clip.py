"""Videos are real H.264 files of the asked length and size, and the same every time."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import pytest
from PIL import Image

from penstock.imaging.convert import BadImage
from penstock.imaging.sniff import sniff
from penstock_atelier.renderers import clip
from penstock_atelier.renderers.clip import FRAMES_PER_SECOND, RenderedVideo
from tests.atelier.drawings import check_each, draw, png


def render(path: Path, prompt: str, **changes: Any) -> RenderedVideo:
    """Render a short and small video, unless changed, and write it to a file."""
    usual: dict[str, Any] = {"image": None, "seconds": 1, "width": 64, "height": 64, "seed": 0}
    video = clip.render_video(prompt, **{**usual, "progress": lambda fraction: None, **changes})
    path.write_bytes(video.data)
    return video


def frames(path: Path) -> list[Image.Image]:
    with av.open(str(path)) as container:
        return [frame.to_image() for frame in container.decode(video=0)]  # type: ignore[no-untyped-call]


def difference(first: bytes, second: bytes) -> float:
    return sum(abs(a - b) for a, b in zip(first, second, strict=True)) / len(first)


@pytest.mark.parametrize(("seconds", "width", "height"), [(1, 320, 180), (1.5, 180, 320), (2.25, 98, 66), (1, 64, 64)])
def test_codec_size_and_length(tmp_path: Path, seconds: float, width: int, height: int) -> None:
    path = tmp_path / "video.mp4"
    video = render(path, "a boat on the sea", seconds=seconds, width=width, height=height)
    half_a_frame = 0.5 / FRAMES_PER_SECOND
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.name == "h264"
        assert stream.codec_context.pix_fmt == "yuv420p"
        assert (stream.width, stream.height) == (video.width, video.height) == (width, height)
        assert stream.average_rate == FRAMES_PER_SECOND
        assert float((stream.duration or 0) * (stream.time_base or 0)) == pytest.approx(seconds, abs=half_a_frame)
    assert video.seconds == pytest.approx(seconds, abs=half_a_frame)
    assert video.frames == len(frames(path)) == round(seconds * FRAMES_PER_SECOND)


def test_the_index_comes_before_the_frames(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    render(path, "forest")
    data = path.read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")
    found = sniff(data)
    assert found is not None
    assert found.content_type == "video/mp4"


def test_something_moves_and_nothing_jumps(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"

    def check(prompt: str) -> None:
        render(path, prompt, seconds=2, width=160, height=90)
        shown = [frame.convert("L").tobytes() for frame in frames(path)]
        assert difference(shown[0], shown[-1]) > 0.8
        assert max(difference(before, after) for before, after in pairwise(shown)) < 14

    check_each(("mountains over a lake in the snow", "bauhaus", "a fox", "underwater fish", "stars"), check)


def test_the_first_frame_looks_like_the_scene(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    render(path, "sunset over the sea", width=160, height=90)
    sky = frames(path)[0].resize((1, 2), Image.Resampling.BOX).convert("RGB").tobytes()[:3]
    assert sky[0] > sky[1] + 10, "red"


@pytest.mark.parametrize("prompt", ["", "snow"])
def test_the_camera_moves_over_an_image(tmp_path: Path, prompt: str) -> None:
    path = tmp_path / "video.mp4"
    source = draw("red mosaic", 200, 150, 1)
    video = render(path, prompt, image=png(source), seconds=3, width=160, height=90)
    assert (video.width, video.height, video.frames) == (160, 90, 72)
    shown = frames(path)
    assert shown[0].tobytes() != shown[-1].tobytes()
    middle = source.crop((0, 19, 200, 131)).resize((1, 1), Image.Resampling.BOX).convert("RGB").tobytes()
    for frame in (shown[0], shown[-1]):
        assert difference(frame.resize((1, 1), Image.Resampling.BOX).convert("RGB").tobytes(), middle) < 30


def test_the_same_twice(tmp_path: Path) -> None:
    def digest(name: str, seed: int) -> str:
        render(tmp_path / name, "city at night", width=96, seed=seed)
        return hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()

    assert digest("a.mp4", 1) == digest("b.mp4", 1)
    assert digest("c.mp4", 2) != digest("d.mp4", 1)


def test_progress_rises_to_one(tmp_path: Path) -> None:
    seen: list[float] = []
    render(tmp_path / "video.mp4", "x", progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seconds": 0.5}, "1 to 20 seconds"),
        ({"seconds": 21}, "1 to 20 seconds"),
        ({"width": 101}, "even"),
        ({"height": 4096}, "2048"),
        ({"width": 2000, "height": 2000}, "1920x1920"),
        ({"image": b"nothing"}, "not one of"),
    ],
)
def test_a_video_outside_the_limits_is_refused(tmp_path: Path, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(BadImage, match=message):
        render(tmp_path / "video.mp4", "x", **wrong)
    assert not (tmp_path / "video.mp4").exists()
