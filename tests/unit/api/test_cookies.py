"""The cookie of the pages, and what a call that uses it must prove."""

import pytest

from penstock.api.cookies import check_page, cookie_name, read_cookie, session_token, set_cookie
from penstock.errors import PermissionDenied

HERE = "https://media.example"


def test_over_https_the_cookie_is_bound_to_the_host_and_elsewhere_to_the_port() -> None:
    assert cookie_name(HERE) == "__Host-penstock"
    assert cookie_name("http://127.0.0.1:8080") == "penstock-8080"
    assert cookie_name("http://gateway.test") == "penstock-80"
    sent = set_cookie("__Host-penstock", "abc", HERE, 60)["set-cookie"]
    assert sent == "__Host-penstock=abc; Path=/; HttpOnly; SameSite=Lax; Max-Age=60; Secure"
    assert "Secure" not in set_cookie("penstock-80", "abc", "http://gateway.test", None)["set-cookie"]


def test_a_key_goes_before_a_cookie() -> None:
    headers = {"cookie": "a=1; __Host-penstock=abc; b=2"}
    assert session_token(headers, HERE) == "abc"
    assert session_token({**headers, "authorization": "Bearer x"}, HERE) is None
    assert session_token({"cookie": "penstock-80=abc"}, HERE) is None
    assert session_token({}, HERE) is None
    assert read_cookie({"cookie": "a=1; a=2"}, "a") == "1"


@pytest.mark.parametrize(
    ("headers", "is_allowed"),
    [
        ({"x-penstock-page": "1", "sec-fetch-site": "same-origin"}, True),
        ({"x-penstock-page": "1", "origin": HERE}, True),
        ({"sec-fetch-site": "same-origin"}, False),
        ({"x-penstock-page": "1"}, False),
        ({"x-penstock-page": "1", "sec-fetch-site": "same-site", "origin": HERE}, False),
        ({"x-penstock-page": "1", "sec-fetch-site": "cross-site"}, False),
        ({"x-penstock-page": "1", "sec-fetch-site": "none"}, False),
        ({"x-penstock-page": "1", "origin": "https://evil.example"}, False),
        ({"x-penstock-page": "1", "origin": "https://sub.media.example"}, False),
        ({"x-penstock-page": "1", "origin": "null"}, False),
        ({"x-penstock-page": "0", "origin": HERE}, False),
    ],
)
def test_only_pages_of_this_gateway_may_change_something_with_the_cookie(
    headers: dict[str, str], is_allowed: bool
) -> None:
    check_page("GET", {}, HERE)
    if is_allowed:
        check_page("POST", headers, HERE)
        return
    with pytest.raises(PermissionDenied):
        check_page("DELETE", headers, HERE)
