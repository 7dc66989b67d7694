"""URLs of providers: which are on the same host, and which are within a domain."""

import pytest

from penstock.upstream.urls import absolute_url, is_within, request_url, same_origin


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/jobs/7", "https://api.test/v1/jobs/7"),
        ("jobs/7", "https://api.test/v1/jobs/7"),
        ("https://cdn.test/x", "https://cdn.test/x"),
    ],
)
def test_a_path_is_added_to_the_base_url(path: str, url: str) -> None:
    assert absolute_url("https://api.test/v1", path) == url


def test_parameters_are_added_to_paths_below_the_base_url() -> None:
    query = {"api-version": "1", "team": "a&b"}
    assert request_url("https://api.test/v1", "/jobs", query) == "https://api.test/v1/jobs?api-version=1&team=a%26b"
    assert request_url("https://api.test/v1", "/jobs?n=2", {"team": "a"}) == "https://api.test/v1/jobs?n=2&team=a"
    assert request_url("https://api.test/v1", "https://cdn.test/x", query) == "https://cdn.test/x"
    assert request_url("https://api.test/v1", "/jobs", {}) == "https://api.test/v1/jobs"


def test_an_origin_is_scheme_host_and_port() -> None:
    assert same_origin("https://api.test/a", "https://api.test/b")
    for other in ("http://api.test/a", "https://api.test:444/a", "https://api.test.evil.test/a"):
        assert not same_origin(other, "https://api.test")


def test_a_host_of_a_domain() -> None:
    assert is_within("https://eu.api.test/x", "api.test")
    for other in ("https://evilapi.test/x", "https://api.test:8443/x", "http://api.test/x", "https://a@api.test/x"):
        assert not is_within(other, "api.test"), other
    assert not is_within("https://api.test/x", None)
