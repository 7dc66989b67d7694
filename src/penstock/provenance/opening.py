"""Find out who signs, as the settings say."""

from __future__ import annotations

from datetime import datetime
from importlib.resources import files
from pathlib import Path

from cryptography import x509

from penstock.package_extras import has_extra
from penstock.provenance.certificates import CertificateRefused
from penstock.provenance.signing import Signing, ask_signing, make_self_signing, read_signing
from penstock.settings import Settings
from penstock.vault import Vault


def open_signing(settings: Settings, vault: Vault, now: datetime) -> Signing | None:
    """Who signs; None where the library is not installed. Raises CertificateRefused."""
    if not has_extra("provenance"):
        return None
    anchors = read_anchors(settings)
    if settings.provenance_signer:
        if settings.provenance_certificate or settings.provenance_key:
            raise CertificateRefused(
                "provenance_signer tells its certificate itself: leave out provenance_certificate."
            )
        return ask_signing(settings.provenance_signer, now, anchors)
    if settings.provenance_certificate or settings.provenance_key:
        if not (settings.provenance_certificate and settings.provenance_key):
            raise CertificateRefused("provenance_certificate and provenance_key need each other.")
        return read_signing(Path(settings.provenance_certificate), Path(settings.provenance_key), now, anchors)
    return make_self_signing(vault.derive_content_seeds(), anchors)


def read_anchors(settings: Settings) -> str:
    """The certificates whose signatures count as trusted, in PEM. Raises CertificateRefused."""
    if not settings.provenance_anchors:
        return (files("penstock.provenance") / "c2pa-trust-list.pem").read_text()
    path = Path(settings.provenance_anchors)
    try:
        text = path.read_text()
        x509.load_pem_x509_certificates(text.encode())
    except (OSError, ValueError) as problem:
        raise CertificateRefused(f"provenance_anchors: {path} has no certificates in PEM.") from problem
    return text
