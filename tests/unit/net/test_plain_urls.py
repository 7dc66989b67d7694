"""Odd URLs are written in one plain form, or not at all."""

import pytest

from penstock.net.plain_urls import plain_url


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://a.test/b?c=d", "https://a.test/b?c=d"),
        ("HTTPS://A.Test", "https://a.test/"),
        ("http://a_b.test:8080?c", "http://a_b.test:8080/?c"),
        ("http://a.test/b c|#part", "http://a.test/b%20c|"),
        ("http://a.test/%20\u00fc", "http://a.test/%20%C3%BC"),
        ("http://b\u00fccher.test/", "http://xn--bcher-kva.test/"),
        ("http://[::FFFF]:1/", "http://[::ffff]:1/"),
    ],
)
def test_the_plain_form(url: str, plain: str) -> None:
    assert plain_url(url) == (plain, "")


def test_a_user_and_a_password_become_a_header() -> None:
    assert plain_url("http://us%65r:p%40ss@a.test/") == ("http://a.test/", "Basic dXNlcjpwQHNz")


@pytest.mark.parametrize(
    "url",
    ["", "a.test", "ftp://a.test/", "http://", "http:///a", "http://a.test\\@b.test/", "http://a b/", "http://a.test/\nb",
     "http://a.test:x/", "http://a.test:123456/", "http://[::1/", "http://\u2488/"],
)  # fmt: skip
def test_other_texts_are_no_urls(url: str) -> None:
    assert plain_url(url) is None
