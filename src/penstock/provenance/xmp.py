"""Write into images, beside their seal, how they were made: IPTC's source type, and China's AIGC label, as XMP."""

from __future__ import annotations

import json
from binascii import crc32
from collections.abc import Mapping
from html import escape
from typing import Any

from penstock.imaging.marks import find_marks

SOURCE_TYPES = "http://cv.iptc.org/newscodes/digitalsourcetype/"
_JPEG_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_PNG_KEYWORD = b"XML:com.adobe.xmp\0\0\0\0\0"  # neither compressed nor in a language
_VP8X_XMP = 0x04
_VP8X_ALPHA = 0x10


def packet(facts: Mapping[str, Any]) -> bytes:
    """The XMP of an output; `facts` are those of `Sealer`."""
    label = namespace = ""
    if producer := facts.get("aigc_producer"):
        fields = {
            "Label": "1",
            "ContentProducer": producer,
            "ProduceID": facts["request"]["request_id"],
            "ReservedCode1": "",
            "ContentPropagator": "",
            "PropagateID": "",
            "ReservedCode2": "",
        }
        namespace = ' xmlns:TC260="http://www.tc260.org.cn/ns/AIGC/1.0/"'
        label = f"<TC260:AIGC>{escape(json.dumps(fields, ensure_ascii=False), quote=False)}</TC260:AIGC>"
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>'
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description rdf:about="" xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"'
        f"{namespace}>"
        f"<Iptc4xmpExt:DigitalSourceType>{SOURCE_TYPES}{escape(facts['source_type'])}</Iptc4xmpExt:DigitalSourceType>{label}"
        '</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>'
    ).encode()


def with_xmp(data: bytes, content_type: str, xmp: bytes) -> bytes:
    """The image with XMP in it, and the same pixels; the same object if it has such marks, or its format takes none."""
    insert = {"image/png": _into_png, "image/jpeg": _into_jpeg, "image/webp": _into_webp}.get(content_type)
    marks = find_marks(data)
    if insert is None or marks.digital_source_type or marks.aigc:
        return data
    return insert(data, xmp)


def _into_png(data: bytes, xmp: bytes) -> bytes:
    after_header = 33  # the signature, and IHDR, which is always first and of one size
    body = b"iTXt" + _PNG_KEYWORD + xmp
    chunk = (len(body) - 4).to_bytes(4, "big") + body + crc32(body).to_bytes(4, "big")
    return b"".join((data[:after_header], chunk, data[after_header:]))


def _into_jpeg(data: bytes, xmp: bytes) -> bytes:
    start = 2
    while data[start : start + 2] in (b"\xff\xe0", b"\xff\xe1"):  # JFIF and EXIF come first
        if data[start + 4 : start + 4 + len(_JPEG_XMP)] == _JPEG_XMP:
            return data  # other XMP, which is not ours to change
        start += 2 + int.from_bytes(data[start + 2 : start + 4], "big")
    body = _JPEG_XMP + xmp
    return b"".join((data[:start], b"\xff\xe1", (len(body) + 2).to_bytes(2, "big"), body, data[start:]))


def _into_webp(data: bytes, xmp: bytes) -> bytes:
    """An image without a header for extensions gets one."""
    chunk = b"XMP " + len(xmp).to_bytes(4, "little") + xmp + b"\0" * (len(xmp) & 1)
    kind = data[12:16]
    if kind == b"VP8X":
        if data[20] & _VP8X_XMP:
            return data
        head = data[12:20] + bytes([data[20] | _VP8X_XMP]) + data[21:30]
        rest = data[30:]
    else:
        size = _webp_size(data, kind)
        if size is None:
            return data
        width, height, has_alpha = size
        flags = _VP8X_XMP | (_VP8X_ALPHA if has_alpha else 0)
        sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        head = b"VP8X" + (10).to_bytes(4, "little") + bytes([flags, 0, 0, 0]) + sides
        rest = data[12:]
    body = b"".join((b"WEBP", head, rest, chunk))
    return b"RIFF" + len(body).to_bytes(4, "little") + body


def _webp_size(data: bytes, kind: bytes) -> tuple[int, int, bool] | None:
    """Width, height and whether it has transparent parts, of an image in one piece."""
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, bool(bits >> 28 & 1)
    if kind == b"VP8 ":
        sides = (int.from_bytes(data[start : start + 2], "little") & 0x3FFF for start in (26, 28))
        return *sides, False  # type: ignore[return-value]
    return None
