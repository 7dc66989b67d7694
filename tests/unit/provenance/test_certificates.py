"""Certificates that sign: the same from the same secret, and refused from files where readers would refuse them."""

import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from penstock.provenance.certificates import (
    CertificateRefused,
    Chain,
    is_vouched_for,
    name_of,
    purposes_of,
    read_pair,
    self_made,
    to_pem,
)

NOW = datetime.datetime(2026, 12, 1, tzinfo=datetime.UTC)
YEAR = datetime.timedelta(days=365)


def certificate(
    purposes: list[x509.ObjectIdentifier] | None, *, starts: datetime.datetime = NOW - YEAR, signs: bool = True
) -> tuple[str, str]:
    """A self-signed certificate and its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Studio")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(starts)
        .not_valid_after(starts + 2 * YEAR)
    )
    flags = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "key_cert_sign", "crl_sign"),
        False,
    )
    usage = x509.KeyUsage(digital_signature=signs, encipher_only=False, decipher_only=False, **flags)
    builder = builder.add_extension(usage, critical=True)
    if purposes is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    made = builder.sign(key, hashes.SHA256())
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return made.public_bytes(serialization.Encoding.PEM).decode(), pem


def pair(folder: Path, certificate_pem: str, key_pem: str) -> tuple[Path, Path]:
    paths = folder / "chain.pem", folder / "key.pem"
    for path, text in zip(paths, (certificate_pem, key_pem), strict=True):
        path.write_text(text)
    return paths


def test_the_same_secret_makes_the_same_certificates() -> None:
    first, key = self_made(b"a" * 32, b"b" * 32)
    again, same_key = self_made(b"a" * 32, b"b" * 32)
    other, _ = self_made(b"c" * 32, b"d" * 32)
    assert first.pem == again.pem
    assert key.private_numbers() == same_key.private_numbers()  # type: ignore[union-attr]
    assert other.pem != first.pem
    assert name_of(first.leaf) == "Penstock (self-made)"
    first.leaf.verify_directly_issued_by(first.certificates[1])


def test_a_certificate_for_mail_is_read_with_its_key(tmp_path: Path) -> None:
    chain, _ = read_pair(*pair(tmp_path, *certificate([ExtendedKeyUsageOID.EMAIL_PROTECTION])), NOW)
    assert name_of(chain.leaf) == "Studio"


@pytest.mark.parametrize(
    ("purposes", "starts", "signs", "message"),
    [
        ([ExtendedKeyUsageOID.SERVER_AUTH], NOW - YEAR, True, "must be for digital signatures and for C2PA signing"),
        ([ExtendedKeyUsageOID.EMAIL_PROTECTION], NOW - YEAR, False, "must be for digital signatures"),
        (None, NOW - YEAR, True, "does not say that it is for signing content"),
        ([ExtendedKeyUsageOID.EMAIL_PROTECTION], NOW + YEAR, True, "is valid from 2027-12-01 to"),
        ([ExtendedKeyUsageOID.EMAIL_PROTECTION], NOW - 3 * YEAR, True, "not today"),
    ],
)
def test_a_certificate_that_readers_would_refuse_is_refused(
    tmp_path: Path, purposes: list[x509.ObjectIdentifier] | None, starts: datetime.datetime, signs: bool, message: str
) -> None:
    paths = pair(tmp_path, *certificate(purposes, starts=starts, signs=signs))
    with pytest.raises(CertificateRefused, match=message):
        read_pair(*paths, NOW)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    mail = [ExtendedKeyUsageOID.EMAIL_PROTECTION]
    (first, key), (second, other_key) = certificate(mail), certificate(mail)
    with pytest.raises(CertificateRefused, match="is not that of the first certificate"):
        read_pair(*pair(tmp_path, first, other_key), NOW)
    with pytest.raises(CertificateRefused, match="must be followed by that of its issuer"):
        read_pair(*pair(tmp_path, first + second, key), NOW)
    with pytest.raises(CertificateRefused, match="has no private key in PEM"):
        read_pair(*pair(tmp_path, first, "x"), NOW)
    with pytest.raises(CertificateRefused, match="has no certificates in PEM"):
        read_pair(*pair(tmp_path, "x", key), NOW)
    with pytest.raises(CertificateRefused, match=r"missing.pem cannot be read: No such file"):
        read_pair(tmp_path / "missing.pem", tmp_path / "key.pem", NOW)


def test_a_chain_is_vouched_for_by_its_root_and_not_by_itself() -> None:
    chain, _ = self_made(b"r" * 32, b"s" * 32)
    other, _ = self_made(b"t" * 32, b"s" * 32)
    alone = Chain(chain.certificates[:1])
    assert is_vouched_for(chain, to_pem(chain.certificates[1:]))
    assert is_vouched_for(alone, to_pem(chain.certificates[1:]))
    assert not is_vouched_for(alone, to_pem(chain.certificates[:1]))
    assert not is_vouched_for(chain, to_pem(other.certificates[1:]))
    assert not is_vouched_for(chain, "")
    assert purposes_of(chain.leaf) == ["C2PA signing", "e-mail protection"]
