"""How a service account shows Google who it is: by a token that it signs itself."""

import base64
import time
from collections.abc import Mapping
from functools import lru_cache

import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from penstock.providers.spec import bearer

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
HALF_AN_HOUR = 1800


def auth(key: str) -> Mapping[str, str]:
    """An access token will do for as long as it lasts; an account signs its own, which is as good as one of theirs."""
    # The real time and not that of `clock`: Google holds it against its own whatever ours says, and handing it in
    # would give the `auth` of every provider a parameter that hardly any has a use for.
    return bearer(signed(key, int(time.time()) // HALF_AN_HOUR) if key.startswith("{") else key)


@lru_cache(64)  # reading the key takes longer than all the rest of a call
def signed(key: str, half_hour: int) -> str:
    """Good for an hour: from a minute before this half, as clocks differ, to the end of the next."""
    account, start = msgspec.json.decode(key), half_hour * HALF_AN_HOUR - 60
    who = account["client_email"]
    claims = {"iss": who, "sub": who, "scope": SCOPE, "iat": start, "exp": start + 2 * HALF_AN_HOUR}
    head = {"alg": "RS256", "typ": "JWT", "kid": account["private_key_id"]}
    words = b".".join(base64url(msgspec.json.encode(part)) for part in (head, claims))
    secret = serialization.load_pem_private_key(account["private_key"].encode(), None)
    assert isinstance(secret, rsa.RSAPrivateKey)
    return (words + b"." + base64url(secret.sign(words, padding.PKCS1v15(), hashes.SHA256()))).decode()


def base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
