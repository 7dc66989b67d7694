"""Clips are real H.264 files of the asked length and size, and the same every time."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path

import av
import pytest
from PIL import Image

from penstock.atelier.renderers import clip
from penstock.atelier.renderers.sketch import picture
from penstock.imaging import convert
from penstock.imaging.convert import BadImage
from penstock.imaging.sniff import sniff


def png(prompt: str, width: int, height: int) -> bytes:
    return convert.encode(picture(prompt, width, height, 1), "png").data


def frames(path: Path) -> list[Image.Image]:
    with av.open(str(path)) as container:
        return [frame.to_image() for frame in container.decode(video=0)]  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("seconds", "width", "height", "fps"), [(1, 320, 180, 24), (1.5, 180, 320, 24), (2.25, 98, 66, 12), (1, 64, 64, 30)]
)
def test_codec_size_and_length(tmp_path: Path, seconds: float, width: int, height: int, fps: int) -> None:
    path = tmp_path / "clip.mp4"
    made = clip.film(str(path), "a boat on the sea", seconds=seconds, width=width, height=height, fps=fps)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.name == "h264"
        assert stream.codec_context.pix_fmt == "yuv420p"
        assert (stream.width, stream.height) == (made.width, made.height) == (width, height)
        assert stream.average_rate == fps
        assert float((stream.duration or 0) * (stream.time_base or 0)) == pytest.approx(seconds, abs=0.5 / fps)
    assert made.seconds == pytest.approx(seconds, abs=0.5 / fps)
    assert made.frames == len(frames(path)) == round(seconds * fps)
    assert made.bytes == path.stat().st_size


def test_the_index_comes_before_the_pictures(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    clip.film(str(path), "forest", seconds=1, width=64, height=64)
    data = path.read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")
    found = sniff(data)
    assert found is not None
    assert found.content_type == "video/mp4"


@pytest.mark.parametrize(
    "prompt", ["mountains over a lake in the snow", "bauhaus", "a fox", "underwater fish", "stars"]
)
def test_something_moves_and_nothing_jumps(tmp_path: Path, prompt: str) -> None:
    path = tmp_path / "clip.mp4"
    clip.film(str(path), prompt, seconds=2, width=160, height=90, fps=12)
    shown = [frame.convert("L").tobytes() for frame in frames(path)]

    def apart(one: bytes, other: bytes) -> float:
        return sum(abs(a - b) for a, b in zip(one, other, strict=True)) / len(one)

    assert apart(shown[0], shown[-1]) > 0.8
    assert max(apart(one, other) for one, other in pairwise(shown)) < 14


def test_the_first_frame_looks_like_the_scene(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    clip.film(str(path), "sunset over the sea", seconds=1, width=160, height=90)
    sky = frames(path)[0].resize((1, 2), Image.Resampling.BOX).convert("RGB").tobytes()[:3]
    assert sky[0] > sky[1] + 10  # red


@pytest.mark.parametrize("count", [1, 3])
def test_travels_over_reference_pictures(tmp_path: Path, count: int) -> None:
    path = tmp_path / "clip.mp4"
    sources = [png(prompt, 200, 150) for prompt in ("red mosaic", "blue mosaic", "green mosaic")][:count]
    made = clip.film(str(path), "snow", images=sources, seconds=3, width=160, height=90, fps=10)
    assert (made.width, made.height, made.frames) == (160, 90, 30)
    shown = frames(path)
    first = shown[0].resize((1, 1)).convert("RGB").tobytes()
    last = shown[-1].resize((1, 1)).convert("RGB").tobytes()
    if count == 3:
        assert first[0] > last[0]
        assert last[1] > first[1]
    assert shown[0].tobytes() != shown[-1].tobytes()


def test_the_same_twice(tmp_path: Path) -> None:
    def digest(name: str, seed: int) -> str:
        clip.film(str(tmp_path / name), "city at night", seconds=1, width=96, height=64, seed=seed)
        return hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()

    assert digest("a.mp4", 1) == digest("b.mp4", 1)
    assert digest("c.mp4", 2) != digest("d.mp4", 1)


def test_progress_rises_to_one(tmp_path: Path) -> None:
    seen: list[float] = []
    clip.film(str(tmp_path / "a.mp4"), "x", seconds=1, width=64, height=64, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"seconds": 0.5}, "1 to 20 seconds"),
        ({"seconds": 21}, "1 to 20 seconds"),
        ({"width": 101}, "even"),
        ({"height": 4096}, "2048"),
        ({"width": 2000, "height": 2000}, "1920x1920"),
        ({"fps": 0}, "1 to 60"),
        ({"images": [b""] * 5}, "at most 4"),
        ({"images": [b"nothing"]}, "not one of"),
    ],
)
def test_what_cannot_be_filmed_is_refused(tmp_path: Path, wrong: dict[str, object], words: str) -> None:
    with pytest.raises(BadImage, match=words):
        clip.film(str(tmp_path / "a.mp4"), "x", **wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "a.mp4").exists()
