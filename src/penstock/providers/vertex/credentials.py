"""Authentication of a Google service account, with a token that it signs itself."""

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from penstock.providers import jwt
from penstock.providers.spec import bearer

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
HALF_HOUR_SECONDS = 1800


def auth(key: str) -> Mapping[str, str]:
    """The header for an access token, or for a token signed with the key file of a service account (JSON)."""
    if not key.startswith("{"):
        return bearer(key)
    return bearer(sign_token(key, jwt.now_seconds() // HALF_HOUR_SECONDS))


@lru_cache(64)  # reading the private key takes longer than the rest of a call
def sign_token(key_file: str, half_hour: int) -> str:
    """A token for use in this half hour, counted from 1970.

    It is valid for an hour, from a minute before the half hour begins, because clocks differ.
    """
    account = msgspec.json.decode(key_file)
    email = account["client_email"]
    issued = half_hour * HALF_HOUR_SECONDS - 60
    claims = {"iss": email, "sub": email, "scope": SCOPE, "iat": issued, "exp": issued + 2 * HALF_HOUR_SECONDS}
    return jwt.sign_rs256(claims, account["private_key"], account["private_key_id"])
