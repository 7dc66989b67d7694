"""Sign by a command of the operator's, which has the private key in a device or asks a service for each signature."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

from penstock.provenance.certificates import CertificateRefused, PublicKey

INFO = "--signer-info"  # with this word the command prints its certificates, instead of signing
SECONDS = 10.0
_SAID_MAX = 200
_TRIAL = b"A signature that shows at the start whether the command can sign."
_HASHES = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}


class SignerFailed(ValueError):
    """The command did not sign; the message says why."""


class SignerCommand:
    """Runs the command: with the bytes to sign on its standard input it writes the signature to standard output."""

    def __init__(self, command: str, *, seconds: float = SECONDS) -> None:
        """Raises SignerFailed for a command that is none."""
        try:
            self._words: Sequence[str] = shlex.split(command)
        except ValueError as problem:
            raise SignerFailed(f"it is no command: {problem}") from problem
        if not self._words:
            raise SignerFailed("it is no command")
        self._seconds = seconds

    def read_certificates(self) -> bytes:
        """The certificate that signs, and those of its issuers, in PEM. Raises SignerFailed."""
        return self._run([*self._words, INFO], b"")

    def sign(self, data: bytes) -> bytes:
        """Return the signature. Raises SignerFailed."""
        signature = self._run(self._words, data)
        if not signature:
            raise SignerFailed("it wrote no signature")
        return signature

    def _run(self, words: Sequence[str], data: bytes) -> bytes:
        # It needs its own credentials, but not those of the gateway.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        try:
            done = subprocess.run(  # noqa: S603 - the operator's own command
                words, input=data, capture_output=True, timeout=self._seconds, check=False, env=environment
            )
        except subprocess.TimeoutExpired:
            raise SignerFailed(f"it took longer than {self._seconds:g} seconds") from None
        except OSError as problem:
            raise SignerFailed(f"it cannot be started: {problem.strerror}") from None
        if done.returncode:
            said = " ".join(done.stderr.decode(errors="replace").split())[:_SAID_MAX]
            raise SignerFailed(f"it ended with status {done.returncode}" + (f": {said}" if said else ""))
        return done.stdout


def check_signer(command: SignerCommand, key: PublicKey) -> None:
    """Have the command sign something, and compare that with its certificate. Raises CertificateRefused."""
    try:
        _verify(key, command.sign(_TRIAL))
    except SignerFailed as problem:
        raise CertificateRefused(f"The command in provenance_signer does not sign: {problem}.") from None
    except InvalidSignature:
        message = "What the command in provenance_signer signs does not fit the first certificate that it prints."
        raise CertificateRefused(message) from None


def _verify(key: PublicKey, signature: bytes) -> None:
    if isinstance(key, rsa.RSAPublicKey):
        salted = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.AUTO)
        key.verify(signature, _TRIAL, salted, hashes.SHA256())
    elif isinstance(key, ed25519.Ed25519PublicKey):
        key.verify(signature, _TRIAL)
    else:
        key.verify(_as_der(key, signature), _TRIAL, ec.ECDSA(_HASHES[key.key_size]))


def _as_der(key: ec.EllipticCurvePublicKey, signature: bytes) -> bytes:
    """Services write DER, and devices write two numbers one after the other."""
    size = (key.key_size + 7) // 8
    if len(signature) != 2 * size:
        return signature
    first, second = (int.from_bytes(half, "big") for half in (signature[:size], signature[size:]))
    return utils.encode_dss_signature(first, second)
