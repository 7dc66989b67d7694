"""The certificates of the system are trusted, and those that are added."""

import ssl
import subprocess
import sys

import pytest
import trustme

from penstock.net import tls


def test_certificates_are_added_to_those_of_the_system() -> None:
    before = tls.tls_context().cert_store_stats()["x509_ca"]
    context = tls.tls_context(trustme.CA().cert_pem.bytes())
    assert context.cert_store_stats()["x509_ca"] == before + 1
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize("ca", [b"", b"nothing", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_damaged_certificates_are_an_error(ca: bytes) -> None:
    with pytest.raises(ValueError, match="no certificates"):
        tls.tls_context(ca)


def test_on_macos_the_keychains_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pem = trustme.CA().cert_pem.bytes()
    before = tls.tls_context().cert_store_stats()["x509_ca"]
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, pem))
    assert tls.tls_context().cert_store_stats()["x509_ca"] == before + 1
