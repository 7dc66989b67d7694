"""A command signs what the gateway asks for, or the gateway says what is wrong with it."""

import datetime
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, utils

from penstock.clock import Clock
from penstock.imaging.workers import WorkerPool
from penstock.provenance.certificates import CertificateRefused, PrivateKey
from penstock.provenance.command import SignerCommand, SignerFailed, check_signer
from penstock.provenance.sealer import TASKS, Origin, Sealer
from penstock.provenance.signing import Signing, ask_signing
from penstock.schema import Provenance, Request
from penstock.telemetry.metrics import Metrics
from penstock.values import OrgId
from tests.signed_files import VENDOR, own_signing, picture, signer_command, signer_folder

NOW = datetime.datetime(2026, 12, 1, tzinfo=datetime.UTC)
ORIGIN = Origin("req_1", "image-model", "lab/image-model", "lab")


class Signs(SignerCommand):
    """Signs in this process."""

    def __init__(self, key: PrivateKey, *, is_raw: bool = False) -> None:
        super().__init__("true")
        self._signing = Signing(VENDOR.chain, key, "file", "")
        self._is_raw = is_raw

    def sign(self, data: bytes) -> bytes:
        signature = self._signing.sign(data)
        if not self._is_raw:
            return signature
        return b"".join(number.to_bytes(32, "big") for number in utils.decode_dss_signature(signature))


async def test_a_command_seals_images_until_it_is_away(tmp_path: Path) -> None:
    folder = signer_folder(tmp_path / "signer")
    signing = ask_signing(signer_command(folder), NOW, "")
    assert (signing.kind, signing.name, signing.algorithm) == ("command", "Penstock (self-made)", "es256")
    assert signing.chain.pem == VENDOR.chain.pem
    request = Request(task="image", model="m", values={}, provenance=Provenance("sign"))
    statuses = []
    async with WorkerPool(2, tasks=TASKS) as pool:
        sealer = Sealer(pool, Clock(), Metrics(), signing, video_bytes=0)
        for is_away in (False, True):
            if is_away:
                (folder / "away").touch()
            _, told = await sealer.seal_image(
                picture("png"), "image/png", None, request, ORIGIN, for_org=OrgId("org_1")
            )
            statuses.append(told and told.status)
    assert statuses == ["signed", "failed"]


def test_a_command_gets_no_settings_of_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SECRET", "s" * 40)
    monkeypatch.setenv("DEVICE_PIN", "1234")
    program = "import os; print(sorted(name for name in os.environ if name in ('PENSTOCK_SECRET', 'DEVICE_PIN')))"
    command = SignerCommand(f'{sys.executable} -c "{program}"')
    assert command.sign(b"") == b"['DEVICE_PIN']\n"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("", "it is no command"),
        ("'", "it is no command: No closing quotation"),
        ("/no/such/program", "it cannot be started: No such file or directory"),
        ("sh -c 'echo no  card >&2; exit 3'", "it ended with status 3: no card"),
        ("true", "it wrote no signature"),
        ("sleep 60", r"it took longer than 0\.1 seconds"),
    ],
)
def test_a_command_that_does_not_sign_says_why(command: str, reason: str) -> None:
    with pytest.raises(SignerFailed, match=f"^{reason}$"):
        SignerCommand(command, seconds=0.1 if "sleep" in command else 10).sign(b"data")


@pytest.mark.parametrize(
    "key", [VENDOR._key, ed25519.Ed25519PrivateKey.generate(), rsa.generate_private_key(65537, 2048)]
)
def test_a_signature_is_compared_with_the_certificate_at_the_start(key: PrivateKey) -> None:
    check_signer(Signs(key), key.public_key())
    other = own_signing(trusts_vendor=False)._key
    assert isinstance(other, ec.EllipticCurvePrivateKey)
    with pytest.raises(CertificateRefused, match="does not fit the first certificate"):
        check_signer(Signs(key), other.public_key())


def test_a_signature_of_a_device_has_two_numbers() -> None:
    assert isinstance(VENDOR._key, ec.EllipticCurvePrivateKey)
    check_signer(Signs(VENDOR._key, is_raw=True), VENDOR._key.public_key())


def test_a_command_that_does_not_tell_who_signs_is_refused() -> None:
    with pytest.raises(CertificateRefused, match="does not tell who signs: it ended with status 1"):
        ask_signing("false", NOW, "")
    with pytest.raises(CertificateRefused, match="the output of provenance_signer has no certificates in PEM"):
        ask_signing("true", NOW, "")


def test_a_command_that_cannot_sign_is_refused_at_the_start(tmp_path: Path) -> None:
    folder = signer_folder(tmp_path)
    command = f"sh -c 'test \"$0\" = --signer-info && cat {folder}/chain.pem'"
    with pytest.raises(CertificateRefused, match="does not sign: it ended with status 1"):
        ask_signing(command, NOW, "")
