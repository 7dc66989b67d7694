"""Images are checked before they are decoded, cleaned of metadata, and converted."""

from __future__ import annotations

import io
import random
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from PIL import Image, ImageCms, ImageDraw
from PIL.PngImagePlugin import PngInfo

from penstock.imaging import convert
from penstock.imaging.convert import BadImage
from penstock.imaging.formats import OUTPUT_FORMATS, OutputFormat
from penstock.imaging.sniff import unconverted
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.values import OrgId

ORG = OrgId("org_1")


def saved(image: Image.Image, name: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def scene(mode: str = "RGB", size: tuple[int, int] = (120, 80)) -> Image.Image:
    image = Image.new(mode, size)
    draw = ImageDraw.Draw(image)
    draw.rectangle((10, 10, 70, 60), fill="red" if mode != "L" else 90)
    draw.ellipse((50, 20, 110, 70), fill="gold" if mode != "L" else 200)
    return image


def exif(orientation: int = 1) -> Image.Exif:
    values = Image.Exif()
    values[0x0112] = orientation
    values[0x010F] = "CameraMaker"
    values.get_ifd(0x8825)[1] = "N"
    values.get_ifd(0x8825)[2] = (48.0, 51.0, 29.5)
    return values


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png_header(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


def bomb(side: int) -> bytes:
    return png_header(side, side) + chunk(b"IDAT", zlib.compress(bytes(100_000))) + chunk(b"IEND", b"")


# ----------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("side", [50_000, 13_377, 6_325])
def test_images_with_too_many_pixels_are_refused_by_their_header(side: int) -> None:
    for function in (convert.normalise_input, convert.decode):
        with pytest.raises(BadImage, match="40 million pixels"):
            function(bomb(side))


def test_a_second_header_with_a_larger_size_is_refused() -> None:
    """The size in the first header is small, the size that the decoder finds is not."""
    valid = saved(scene(), "jpeg")
    position = valid.index(b"\xff\xc0")
    second = valid[position : position + 5] + struct.pack(">HH", 60_000, 60_000) + valid[position + 9 : position + 19]
    with pytest.raises(BadImage):
        convert.normalise_input(valid[: position + 19] + second + valid[position + 19 :])


@pytest.mark.parametrize(
    "data",
    [
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
        b"8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\1\0\x08\0\3",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"SIMPLE  =                    T",
        saved(scene(), "bmp"),
        saved(scene(), "tiff"),
        saved(scene(), "ico"),
        b"",
        b"\0" * 100,
    ],
)
def test_other_formats_are_refused(data: bytes) -> None:
    with pytest.raises(BadImage, match="not one of"):
        convert.decode(data, OUTPUT_FORMATS)
    with pytest.raises(BadImage, match="not one of png, jpeg, webp"):
        convert.normalise_input(data)


@pytest.mark.parametrize("name", ["gif", "avif"])
def test_inputs_have_fewer_formats_than_outputs(name: str) -> None:
    with pytest.raises(BadImage, match="not one of png, jpeg, webp"):
        convert.normalise_input(saved(scene(), name))


@pytest.mark.parametrize("name", ["png", "webp"])
def test_animated_inputs_are_refused(name: str) -> None:
    data = saved(scene(), name, save_all=True, append_images=[scene().rotate(90), scene().rotate(180)])
    assert getattr(opened(data), "n_frames", 1) == 3
    with pytest.raises(BadImage, match="animated"):
        convert.normalise_input(data)


@pytest.mark.parametrize("name", ["png", "jpeg", "webp"])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_truncated_inputs_are_refused(name: str, share: float) -> None:
    data = saved(Image.effect_noise((200, 200), 60).convert("RGB"), name)
    with pytest.raises(BadImage, match=f"broken {name}"):
        convert.normalise_input(data[: int(len(data) * share)])


@settings(max_examples=60)
@given(some.sampled_from(["png", "jpeg", "webp"]), some.integers(0, 2**32))
def test_damaged_images_are_either_refused_or_read(name: str, seed: int) -> None:
    dice = random.Random(seed)
    data = bytearray(saved(scene(), name))
    for _ in range(dice.randint(1, 12)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    try:
        convert.normalise_input(bytes(data))
        convert.convert(bytes(data), "jpeg", 60)
    except BadImage:
        pass


async def test_a_child_refuses_harmful_images_and_survives() -> None:
    text = chunk(b"tEXt", b"Comment\0" + b"x" * (64 << 20))
    small = saved(scene(), "png")
    async with WorkerPool() as pool:
        await pool.run("image.normalise_input", data=small, for_org=ORG)
        before = pool.pids
        for data in (bomb(50_000), bomb(13_377), small[:200], b"<svg/>"):
            with pytest.raises(WorkFailed) as caught:
                await pool.run("image.normalise_input", data=data, for_org=ORG)
            assert caught.value.kind == "refused"
        with_text = small[:33] + text + small[33:]
        cleaned = await pool.run("image.normalise_input", data=with_text, for_org=ORG)
        assert len(cleaned["data"]) < 10_000
        assert pool.pids == before


def with_scans(data: bytes, count: int) -> bytes:
    """Repeat the last scan of a progressive JPEG, with its table, until the file has this many."""
    table = data.rfind(b"\xff\xc4", 0, data.rfind(b"\xff\xda"))
    return data[:-2] + data[table:-2] * (count - data.count(b"\xff\xda")) + b"\xff\xd9"


def test_a_jpeg_with_more_scans_than_its_size_allows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "MAX_SCANNED_PIXELS", 25 * 120 * 80)
    progressive = saved(scene(), "JPEG", progressive=True)
    assert convert.normalise_input(with_scans(progressive, 25)).width == 120
    for many in (26, 400):
        with pytest.raises(BadImage, match=f"has {many} scans; at its size it may have at most 25"):
            convert.normalise_input(with_scans(progressive, many))


def test_scans_are_not_counted_in_thumbnails_and_behind_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "MAX_SCANNED_PIXELS", 120 * 80)
    plain = saved(scene(), "JPEG", comment=b"\xff\xda" * 50)
    assert convert.normalise_input(plain + b"\xff\xda" * 50).width == 120


def test_a_compressed_text_chunk_is_not_expanded() -> None:
    compressed = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(64 << 20), 9))
    small = saved(scene(), "png")
    try:
        cleaned = convert.normalise_input(small[:33] + compressed + small[33:])
    except BadImage:
        return
    assert len(cleaned.data) < 10_000


# ----------------------------------------------------------------------------------------------------------- metadata


@pytest.mark.parametrize("name", ["png", "jpeg", "webp"])
def test_exif_data_is_removed(name: str) -> None:
    data = saved(scene(), name, exif=exif())
    assert b"CameraMaker" in data
    cleaned = convert.normalise_input(data)
    assert b"CameraMaker" not in cleaned.data
    assert not opened(cleaned.data).getexif()
    assert cleaned.content_type == f"image/{name}"


def test_text_chunks_and_comments_are_removed() -> None:
    words = PngInfo()
    words.add_text("Author", "somebody")
    words.add_itxt("Place", "somewhere")
    assert b"some" not in convert.normalise_input(saved(scene(), "png", pnginfo=words)).data
    assert b"somebody" not in convert.normalise_input(saved(scene(), "jpeg", comment=b"somebody")).data
    assert b"somebody" not in convert.normalise_input(saved(scene(), "webp", xmp=b"<x>somebody</x>")).data


def test_bytes_after_the_end_are_removed() -> None:
    for name in ("png", "jpeg", "webp"):
        assert b"trailing" not in convert.normalise_input(saved(scene(), name) + b"trailing").data


@pytest.mark.parametrize("name", ["png", "jpeg", "webp"])
def test_inputs_without_metadata_are_not_changed(name: str) -> None:
    data = saved(scene(), name)
    assert convert.normalise_input(data).data == data


@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"quality": 100, "subsampling": 0}, {"restart_marker_rows": 1}]
)
def test_removing_metadata_from_a_jpeg_keeps_every_pixel(options: dict[str, Any]) -> None:
    noise = Image.effect_noise((160, 120), 80).convert("RGB")
    noise.paste(scene(), (20, 20))
    data = saved(noise, "jpeg", comment=b"hello \xff\xd9", exif=exif(), **options)
    cleaned = convert.normalise_input(data + b"trailing").data
    assert opened(cleaned).tobytes() == opened(data).tobytes()
    assert b"hello" not in cleaned
    assert b"CameraMaker" not in cleaned
    assert b"trailing" not in cleaned


@pytest.mark.parametrize("name", ["png", "jpeg", "webp"])
@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_orientation_is_applied(name: str, orientation: int) -> None:
    angle = {3: 180, 6: 270, 8: 90}[orientation]
    rotated = scene().rotate(angle, expand=True)
    cleaned = convert.normalise_input(saved(scene(), name, exif=exif(orientation), **_best_quality(name)))
    assert (cleaned.width, cleaned.height) == rotated.size
    assert _distance(opened(cleaned.data).convert("RGB"), rotated) < 4
    converted = convert.convert(saved(scene(), name, exif=exif(orientation), **_best_quality(name)), "gif")
    assert (converted.width, converted.height) == rotated.size


def test_a_jpeg_with_two_views_is_one_image() -> None:
    data = saved(scene(), "mpo", save_all=True, append_images=[scene().rotate(9)])
    cleaned = convert.normalise_input(data)
    assert opened(cleaned.data).format == "JPEG"
    assert b"MPF" not in cleaned.data


def test_colour_profiles_are_converted_to_srgb() -> None:
    lab_white = ImageCms.ImageCmsProfile(ImageCms.createProfile("XYZ")).tobytes()
    plain = convert.convert(saved(scene(), "png", icc_profile=lab_white), "jpeg")
    assert "icc_profile" not in opened(plain.data).info
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    assert _distance(convert.decode(saved(scene(), "png", icc_profile=srgb)), scene()) < 2


def test_sixteen_bits_become_eight_without_clipping() -> None:
    ramp = Image.frombytes("I;16", (256, 1), struct.pack("<256H", *(value * 257 for value in range(256))))
    grey = convert.decode(saved(ramp, "png"))
    assert list(grey.tobytes()) == list(range(256))


# -------------------------------------------------------------------------------------------------------- conversions


@pytest.mark.parametrize("source", OUTPUT_FORMATS)
@pytest.mark.parametrize("target", OUTPUT_FORMATS)
def test_every_format_converts_to_every_other(source: OutputFormat, target: OutputFormat) -> None:
    result = convert.convert(saved(scene(), source), target, 90)
    image = opened(result.data)
    assert (image.format or "").lower() == target
    assert image.size == (result.width, result.height) == (120, 80)
    assert result.content_type == f"image/{target}"
    assert _distance(image.convert("RGB"), scene()) < 12


@pytest.mark.parametrize("name", OUTPUT_FORMATS)
def test_an_image_that_has_the_format_is_not_changed(name: OutputFormat) -> None:
    data = saved(scene(), name)
    assert convert.convert(data, name, 100).data == data
    assert unconverted(data, name, 100) == (f"image/{name}", 120, 80)


@pytest.mark.parametrize("name", ["png", "gif"])
def test_compression_does_not_apply_to_lossless_formats(name: OutputFormat) -> None:
    data = saved(scene(), name)
    assert convert.convert(data, name, 10).data == data


@pytest.mark.parametrize("name", ["jpeg", "webp", "avif"])
def test_compression_is_the_quality_of_lossy_formats(name: OutputFormat) -> None:
    data = saved(Image.effect_noise((160, 160), 50).convert("RGB"), "png")
    sizes = [len(convert.convert(data, name, quality).data) for quality in (1, 50, 100)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[1] < sizes[2]
    assert len(convert.convert(saved(opened(data), name, quality=95), name, 20).data) < sizes[2]


@pytest.mark.parametrize("quality", [0, 101, -5])
def test_compression_out_of_range_is_refused(quality: int) -> None:
    with pytest.raises(BadImage, match="1 to 100"):
        convert.convert(saved(scene(), "png"), "jpeg", quality)


def test_unknown_output_format_is_refused() -> None:
    with pytest.raises(BadImage, match="formats are png"):
        convert.convert(saved(scene(), "png"), "tiff", 100)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["png", "jpeg", "webp"])
def test_an_image_longer_than_1600_pixels_is_not_converted_to_avif(name: str) -> None:
    data = saved(Image.new("RGB", (1601, 20), "navy"), name)
    result = convert.convert(data, "avif", 50)
    assert result.data == data
    assert result.content_type == f"image/{name}"
    fits = convert.convert(saved(Image.new("RGB", (1600, 20), "navy"), name), "avif", 50)
    assert fits.content_type == "image/avif"


@pytest.mark.parametrize("target", ["jpeg", "webp", "gif", "avif"])
def test_an_image_with_too_many_pixels_to_convert_is_not_changed(target: OutputFormat) -> None:
    data = png_header(7000, 6000) + b"the rest"
    assert unconverted(data, target, 80) == ("image/png", 7000, 6000)
    assert convert.convert(data, target, 80).data == data


def test_transparent_pixels_become_white_in_jpeg() -> None:
    image = opened(convert.convert(saved(Image.new("RGBA", (16, 16), (255, 0, 0, 0)), "png"), "jpeg", 100).data)
    assert image.getpixel((8, 8)) == (255, 255, 255)


@pytest.mark.parametrize("name", ["webp", "avif", "gif", "png"])
def test_other_formats_keep_transparency(name: OutputFormat) -> None:
    source = saved(scene("RGBA"), "webp", lossless=True)
    image = opened(convert.convert(source, name, 100).data).convert("RGBA")
    alpha = image.getchannel("A")
    assert alpha.getpixel((0, 0)) == 0
    assert alpha.getpixel((40, 40)) == 255


def test_noise_at_full_quality_can_be_encoded_in_every_format() -> None:
    noise = Image.frombytes("RGB", (350, 350), random.Random(3).randbytes(3 * 350 * 350))
    for name in OUTPUT_FORMATS:
        assert convert.convert(saved(noise, "png"), name, 100).width == 350


def test_an_animated_image_is_converted_to_its_first_frame() -> None:
    data = saved(scene(), "gif", save_all=True, append_images=[Image.new("RGB", (120, 80), "blue")])
    assert getattr(opened(data), "n_frames", 1) == 2
    assert _distance(opened(convert.convert(data, "png").data).convert("RGB"), scene()) < 3


# -------------------------------------------------------------------------------------------------------------- masks


def test_masks_are_converted_to_every_polarity() -> None:
    mask = Image.new("RGBA", (4, 1), "black")
    mask.putpixel((1, 0), (9, 9, 9, 0))
    mask.putpixel((2, 0), (9, 9, 9, 1))  # nearly transparent is not fully transparent
    data = saved(mask, "png")
    edit = [False, True, False, False]
    assert list(opened(convert.convert_mask(data, "white").data).tobytes()) == [255 * here for here in edit]
    assert list(opened(convert.convert_mask(data, "black").data).tobytes()) == [255 * (not here) for here in edit]
    alpha = opened(convert.convert_mask(data, "alpha").data)
    assert alpha.mode == "RGBA"
    assert list(alpha.getchannel("A").tobytes()) == [255 * (not here) for here in edit]


def test_a_mask_with_a_palette_is_converted_too() -> None:
    image = Image.new("P", (2, 1), 0)
    image.putpalette([0, 0, 0, 255, 255, 255])
    image.putpixel((1, 0), 1)
    white = opened(convert.convert_mask(saved(image, "png", transparency=1), "white").data)
    assert list(white.tobytes()) == [0, 255]


def test_a_mask_that_marks_nothing_is_refused() -> None:
    opaque, half = (Image.new("RGBA", (4, 4), (9, 9, 9, alpha)) for alpha in (255, 128))
    for image in (scene(), opaque, half):
        with pytest.raises(BadImage, match="no fully transparent pixels"):
            convert.convert_mask(saved(image, "png"), "white")
    with pytest.raises(BadImage, match="not one of png"):
        convert.convert_mask(saved(scene(), "jpeg"), "white")


def _best_quality(name: str) -> dict[str, Any]:
    options: dict[str, dict[str, Any]] = {"jpeg": {"quality": 100, "subsampling": 0}, "webp": {"lossless": True}}
    return options.get(name, {})


def _distance(first: Image.Image, second: Image.Image) -> float:
    """The mean difference of the colour values, from 0 to 255."""
    pairs = zip(first.convert("RGB").tobytes(), second.convert("RGB").tobytes(), strict=True)
    return sum(abs(a - b) for a, b in pairs) / (3 * first.width * first.height)


# ------------------------------------------------------------------------------------------------------------ shrinking


@pytest.mark.parametrize(("mode", "content_type"), [("RGB", "image/jpeg"), ("L", "image/jpeg"), ("RGBA", "image/webp")])
def test_an_image_is_made_smaller_until_it_fits(mode: str, content_type: str) -> None:
    channels = len(mode)
    noise = Image.frombytes(mode, (300, 200), random.Random(7).randbytes(300 * 200 * channels))
    data = saved(noise, "png")
    for max_bytes in (40_000, 2_000):
        shrunk = convert.limit_bytes(data, max_bytes)
        assert (len(shrunk.data) <= max_bytes, shrunk.content_type) == (True, content_type)
        assert opened(shrunk.data).size == (shrunk.width, shrunk.height)
        assert shrunk.width / shrunk.height == pytest.approx(1.5, rel=0.1)
    with pytest.raises(BadImage, match="as small as 10 bytes"):
        convert.limit_bytes(data, 10)
