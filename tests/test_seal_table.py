"""What becomes of a seal, in every format: as the gateway says, as the library reads it, and as two readers see it that
share no code with it: our own in `tests.jumbf`, and exiftool for the formats that it knows.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from penstock.imaging.marks import find_marks
from penstock.imaging.svg import clean
from penstock.provenance.seal import read_file, seal_file, seal_image, seal_svg
from penstock.provenance.signing import Signing
from tests.fake_providers.scripted import mp4
from tests.jumbf import is_untouched, manifests
from tests.many_cases import many_cases
from tests.signed_files import VENDOR_ROOT, own_signing, picture, plan, signed_by_vendor

OURS = own_signing(trusts_vendor=False)
WORSE = own_signing(trusts_vendor=True)  # the vendor is on the trust list, and the gateway's own certificate is not
SVG = clean(b'<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="5"/></svg>').data
IMAGES = ("png", "jpeg", "webp", "avif", "gif")
PLAIN = {f"image/{form}": picture(form.upper()) for form in IMAGES} | {
    "image/svg+xml": SVG,
    "video/mp4": mp4(),
    "video/quicktime": mp4().replace(b"ftypisom", b"ftypqt  ", 1),
}
# What the vendor sent, who signs, the mode, and what follows: as it is, and converted.
CELLS: tuple[tuple[str, Signing, Any, str, str], ...] = (
    ("plain", OURS, "keep", "none", "none"),
    ("plain", OURS, "sign", "signed", "signed"),
    ("signed", OURS, "keep", "kept", "carried"),
    ("signed", OURS, "sign", "carried", "carried"),
    ("signed", WORSE, "sign", "kept", "carried"),
    ("broken", OURS, "keep", "invalid", "dropped_invalid"),
    ("broken", OURS, "sign", "signed", "signed"),
)
FIRST_ACTIONS = {"signed": "c2pa.created", "carried": "c2pa.opened"}


def changed(data: bytes) -> bytes:
    """The same file with one byte changed behind its seal, or added; it can still be decoded."""
    at = len(data) // 2
    if data.startswith(b"\x89PNG"):
        return data + b"\0"
    if b"<svg" in data:
        at = data.rindex(b'width="') + 7
    elif data[4:8] == b"ftyp":
        at = len(data) - 5
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def sources(content_type: str) -> dict[str, bytes]:
    plain = PLAIN[content_type]
    signed = signed_by_vendor(plain, content_type)
    return {"plain": plain, "signed": signed, "broken": changed(signed)}


def sealed(data: bytes, content_type: str, signing: Signing, mode: str, *, converted: bool) -> dict[str, Any]:
    told = plan(signing, mode, has_seal=find_marks(data).c2pa_bytes > 0)
    if content_type == "image/svg+xml":
        return seal_svg(data, told, signing.sign)
    if content_type.startswith("video/"):
        return {"content_type": content_type, **seal_file(data, content_type, told, signing.sign)}
    to: Any = ("jpeg" if content_type == "image/png" else "png", 90)
    return seal_image(data, content_type, told, signing.sign, to if converted else None)


def check(made: dict[str, Any], before: bytes, status: str) -> None:
    """Compare a file with its status by the library, and by a reader of our own."""
    assert made["status"] == status
    data, content_type = made["data"], made["content_type"]
    found = read_file(data, content_type, VENDOR_ROOT, OURS.own_roots)
    if status in FIRST_ACTIONS:
        read = manifests(data)
        assert is_untouched(data)
        assert (read[-1].name, len(read)) == (made["manifest"], 2 if status == "carried" else 1)
        assert read[-1].assertions["c2pa.actions.v2"]["actions"][0]["action"] == FIRST_ACTIONS[status]
        assert (found["vouched"], found["credentials"]["state"]) == (True, "Valid")
        assert found["credentials"]["problems"] == ["signingCredential.untrusted"], "only the gateway's own is unknown"
        assert not is_untouched(changed(data))
        assert read_file(changed(data), content_type, "")["credentials"]["state"] == "Invalid"
    elif status in ("kept", "invalid"):
        assert data is before
        assert found["credentials"]["state"] == ("Trusted" if status == "kept" else "Invalid")
        assert is_untouched(data) == (status == "kept")
    else:
        assert found["credentials"] is None


@pytest.mark.parametrize("content_type", PLAIN)
def test_every_cell_is_as_three_readers_see_it(content_type: str, tmp_path: Path) -> None:
    files = {}
    with many_cases() as cases:
        for source, data in sources(content_type).items():
            for number, (sent, signing, mode, as_it_is, after) in enumerate(CELLS):
                for converted, status in ((False, as_it_is), (True, after)):
                    # A vector image is always cleaned, which is a conversion; a video never converted.
                    forms = {"image/svg+xml": True, "video/mp4": False, "video/quicktime": False}
                    if sent != source or forms.get(content_type, converted) != converted:
                        continue
                    with cases.case((source, mode, converted, status)):
                        made = sealed(data, content_type, signing, mode, converted=converted)
                        check(made, data, status)
                        if status in FIRST_ACTIONS and made["content_type"] in ("image/png", "image/jpeg"):
                            files[tmp_path / f"{number}-{converted}"] = made
    for file, made in files.items():
        file.write_bytes(made["data"])
    check_by_exiftool(files)


def check_by_exiftool(files: dict[Path, dict[str, Any]]) -> None:
    """Exiftool shows the actions of the newest statement of PNG and JPEG; of other formats it knows no statements."""
    if not files or not shutil.which("exiftool"):
        return
    for file, made in files.items():
        command = ["exiftool", "-a", "-G1", "-s", "-struct", str(file)]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        assert "AllActionsIncluded" in shown
        assert f"/c2pa/{made['manifest']}/c2pa.signature" in shown
        assert f"Action={FIRST_ACTIONS[made['status']]}" in shown.replace("action=", "Action=")
