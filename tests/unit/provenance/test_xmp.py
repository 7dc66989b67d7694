"""Images get marks in their XMP, read back by Pillow, and keep every pixel."""

import io
import json
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from penstock.imaging.marks import find_marks
from penstock.provenance.xmp import packet, with_xmp
from tests.signed_files import picture

FACTS = {"source_type": "trainedAlgorithmicMedia", "request": {"request_id": "req_1"}, "aigc_producer": "A & <B>"}
FORMS = {
    "png": picture("PNG"),
    "jpeg": picture("JPEG"),
    "webp": picture("WEBP"),
    "lossless webp": picture("WEBP", lossless=True),
    "webp with a profile": picture("WEBP", icc_profile=b"x" * 128),
}


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@pytest.mark.parametrize("form", FORMS)
def test_marks_are_read_back_and_no_pixel_changes(form: str) -> None:
    data = FORMS[form]
    content_type = f"image/{form.split()[-1] if form.startswith('lossless') else form.split()[0]}"
    marked = with_xmp(data, content_type, packet(FACTS))
    assert (find_marks(marked).digital_source_type, find_marks(marked).aigc) == ("trainedAlgorithmicMedia", True)
    before, after = opened(data), opened(marked)
    assert (after.size, after.mode, after.tobytes()) == (before.size, before.mode, before.tobytes())
    xmp = after.info["xmp"]
    root = ET.fromstring(xmp)  # noqa: S314 - our own
    (label,) = root.iter("{http://www.tc260.org.cn/ns/AIGC/1.0/}AIGC")
    said = json.loads(label.text or "")
    assert (said["Label"], said["ContentProducer"], said["ProduceID"], len(said)) == ("1", "A & <B>", "req_1", 7)
    assert with_xmp(marked, content_type, packet(FACTS)) is marked, "once is enough"


def test_transparency_survives() -> None:
    file = io.BytesIO()
    Image.new("RGBA", (7, 5), (1, 2, 3, 100)).save(file, "WEBP", lossless=True)
    marked = opened(with_xmp(file.getvalue(), "image/webp", packet(FACTS)))
    assert (marked.size, marked.getpixel((0, 0))) == ((7, 5), (1, 2, 3, 100))


def test_without_a_producer_there_is_no_label() -> None:
    plain = packet({**FACTS, "aigc_producer": ""})
    assert b"<TC260:AIGC>" not in plain


def test_other_formats_stay_as_they_are() -> None:
    data = picture("GIF")
    assert with_xmp(data, "image/gif", packet(FACTS)) is data


def test_an_image_without_a_producer_has_no_label_of_china() -> None:
    marked = with_xmp(FORMS["png"], "image/png", packet({**FACTS, "aigc_producer": ""}))
    assert (find_marks(marked).digital_source_type, find_marks(marked).aigc) == ("trainedAlgorithmicMedia", False)
    assert b"tc260" not in marked
