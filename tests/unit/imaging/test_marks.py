"""What a file says about its origin is found in its headers, whatever else is in it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.imaging.marks import NO_MARKS, VIDEO_HEAD_BYTES, find_marks
from tests.fake_providers.scripted import mp4
from tests.signed_files import picture, signed_by_vendor

XMP = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description '
    b'Iptc4xmpExt:DigitalSourceType="http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"/></x:xmpmeta>'
)
AIGC = b'<x:xmpmeta><rdf:Description xmlns:TC260="http://www.tc260.org.cn/ns/AIGC/1.0/" TC260:AIGC="{}"/></x:xmpmeta>'
FORMATS = ("png", "jpeg", "webp", "avif", "gif")


@pytest.mark.parametrize("form", FORMATS)
def test_a_seal_is_found_in_every_format(form: str) -> None:
    plain = picture(form)
    assert find_marks(plain) == NO_MARKS
    signed = signed_by_vendor(plain, f"image/{form}")
    added = len(signed) - len(plain)
    assert 0 <= added - find_marks(signed).c2pa_bytes < 700, "the rest is marks in XMP, and headers"


def test_a_seal_is_found_at_the_beginning_of_a_video() -> None:
    assert find_marks(mp4()) == NO_MARKS
    assert find_marks(signed_by_vendor(mp4(), "video/mp4")[:VIDEO_HEAD_BYTES]).c2pa_bytes > 1000


@pytest.mark.parametrize("form", ["jpeg", "webp"])
def test_the_source_type_is_read_from_xmp(form: str) -> None:
    found = find_marks(picture(form, xmp=XMP))
    assert (found.digital_source_type, found.aigc, found.c2pa_bytes) == ("trainedAlgorithmicMedia", False, 0)
    assert find_marks(picture(form, xmp=AIGC)).aigc


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([picture(form) for form in FORMATS] + [mp4()]), st.data())
def test_any_damage_is_survived(file: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(file) - 1))
    broken = file[:at] + data.draw(st.binary(max_size=40)) + file[at + data.draw(st.integers(0, 40)) :]
    assert find_marks(broken).c2pa_bytes >= 0


@given(st.binary(max_size=2000))
def test_any_bytes_are_survived(data: bytes) -> None:
    find_marks(data)


class Counted(bytes):
    """Counts the bytes that are read of it."""

    reads = 0
    size = 0

    def __getitem__(self, key: object) -> object:  # type: ignore[override]
        found = super().__getitem__(key)  # type: ignore[call-overload]
        self.reads += 1
        self.size += len(found) if isinstance(found, bytes) else 1
        return found


def test_a_file_made_to_take_long_is_read_only_so_far() -> None:
    chunk = b"XML:com.adobe.xmp" + b"DigitalSourceType " * 3500
    hostile = Counted(
        b"\x89PNG\r\n\x1a\n" + (len(chunk).to_bytes(4, "big") + b"iTXt" + chunk + b"\0\0\0\0") * 50,
    )
    assert find_marks(hostile) == NO_MARKS
    assert hostile.size < 100_000
    hostile = Counted(b"GIF89a" + bytes([1, 0, 1, 0, 0, 0, 0]) + (b"\x21\xfe" + b"\x01a" * 20_000 + b"\0") * 10)
    assert find_marks(hostile) == NO_MARKS
    assert hostile.reads < 50_000
