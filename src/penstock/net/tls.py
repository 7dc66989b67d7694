"""Which certificates are trusted: those of the system, and those that the operator adds."""

import ssl
import subprocess
import sys

_KEYCHAINS = (
    "/System/Library/Keychains/SystemRootCertificates.keychain",
    "/Library/Keychains/System.keychain",
)


def tls_context(ca: bytes | None = None) -> ssl.SSLContext:
    """A context that trusts what the system trusts, and these certificates; raise ValueError if `ca` has none."""
    context = ssl.create_default_context()
    # Newer versions of Python refuse private authorities that leave out extensions.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if sys.platform == "darwin":
        _trust_keychains(context)
    if ca is not None:
        add_certificates(context, ca)
    return context


def add_certificates(context: ssl.SSLContext, ca: bytes) -> None:
    """Trust these certificates, too. Raises ValueError if there are none, or they are damaged."""
    try:
        context.load_verify_locations(cadata=ca.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError):
        raise ValueError("no certificates in PEM could be read") from None


def _trust_keychains(context: ssl.SSLContext) -> None:
    """Trust the certificates in the keychains of macOS, which Python's own TLS does not look into."""
    command = ["/usr/bin/security", "find-certificate", "-a", "-p", *_KEYCHAINS]
    found = subprocess.run(command, capture_output=True, check=False).stdout  # noqa: S603 - nothing in it is from outside
    if found:
        add_certificates(context, found)
