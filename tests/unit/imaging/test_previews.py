"""Images made from videos."""

import io
from pathlib import Path

import av
import pytest
from PIL import Image

from penstock.imaging.convert import BadImage
from penstock.imaging.previews import SHEET_FRAMES, Variant, preview


def video(frames: int, width: int = 64, height: int = 48) -> bytes:
    """A video whose frames become brighter."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number in range(frames):
            level = 20 + 200 * number // max(1, frames - 1)
            image = Image.new("RGB", (width, height), (level, level, level))
            frame = av.VideoFrame.from_image(image)  # type: ignore[no-untyped-call]
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def test_a_thumbnail_is_one_frame() -> None:
    made = preview(video(20, 1280, 720), "thumbnail")
    assert (made.content_type, opened(made.data).format) == ("image/webp", "WEBP")
    assert (made.width, made.height) == (640, 360)


def test_a_sheet_has_frames_from_the_beginning_to_the_end() -> None:
    made = preview(video(50), "spritesheet")
    assert made.content_type == "image/jpeg"
    sheet = opened(made.data).convert("L")
    assert sheet.size == (5 * 64, 5 * 48)
    places = [(number % 5 * 64 + 32, number // 5 * 48 + 24) for number in range(SHEET_FRAMES)]
    levels = [sheet.crop((x, y, x + 1, y + 1)).tobytes()[0] for x, y in places]
    assert levels == sorted(levels)
    assert levels[-1] - levels[0] > 150


def test_a_video_of_one_frame_has_previews() -> None:
    variants: tuple[Variant, ...] = ("thumbnail", "spritesheet")
    for variant in variants:
        assert preview(video(1), variant).width > 0


@pytest.mark.parametrize("data", [b"", b"no video", video(5)[:400]])
def test_what_is_no_video_is_refused(data: bytes) -> None:
    with pytest.raises(BadImage):
        preview(data, "thumbnail")


@pytest.mark.parametrize("variant", ["thumbnail", "spritesheet"])
def test_a_playlist_opens_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: Variant) -> None:
    (tmp_path / "neighbour.mp4").write_bytes(video(5))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadImage, match="file type"):
        preview(b"ffconcat version 1.0\nfile neighbour.mp4\n", variant)
