"""Only headers that are clean, and not set by the HTTP client itself, become lines of a request."""

import pytest

from penstock import __version__
from penstock.net.header_lines import header_lines

DEFAULTS = f"accept: */*\r\naccept-encoding: identity\r\nuser-agent: penstock/{__version__}\r\n"


def test_headers_become_lines() -> None:
    lines = header_lines({"authorization": "Bearer x", "x-more": ""})
    assert lines == DEFAULTS + "authorization: Bearer x\r\nx-more: \r\n"
    assert header_lines({}) == DEFAULTS


def test_a_request_may_have_its_own_accept_and_user_agent() -> None:
    lines = header_lines({"Accept": "image/png", "user-agent": "mine"})
    assert lines == "accept-encoding: identity\r\nAccept: image/png\r\nuser-agent: mine\r\n"


@pytest.mark.parametrize(
    "headers",
    [{"x": "a\r\ny: b"}, {"x": "a\0"}, {"x": "ä"}, {"x y": "a"}, {"": "a"}, {"Content-Length": "3"}, {"host": "test"}],
)
def test_other_headers_are_not_sent(headers: dict[str, str]) -> None:
    assert header_lines(headers) is None
