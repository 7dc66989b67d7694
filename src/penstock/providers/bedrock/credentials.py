"""Authentication at AWS: a Bedrock API key is sent, the keys of an account or of a role sign each request."""

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from penstock.package_extras import ExtraMissing, check_extra
from penstock.providers.spec import HttpRequest, NotSigned, bearer

if TYPE_CHECKING:
    from botocore.session import Session

SERVICE = "bedrock"
REGION = re.compile(r"bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")  # in the host of a base URL
DEFAULT_REGION = "us-west-2"
CHAIN = "aws-chain"  # stands for the keys that AWS's own library finds, and renews


def _signs(key: str) -> bool:
    """Whether requests are signed: with the keys of an account, `ACCESS_KEY_ID:SECRET_ACCESS_KEY` and `:SESSION_TOKEN`,
    or with those of AWS's chain.
    """
    return key == CHAIN or ":" in key


def auth(key: str) -> Mapping[str, str]:
    return {} if _signs(key) else bearer(key)


def sign(request: HttpRequest, key: str) -> Mapping[str, str]:
    """The headers of a signature (version 4) over the request, unless the credential is a Bedrock API key."""
    if not _signs(key):
        return {}
    # An extra, which takes long to import.
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    content_type = {"content-type": request.headers["content-type"]} if request.body else {}
    copy = AWSRequest(method=request.method, url=request.url, data=request.whole_body, headers=content_type)
    region = REGION.search(request.url)
    signer = SigV4Auth(_keys(key), SERVICE, region.group(1) if region else DEFAULT_REGION)
    signer.add_auth(copy)
    return {name.lower(): value for name, value in copy.headers.items() if name.lower() != "content-type"}


def _keys(key: str) -> Any:
    """The keys to sign with. Those of the chain are looked for when they are first needed, and again before they
    expire, which may take a call to AWS. Raises NotSigned if there are none.
    """
    from botocore.credentials import Credentials
    from botocore.exceptions import BotoCoreError, ClientError

    if key != CHAIN:
        access_key, secret_key, *session = key.split(":", 2)
        return Credentials(access_key, secret_key, *session)
    try:
        found = _session().get_credentials()
        if found is not None:
            return found.get_frozen_credentials()
    # Also if AWS refuses a role, new keys have expired already, or a program of the operator's that has them fails.
    except (BotoCoreError, ClientError, RuntimeError, OSError, ValueError) as problem:
        raise NotSigned(str(problem).rstrip(".")) from problem
    raise NotSigned("AWS's credential chain has found no keys")


@cache
def _session() -> "Session":
    from botocore.session import Session

    return Session()


def key_problem(key: str) -> str | None:
    if _signs(key):
        try:
            check_extra("bedrock", "signing with the keys of an AWS account")
        except ExtraMissing as problem:
            return str(problem)
    return None
