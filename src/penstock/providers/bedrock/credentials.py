"""Authentication at AWS: a Bedrock API key is sent, the keys of an account sign each request."""

import re
from collections.abc import Mapping

from penstock.extras import ExtraMissing, check_extra
from penstock.providers.spec import HttpRequest, bearer

SERVICE = "bedrock"
REGION = re.compile(r"bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")  # in the host of a base URL
DEFAULT_REGION = "us-west-2"


def _signs(key: str) -> bool:
    """Whether the credential has the keys of an account: `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, and `:SESSION_TOKEN`."""
    return ":" in key


def auth(key: str) -> Mapping[str, str]:
    return {} if _signs(key) else bearer(key)


def sign(request: HttpRequest, key: str) -> Mapping[str, str]:
    """The headers of a signature (version 4) over the request, if the credential has the keys of an account."""
    if not _signs(key):
        return {}
    # An extra, which takes long to import.
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    access_key, secret_key, *session = key.split(":", 2)
    content_type = {"content-type": request.headers["content-type"]} if request.body else {}
    copy = AWSRequest(method=request.method, url=request.url, data=request.whole_body, headers=content_type)
    region = REGION.search(request.url)
    signer = SigV4Auth(
        Credentials(access_key, secret_key, *session), SERVICE, region.group(1) if region else DEFAULT_REGION
    )
    signer.add_auth(copy)
    return {name.lower(): value for name, value in copy.headers.items() if name.lower() != "content-type"}


def key_problem(key: str) -> str | None:
    if _signs(key):
        try:
            check_extra("bedrock", "signing with the keys of an AWS account")
        except ExtraMissing as problem:
            return str(problem)
    return None
