"""Sign requests to S3 with the keys of an account: AWS Signature Version 4."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlsplit

_ALGORITHM = "AWS4-HMAC-SHA256"
_SERVICE = "s3"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


class Keys(NamedTuple):
    """The keys of an account at a store that speaks S3."""

    access_key_id: str
    secret_access_key: str

    def __repr__(self) -> str:
        return "Keys(…)"  # never in a log or a traceback


def signed_headers(
    method: str, url: str, headers: Mapping[str, str], sha256: str, keys: Keys, region: str, at_ms: int
) -> dict[str, str]:
    """The headers of a request without a query, with its signature; all of them are signed, and so is the `host`.

    The names of `headers` are in lower case, the path of the URL is escaped, and `sha256` is that of the body.
    """
    parts = urlsplit(url)
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    time, scope = at.strftime("%Y%m%dT%H%M%SZ"), f"{at:%Y%m%d}/{region}/{_SERVICE}/aws4_request"
    sent = {**headers, "x-amz-content-sha256": sha256, "x-amz-date": time}
    signed = dict(sorted({**sent, "host": parts.netloc}.items()))
    names = ";".join(signed)
    lines = "".join(f"{name}:{value.strip()}\n" for name, value in signed.items())
    canonical = f"{method}\n{parts.path or '/'}\n\n{lines}\n{names}\n{sha256}"
    text = f"{_ALGORITHM}\n{time}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{keys.secret_access_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"Credential={keys.access_key_id}/{scope}"
    return {**sent, "authorization": f"{_ALGORITHM} {credential},SignedHeaders={names},Signature={signature}"}
