"""Check the headers of calls to models that are the same for every kind of call."""

from collections.abc import Collection, Mapping

from penstock.accounts.key_records import FAULTS
from penstock.accounts.requests import SESSION_HEADER, check_session_id
from penstock.errors import PermissionDenied
from penstock.schema import Caller
from penstock.upstream.faults import HEADER, check_faults


def check_call_headers(headers: Mapping[str, str], caller: Caller, providers: Collection[str]) -> None:
    """Check the id of the session and the faults. Raises InvalidRequest, and PermissionDenied for a key that may not
    ask for faults. `providers` are the names of all.
    """
    if SESSION_HEADER in headers:
        check_session_id(headers)
    if HEADER in headers:
        if FAULTS not in caller.scopes:
            raise PermissionDenied(f"The header X-Service-Fault needs a key with the `{FAULTS}` scope.")
        check_faults(headers[HEADER], providers)
