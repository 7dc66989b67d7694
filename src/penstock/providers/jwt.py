"""JSON Web Tokens for providers that take a signed token instead of a key."""

import base64
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Any

import msgspec


def now_seconds() -> int:
    """The system's time, for the claims of a token.

    Not the gateway's Clock, which tests may set: the provider compares a token with the real time.
    """
    return int(time.time())


def sign_hs256(claims: Mapping[str, Any], secret: str) -> str:
    """A token signed with a shared secret (HMAC with SHA-256)."""
    unsigned = _encode({"alg": "HS256", "typ": "JWT"}, claims)
    return _token(unsigned, hmac.digest(secret.encode(), unsigned, hashlib.sha256))


def sign_rs256(claims: Mapping[str, Any], private_key: str, key_id: str) -> str:
    """A token signed with an RSA key in PEM format (PKCS #1 v1.5 with SHA-256). Raises TypeError for other keys."""
    # Imported here because only one provider needs it, and it takes as long as ten provider files.
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    unsigned = _encode({"alg": "RS256", "typ": "JWT", "kid": key_id}, claims)
    key = serialization.load_pem_private_key(private_key.encode(), None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise TypeError("the private key of a service account must be an RSA key")
    return _token(unsigned, key.sign(unsigned, padding.PKCS1v15(), hashes.SHA256()))


def _encode(header: Mapping[str, str], claims: Mapping[str, Any]) -> bytes:
    return b".".join(_base64url(msgspec.json.encode(part)) for part in (header, claims))


def _token(unsigned: bytes, signature: bytes) -> str:
    return (unsigned + b"." + _base64url(signature)).decode()


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
