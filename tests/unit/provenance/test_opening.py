"""Who signs, as the settings say."""

import datetime
from pathlib import Path

import pytest
from cryptography import x509

from penstock.provenance import opening
from penstock.provenance.certificates import CertificateRefused
from penstock.provenance.opening import open_signing, read_anchors
from penstock.settings import Settings
from penstock.vault import Vault

NOW = datetime.datetime(2026, 12, 1, tzinfo=datetime.UTC)
VAULT = Vault("s" * 40)


def test_all_processes_with_one_secret_sign_alike() -> None:
    first = open_signing(Settings(), VAULT, NOW)
    second = open_signing(Settings(), Vault("s" * 40), NOW)
    other = open_signing(Settings(), Vault("t" * 40), NOW)
    assert first
    assert second
    assert other
    assert first.chain.pem == second.chain.pem != other.chain.pem
    rotated = open_signing(Settings(), Vault("n" * 40, "s" * 40), NOW)
    assert rotated
    assert rotated.chain.pem != first.chain.pem
    assert first.own_roots in rotated.own_roots


def test_the_trust_list_is_part_of_the_package() -> None:
    assert len(x509.load_pem_x509_certificates(read_anchors(Settings()).encode())) == 30


def test_mistakes_are_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(CertificateRefused, match="provenance_certificate and provenance_key need each other"):
        open_signing(Settings(provenance_key="key.pem"), VAULT, NOW)
    empty = tmp_path / "anchors.pem"
    empty.write_text("nothing")
    with pytest.raises(CertificateRefused, match=r"anchors.pem has no certificates in PEM"):
        read_anchors(Settings(provenance_anchors=str(empty)))


def test_nobody_signs_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "has_extra", lambda extra: False)
    assert open_signing(Settings(), VAULT, NOW) is None


def test_a_command_has_its_own_certificate() -> None:
    settings = Settings(provenance_signer="true", provenance_certificate="chain.pem")
    with pytest.raises(CertificateRefused, match="provenance_signer tells its certificate itself"):
        open_signing(settings, VAULT, NOW)
