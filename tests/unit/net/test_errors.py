"""Errors of the HTTP library are sorted by whether the server may have received the request."""

import errno
import os

import pytest
from pyreqwest import exceptions
from pyreqwest.exceptions import PyreqwestError

from penstock.net.errors import MaybeSent, NotSent, classify
from tests.http_client import SECRET, full_text

QUOTED = f"error sending request for url (http://x.example/timeout timed out client error (Connect)?key={SECRET})"


def library_error(kind: str, *causes: str) -> PyreqwestError:
    error = getattr(exceptions, kind)("message", {"causes": [{"message": cause} for cause in causes] or None})
    assert isinstance(error, PyreqwestError)
    return error


NOT_SENT = [
    ("ConnectError", QUOTED, "client error (Connect)", "tcp connect error", "refused (os error 111)"),
    ("ConnectError", QUOTED, "client error (Connect)", "dns error", "failed to lookup address information"),
    ("ConnectTimeoutError", QUOTED, "client error (Connect)", "operation timed out"),
    ("ConnectError", QUOTED, "client error (Connect)", "invalid peer certificate: UnknownIssuer"),
    ("PoolTimeoutError", "deadline has elapsed"),
    ("BuilderError", QUOTED, "URL scheme is not allowed"),
]
MAYBE_SENT: list[tuple[bool, tuple[str, ...]]] = [
    (True, ("ConnectTimeoutError", QUOTED, "operation timed out")),
    (True, ("ReadTimeoutError", "error decoding response body", "operation timed out")),
    (False, ("ConnectError", QUOTED, "client error (SendRequest)", "connection error", "reset (os error 104)")),
    (False, ("ConnectTimeoutError", QUOTED, "client error (SendRequest)", "connection closed")),
    (False, ("ConnectTimeoutError", QUOTED)),
    (False, ("ConnectError", QUOTED, "about client error (Connect) 1")),
    (False, ("BodyDecodeError", "error decoding response body", "end of file before message length reached")),
    (False, ("ClientClosedError",)),
    (False, ("RequestPanicError", "panicked")),
]


def test_without_a_connection_nothing_was_sent() -> None:
    for kind, *causes in NOT_SENT:
        result = classify(library_error(kind, *causes))
        assert isinstance(result, NotSent), (kind, causes)
        assert not result.local
        assert SECRET not in full_text(result)


def test_after_any_other_error_the_request_may_have_been_sent() -> None:
    cases = [(timeout, library_error(kind, *causes)) for timeout, (kind, *causes) in MAYBE_SENT]
    for timeout, error in [*cases, (False, PyreqwestError("anything else"))]:
        result = classify(error)
        assert isinstance(result, MaybeSent), error
        assert result.timeout == timeout, error
        assert SECRET not in full_text(result)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_lack_of_file_descriptors_is_a_local_problem(number: int) -> None:
    reason = f"{os.strerror(number)} (os error {number})"
    result = classify(library_error("ConnectError", QUOTED, "client error (Connect)", "tcp open error", reason))
    assert isinstance(result, NotSent)
    assert result.local
