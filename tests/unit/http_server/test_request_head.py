"""Heads that two servers could read differently are refused; others are described as ASGI does."""

import httptools
import pytest

from penstock.http_server.request_head import base_url, head_problem, host_name, request_scope

HOST = (b"host", b"test")


@pytest.mark.parametrize(
    ("url", "headers", "version", "says"),
    [
        (b"/" + b"a" * 9000, [HOST], "1.1", "request line"),
        (b"/a", [HOST] + [(b"x", b"y")] * 100, "1.1", "100 lines"),
        (b"/a", [HOST], "2.0", "Only HTTP/1.1"),
        (b"/a", [HOST, (b"transfer-encoding", b"chunked")], "1.0", "Only HTTP/1.1"),
        (b"a", [HOST], "1.1", "must be a path"),
        (b"/a#b", [HOST], "1.1", "must be a path"),
        (b"/a", [], "1.1", "0 were sent"),
        (b"/a", [HOST, HOST], "1.1", "2 were sent"),
        (b"/a", [HOST, HOST], "1.0", "2 were sent"),
        (b"/a", [HOST, (b"transfer-encoding", b"gzip")], "1.1", "must be chunked"),
    ],
)
def test_an_ambiguous_head_is_refused(url: bytes, headers: list[tuple[bytes, bytes]], version: str, says: str) -> None:
    problem = head_problem(url, headers, version)
    assert problem is not None
    assert says in problem.message


@pytest.mark.parametrize("url", [b"/", b"*", b"http://test/a"])
def test_a_clean_head_is_accepted(url: bytes) -> None:
    assert head_problem(url, [HOST, (b"transfer-encoding", b"Chunked")], "1.1") is None


def test_http_1_0_needs_no_host() -> None:
    assert head_problem(b"/healthz", [], "1.0") is None


@pytest.mark.parametrize(
    ("url", "path", "raw_path", "query"),
    [
        (b"/a/b?c=%20d", "/a/b", b"/a/b", b"c=%20d"),
        (b"/a%2Fb%20c", "/a/b c", b"/a%2Fb%20c", b""),
        (b"https://test/a?", "/a", b"/a", b""),
        (b"//test/a", "//test/a", b"//test/a", b""),
    ],
)
def test_the_path_and_the_query_of_a_request(url: bytes, path: str, raw_path: bytes, query: bytes) -> None:
    scope = request_scope(url, b"POST", "1.1", [HOST])
    assert (scope["path"], scope["raw_path"], scope["query_string"]) == (path, raw_path, query)
    assert (scope["method"], scope["http_version"], scope["headers"]) == ("POST", "1.1", [HOST])


def test_a_path_is_ascii() -> None:
    with pytest.raises(httptools.HttpParserInvalidURLError):
        request_scope("/ä".encode(), b"GET", "1.1", [HOST])


@pytest.mark.parametrize(
    ("host", "url"),
    [("Test:8080", "http://Test:8080"), ("[::1]:80", "http://[::1]:80"), ("a b", ""), ("", ""), ("a/b", "")],
)
def test_only_a_plain_host_becomes_a_url(host: str, url: str) -> None:
    assert base_url("http", host) == url


@pytest.mark.parametrize(
    ("host", "name"), [("Test.:80", "test"), ("test", "test"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]")]
)
def test_the_name_in_a_host_header(host: str, name: str) -> None:
    assert host_name(host) == name
