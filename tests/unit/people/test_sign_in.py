"""Where a sign-in may lead to afterwards."""

import pytest

from penstock.people.sign_in import safe_next


@pytest.mark.parametrize(
    ("page", "safe"),
    [
        ("/#/requests", "/#/requests"),
        ("/docs", "/docs"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\r\nset-cookie: a=b", "/"),
        ("", "/"),
        ("/" + "x" * 600, "/"),
    ],
)
def test_only_pages_of_this_gateway_come_next(page: str, safe: str) -> None:
    assert safe_next(page) == safe
