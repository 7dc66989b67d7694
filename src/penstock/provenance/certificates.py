"""The certificates that sign: read from files, or made from the master secret."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

# What a certificate must be for, so that readers accept it; the library asks for one of these.
C2PA_SIGNING = ObjectIdentifier("1.3.6.1.4.1.62558.2.1")
PURPOSES = (
    ExtendedKeyUsageOID.EMAIL_PROTECTION.dotted_string,
    "1.3.6.1.5.5.7.3.36",  # signing of documents
    ExtendedKeyUsageOID.TIME_STAMPING.dotted_string,
    ExtendedKeyUsageOID.OCSP_SIGNING.dotted_string,
    "1.3.6.1.4.1.311.76.59.1.9",  # signing of C2PA, as Microsoft names it
    C2PA_SIGNING.dotted_string,
)
_SIGNING_PURPOSES = {
    ExtendedKeyUsageOID.EMAIL_PROTECTION.dotted_string: "e-mail protection",
    PURPOSES[1]: "document signing",
    PURPOSES[4]: "C2PA signing (Microsoft)",
    C2PA_SIGNING.dotted_string: "C2PA signing",
}

PrivateKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey
PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey

# Of a self-made pair. The dates are fixed, so that all processes with the same secret make the same certificates.
_NOT_BEFORE = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_NOT_AFTER = datetime.datetime(2056, 11, 1, tzinfo=datetime.UTC)
_CURVE = ec.SECP256R1()
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_NO_USAGE = {
    "digital_signature": False,
    "content_commitment": False,
    "key_encipherment": False,
    "data_encipherment": False,
    "key_agreement": False,
    "key_cert_sign": False,
    "crl_sign": False,
    "encipher_only": False,
    "decipher_only": False,
}


class CertificateRefused(ValueError):
    """A certificate or its key cannot sign; the message says why."""


class Chain(msgspec.Struct, frozen=True):
    """The certificate that signs, first, and those that vouch for it."""

    certificates: tuple[x509.Certificate, ...]

    @property
    def leaf(self) -> x509.Certificate:
        return self.certificates[0]

    @property
    def pem(self) -> str:
        return to_pem(self.certificates)


def to_pem(certificates: Sequence[x509.Certificate]) -> str:
    return "".join(each.public_bytes(serialization.Encoding.PEM).decode() for each in certificates)


def name_of(certificate: x509.Certificate) -> str:
    """Whose certificate it is, as readers show it: the organization, or else the common name."""
    for oid in (NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME):
        if found := certificate.subject.get_attributes_for_oid(oid):
            return str(found[0].value)
    return certificate.subject.rfc4514_string()


def purposes_of(leaf: x509.Certificate) -> list[str]:
    """What a certificate is for, of what matters here, in words."""
    purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    return [_SIGNING_PURPOSES[each.dotted_string] for each in purposes if each.dotted_string in _SIGNING_PURPOSES]


def is_vouched_for(chain: Chain, anchors: str) -> bool:
    """Whether one of these certificates, in PEM, has issued one of the chain: then readers trust it who trust them."""
    if not anchors:
        return False
    trusted = x509.load_pem_x509_certificates(anchors.encode())
    return any(_is_issued_by(each, anchor) for each in chain.certificates for anchor in trusted if anchor != chain.leaf)


def _is_issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


# ------------------------------------------------------------------------------------------------------------ self-made


def self_made(root_seed: bytes, leaf_seed: bytes) -> tuple[Chain, PrivateKey]:
    """Return a root and the certificate that signs, and its key: always the same for the same seeds.

    Nobody trusts them who has not added the root. They are valid until 2056, because a signature without a
    time-stamp becomes invalid on the day its certificate expires.
    """
    root_key = _key(root_seed)
    leaf_key = _key(leaf_seed)
    point = root_key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint)
    fingerprint = hashlib.sha256(point).hexdigest()[:8]
    root_name = _name(f"Penstock root {fingerprint}")
    root = (
        _certificate(root_name, root_name, root_key, 1)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**_NO_USAGE | {"key_cert_sign": True, "crl_sign": True}), critical=True)
        .sign(root_key, hashes.SHA256(), ecdsa_deterministic=True)
    )
    purposes = x509.ExtendedKeyUsage([C2PA_SIGNING, ExtendedKeyUsageOID.EMAIL_PROTECTION])
    vouched = x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key())
    leaf = (
        _certificate(_name(f"Penstock gateway {fingerprint}"), root_name, leaf_key, 2)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**_NO_USAGE | {"digital_signature": True}), critical=True)
        .add_extension(purposes, critical=False)
        .add_extension(vouched, critical=False)
        .sign(root_key, hashes.SHA256(), ecdsa_deterministic=True)
    )
    return Chain((leaf, root)), leaf_key


def _key(seed: bytes) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(seed, "big") % (_ORDER - 1) + 1, _CURVE)


def _name(common_name: str) -> x509.Name:
    organization = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Penstock (self-made)")
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name), organization])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, number: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(number)
        .not_valid_before(_NOT_BEFORE)
        .not_valid_after(_NOT_AFTER)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


# ----------------------------------------------------------------------------------------------------------- from files


def read_pair(certificate: Path, key: Path, now: datetime.datetime) -> tuple[Chain, PrivateKey]:
    """Read a chain, the certificate that signs first, and its private key. Raises CertificateRefused."""
    chain = read_chain(_read(certificate), now, str(certificate))
    try:
        private = serialization.load_pem_private_key(_read(key), password=None)
    except (ValueError, TypeError) as problem:
        raise CertificateRefused(f"{key} has no private key in PEM without a password.") from problem
    if not isinstance(private, PrivateKey):
        raise CertificateRefused(f"The key in {key} must be of P-256, P-384, P-521, Ed25519 or RSA.")
    if private.public_key() != chain.leaf.public_key():
        raise CertificateRefused(f"The key in {key} is not that of the first certificate in {certificate}.")
    return chain, private


def read_chain(pem: bytes, now: datetime.datetime, source: str) -> Chain:
    """Read certificates, that which signs first, and check it. Raises CertificateRefused."""
    try:
        chain = Chain(tuple(x509.load_pem_x509_certificates(pem)))
    except ValueError as problem:
        raise CertificateRefused(f"{source} has no certificates in PEM.") from problem
    for certificate, issuer in zip(chain.certificates, chain.certificates[1:], strict=False):
        if not _is_issued_by(certificate, issuer):
            raise CertificateRefused(f"In {source}, each certificate must be followed by that of its issuer.")
    _check_leaf(chain.leaf, now, source)
    return chain


def _check_leaf(leaf: x509.Certificate, now: datetime.datetime, source: str) -> None:
    if not leaf.not_valid_before_utc <= now <= leaf.not_valid_after_utc:
        dates = f"{leaf.not_valid_before_utc:%Y-%m-%d} to {leaf.not_valid_after_utc:%Y-%m-%d}"
        raise CertificateRefused(f"The certificate in {source} is valid from {dates}, not today.")
    try:
        signs = leaf.extensions.get_extension_for_class(x509.KeyUsage).value.digital_signature
        purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        raise CertificateRefused(f"The certificate in {source} does not say that it is for signing content.") from None
    if not signs or not _SIGNING_PURPOSES.keys() & {each.dotted_string for each in purposes}:
        allowed = "C2PA signing (1.3.6.1.4.1.62558.2.1), document signing or e-mail protection"
        raise CertificateRefused(f"The certificate in {source} must be for digital signatures and for {allowed}.")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise CertificateRefused(f"{path} cannot be read: {problem.strerror}.") from problem
