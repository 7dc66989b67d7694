"""JSON Web Tokens: both signatures, checked with other implementations, and the time that they use."""

import base64
import hashlib
import hmac
import json
import time

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from penstock.providers import jwt


def decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def test_a_token_signed_with_a_secret() -> None:
    header, claims, signature = jwt.sign_hs256({"iss": "acme"}, "secret").split(".")
    assert json.loads(decode(header)) == {"alg": "HS256", "typ": "JWT"}
    assert json.loads(decode(claims)) == {"iss": "acme"}
    assert decode(signature) == hmac.digest(b"secret", f"{header}.{claims}".encode(), hashlib.sha256)


def test_a_token_signed_with_an_rsa_key() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    header, claims, signature = jwt.sign_rs256({"iss": "acme"}, pem(key), "k1").split(".")
    assert json.loads(decode(header)) == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    assert json.loads(decode(claims)) == {"iss": "acme"}
    signed = f"{header}.{claims}".encode()
    key.public_key().verify(decode(signature), signed, padding.PKCS1v15(), hashes.SHA256())


def test_other_keys_are_refused() -> None:
    with pytest.raises(TypeError, match="must be an RSA key"):
        jwt.sign_rs256({}, pem(ec.generate_private_key(ec.SECP256R1())), "k1")


def test_the_time_is_the_systems_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_763_173_200.9)
    assert jwt.now_seconds() == 1_763_173_200
