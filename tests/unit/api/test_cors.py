"""Browsers: which pages may read a response, and the answer to their question beforehand."""

from penstock.api.cors import Cors

ORIGIN = {"origin": "https://App.test"}
ASKING = {**ORIGIN, "access-control-request-method": "POST", "access-control-request-headers": "x-stainless-os"}


def test_only_listed_origins_get_headers() -> None:
    cors = Cors(("https://app.test",))
    assert cors.headers(ORIGIN)["access-control-allow-origin"] == "https://App.test"
    for headers in ({}, {"origin": "https://app.test.evil.test"}, {"origin": "null"}, {"origin": "http://app.test"}):
        assert cors.headers(headers) == {"vary": "origin"}, headers


def test_a_star_is_for_every_page() -> None:
    assert Cors(("*",)).headers({"origin": "https://any.test"})["access-control-allow-origin"] == "*"
    assert "vary" not in Cors(("*",)).headers({})


def test_a_preflight_is_answered_for_listed_origins_and_nothing_else_is_one() -> None:
    cors = Cors(("https://app.test",))
    response = cors.preflight("OPTIONS", ASKING)
    assert response is not None
    assert (response.status, response.headers["access-control-allow-headers"]) == (204, "x-stainless-os")
    other = cors.preflight("OPTIONS", {**ASKING, "origin": "https://evil.test"})
    assert other is not None
    assert not other.headers
    assert cors.preflight("OPTIONS", ORIGIN) is None
    assert cors.preflight("POST", ASKING) is None
