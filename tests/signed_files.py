"""Files with Content Credentials, as providers and cameras make them."""

import io
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from PIL import Image

from penstock.provenance.certificates import to_pem
from penstock.provenance.command import SignerCommand
from penstock.provenance.seal import seal_file
from penstock.provenance.signing import Signing, make_self_signing

VENDOR_SEEDS = [(b"r" * 32, b"s" * 32)]
VENDOR = make_self_signing(VENDOR_SEEDS, "")
VENDOR_ROOT = to_pem(VENDOR.chain.certificates[-1:])
OWN_SEEDS = [(b"o" * 32, b"p" * 32)]


def picture(form: str, **options: object) -> bytes:
    """Noise, so that a file is larger than its seal."""
    file = io.BytesIO()
    Image.effect_noise((256, 256), 60).convert("RGB").save(file, form, **options)
    return file.getvalue()


def own_signing(*, trusts_vendor: bool) -> Signing:
    """A self-made signer of a gateway."""
    return make_self_signing(OWN_SEEDS, VENDOR_ROOT if trusts_vendor else "")


def plan(signing: Signing, mode: str = "sign", *, has_seal: bool, **said: Any) -> dict[str, Any]:
    """What a child process is told, as by the sealer."""
    request = {"request_id": "req_1", "executed_model": "lab/image-model", **said}
    facts: Mapping[str, Any] = {
        "version": "1.0",
        "source_type": "trainedAlgorithmicMedia",
        "when": "2026-11-18T12:00:00Z",
        "request": request,
    }
    return {"mode": mode, "has_seal": has_seal, "signer": signing.for_child(), "facts": facts, "inputs": []}


def signed_by_vendor(data: bytes, content_type: str) -> bytes:
    """The file with a seal of the provider."""
    made = seal_file(data, content_type, plan(VENDOR, has_seal=False), VENDOR.sign)
    assert made["status"] == "signed"
    signed: bytes = made["data"]
    return signed


def camera_photo() -> bytes:
    """A photo as a camera signs it."""
    said = plan(VENDOR, has_seal=False, executed_model="A camera")
    said["facts"] = {**said["facts"], "source_type": "digitalCapture"}
    made = seal_file(picture("JPEG"), "image/jpeg", said, VENDOR.sign)
    photo: bytes = made["data"]
    return photo


def damaged(data: bytes) -> bytes:
    """The same file with one byte of its picture changed."""
    file = io.BytesIO(data)
    at = len(data) // 2
    file.seek(at)
    file.write(bytes([data[at] ^ 1]))
    return file.getvalue()


def signer_folder(folder: Path, signing: Signing = VENDOR) -> Path:
    """A folder with a certificate and its key, in PEM."""
    folder.mkdir(exist_ok=True)
    assert not isinstance(signing._key, SignerCommand)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "chain.pem").write_text(signing.chain.pem)
    (folder / "key.pem").write_bytes(signing._key.private_bytes(*form))
    return folder


def signer_command(folder: Path) -> str:
    """The command that signs with what is in such a folder."""
    return shlex.join([sys.executable, str(Path(__file__).with_name("signer_command.py")), str(folder)])
