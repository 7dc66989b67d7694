"""Who signs: the certificates, and the private key, which never leaves this process, or a command that has it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding

from penstock.event_loop import LoopThreads
from penstock.provenance.certificates import (
    CertificateRefused,
    Chain,
    PrivateKey,
    PublicKey,
    is_vouched_for,
    name_of,
    read_chain,
    read_pair,
    self_made,
    to_pem,
)
from penstock.provenance.command import SignerCommand, SignerFailed, check_signer

Kind = Literal["self-made", "file", "command"]
_HASHES = {"es256": hashes.SHA256(), "es384": hashes.SHA384(), "es512": hashes.SHA512()}
_COMMANDS_AT_ONCE = 8
_CURVES = {"secp256r1": "es256", "secp384r1": "es384", "secp521r1": "es512"}


class Signing:
    """Signs what child processes ask for; `settings` is what they may know."""

    def __init__(
        self, chain: Chain, key: PrivateKey | SignerCommand, kind: Kind, anchors: str, own_roots: str = ""
    ) -> None:
        """`anchors` are the certificates, in PEM, whose signatures count as trusted; `own_roots` are those that vouch
        for this signer, and for those before it, whether anybody else trusts them or not.
        """
        self.chain = chain
        self.kind: Kind = kind
        self._key = key
        self._threads = LoopThreads(_COMMANDS_AT_ONCE, "signer")
        self.algorithm = _algorithm(_public_key(chain) if isinstance(key, SignerCommand) else key.public_key())
        self.anchors = anchors
        self.own_roots = own_roots
        self.is_trusted = is_vouched_for(chain, anchors)

    @property
    def name(self) -> str:
        """Who signs, as readers show it."""
        return name_of(self.chain.leaf)

    @property
    def serial(self) -> str:
        """The number of the certificate that signs, by which its issuer tells it from others."""
        return str(self.chain.leaf.serial_number)

    @property
    def is_self_made(self) -> bool:
        return self.kind == "self-made"

    @property
    def expires_at(self) -> datetime.datetime:
        return self.chain.leaf.not_valid_after_utc

    def is_valid(self, now: datetime.datetime) -> bool:
        return self.chain.leaf.not_valid_before_utc <= now <= self.expires_at

    def for_child(self) -> dict[str, Any]:
        """What the child that builds a seal needs of the signer: nothing secret."""
        return {
            "name": self.name,
            "trusted": self.is_trusted,
            "algorithm": self.algorithm,
            "chain": self.chain.pem,
            "anchors": self.anchors,
        }

    async def signature(self, data: bytes) -> bytes:
        """`sign`, without making the event loop wait for a command."""
        if isinstance(self._key, SignerCommand):
            return await self._threads.start(self.sign, data)
        return self.sign(data)

    def sign(self, data: bytes) -> bytes:
        """Return a signature in the form of COSE. It takes a fifth of a millisecond for P-256.

        Raises SignerFailed if a command has to sign and does not.
        """
        if isinstance(self._key, SignerCommand):
            return self._key.sign(data)
        if isinstance(self._key, ec.EllipticCurvePrivateKey):
            return self._key.sign(data, ec.ECDSA(_HASHES[self.algorithm]))
        if isinstance(self._key, ed25519.Ed25519PrivateKey):
            return self._key.sign(data)
        salted = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
        return self._key.sign(data, salted, hashes.SHA256())


def _public_key(chain: Chain) -> PublicKey:
    key = chain.leaf.public_key()
    if not isinstance(key, PublicKey):
        raise CertificateRefused("The certificate's key must be of P-256, P-384, P-521, Ed25519 or RSA.")
    return key


def _algorithm(key: PublicKey) -> str:
    if isinstance(key, ec.EllipticCurvePublicKey):
        try:
            return _CURVES[key.curve.name]
        except KeyError:
            message = f"The key's curve must be P-256, P-384 or P-521, not {key.curve.name}."
            raise CertificateRefused(message) from None
    return "ed25519" if isinstance(key, ed25519.Ed25519PublicKey) else "ps256"


def make_self_signing(seeds: Sequence[tuple[bytes, bytes]], anchors: str) -> Signing:
    """Sign with the certificates of the first pair of seeds; those of the others, older ones, stay trusted."""
    chain, key = self_made(*seeds[0])
    roots = to_pem([self_made(*pair)[0].certificates[-1] for pair in seeds])
    return Signing(chain, key, "self-made", anchors, roots)


def read_signing(certificate: Path, key: Path, now: datetime.datetime, anchors: str) -> Signing:
    """Sign with a certificate and its key from files. Raises CertificateRefused."""
    chain, private = read_pair(certificate, key, now)
    return Signing(chain, private, "file", anchors, to_pem(chain.certificates[-1:]))


def ask_signing(command: str, now: datetime.datetime, anchors: str) -> Signing:
    """Sign by a command, which shows at once that it can. Raises CertificateRefused."""
    try:
        signer = SignerCommand(command)
        chain = read_chain(signer.read_certificates(), now, "the output of provenance_signer")
    except SignerFailed as problem:
        raise CertificateRefused(f"The command in provenance_signer does not tell who signs: {problem}.") from None
    signing = Signing(chain, signer, "command", anchors, to_pem(chain.certificates[-1:]))
    check_signer(signer, _public_key(chain))
    return signing
