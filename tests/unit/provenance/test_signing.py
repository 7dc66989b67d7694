"""Who signs: the key stays here, and signatures fit the certificate."""

import datetime

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from penstock.provenance.certificates import CertificateRefused, PrivateKey
from penstock.provenance.signing import Signing, make_self_signing
from tests.signed_files import OWN_SEEDS, VENDOR, VENDOR_ROOT


def test_a_signature_fits_the_certificate() -> None:
    public = VENDOR.chain.leaf.public_key()
    assert isinstance(public, ec.EllipticCurvePublicKey)
    public.verify(VENDOR.sign(b"data"), b"data", ec.ECDSA(hashes.SHA256()))


def test_the_child_is_told_nothing_secret() -> None:
    told = VENDOR.for_child()
    assert set(told) == {"name", "trusted", "algorithm", "chain", "anchors"}
    assert "PRIVATE" not in str(told)
    assert told["trusted"] is False


def test_the_roots_of_older_secrets_stay_known() -> None:
    signing = make_self_signing([(b"n" * 32, b"m" * 32), *OWN_SEEDS], VENDOR_ROOT)
    assert signing.own_roots.count("BEGIN CERTIFICATE") == 2
    assert make_self_signing(OWN_SEEDS, "").own_roots in signing.own_roots
    assert signing.anchors == VENDOR_ROOT


def test_a_signer_counts_as_trusted_by_the_anchors_and_not_by_where_its_key_is_from() -> None:
    assert not Signing(VENDOR.chain, VENDOR._key, "file", make_self_signing(OWN_SEEDS, "").own_roots).is_trusted
    assert Signing(VENDOR.chain, VENDOR._key, "file", VENDOR_ROOT).for_child()["trusted"]
    assert make_self_signing(OWN_SEEDS, make_self_signing(OWN_SEEDS, "").own_roots).is_trusted


def test_an_expired_certificate_is_not_valid() -> None:
    assert VENDOR.is_valid(datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC))
    assert not VENDOR.is_valid(datetime.datetime(2060, 1, 1, tzinfo=datetime.UTC))


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (ec.generate_private_key(ec.SECP384R1()), "es384"),
        (ed25519.Ed25519PrivateKey.generate(), "ed25519"),
        (rsa.generate_private_key(65537, 2048), "ps256"),
    ],
)
def test_other_keys_sign_too(key: PrivateKey, algorithm: str) -> None:
    signing = Signing(VENDOR.chain, key, "file", "")
    assert signing.algorithm == algorithm
    assert signing.sign(b"data")


def test_a_curve_that_cannot_sign_is_refused() -> None:
    with pytest.raises(CertificateRefused, match="must be P-256, P-384 or P-521, not secp256k1"):
        Signing(VENDOR.chain, ec.generate_private_key(ec.SECP256K1()), "file", "")
