"""Bytes that cost much work are refused early: small chunks, many headers, long trailers."""

from typing import Any

from penstock.errors import HeadersTooLarge, InvalidRequest, Problem
from penstock.http_server.request_parser import RequestParser

POST = b"POST /a HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n"


class Log:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.parser = RequestParser(self)
        self.scopes: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.ends = 0
        self.is_last = False

    def begin_request(self, scope: dict[str, Any], *, keep_alive: bool, expects_continue: bool) -> None:
        self.scopes.append(scope)

    def add_body(self, body: bytes) -> None:
        self.bodies.append(body)

    def end_request(self) -> None:
        self.ends += 1

    def end_after_response(self) -> None:
        self.is_last = True

    def feed(self, data: bytes, piece_bytes: int = 256 * 1024) -> Problem | None:
        """Feed pieces as they arrive; return the problem, if there is one."""
        for start in range(0, len(data), piece_bytes):
            try:
                self.parser.feed(data[start : start + piece_bytes])
            except Problem as problem:
                return problem
        return None


def chunks(data: bytes, size: int) -> bytes:
    pieces = (data[start : start + size] for start in range(0, len(data), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def test_chunks_that_arrive_together_are_one_piece() -> None:
    log = Log()
    assert log.feed(POST + chunks(b"x" * 1000, 1)) is None
    assert log.bodies == [b"x" * 1000]
    assert log.ends == 1


def test_tiny_chunks_are_refused_after_some_kilobytes() -> None:
    log = Log()
    problem = log.feed(POST + chunks(b"x" * 100_000, 1))
    assert isinstance(problem, InvalidRequest)
    assert "64 bytes or more on average" in problem.message
    assert sum(map(len, log.bodies)) < 8000
    assert log.ends == 0


def test_small_chunks_are_passed_on_in_large_pieces() -> None:
    log = Log()
    assert log.feed(POST + chunks(b"x" * 1_000_000, 70)) is None
    assert b"".join(log.bodies) == b"x" * 1_000_000
    assert len(log.bodies) < 80
    assert log.ends == 1


def test_the_chunks_of_each_request_are_counted_apart() -> None:
    log = Log()
    for _ in range(5):
        assert log.feed(POST + chunks(b"x" * 3000, 1)) is None
    assert log.ends == 5


def test_a_body_that_drips_is_not_refused() -> None:
    log = Log()
    assert log.feed(POST + chunks(b"x" * 10_000, 1), piece_bytes=6) is None
    assert len(b"".join(log.bodies)) == 10_000


def test_headers_are_counted_while_they_arrive() -> None:
    log = Log()
    problem = log.feed(b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 50_000)
    assert isinstance(problem, HeadersTooLarge)
    assert len(log.parser._headers) == 100


def test_a_trailer_is_limited_and_never_taken_for_headers() -> None:
    log = Log()
    head = POST + b"1\r\nx\r\n0\r\n"
    assert log.feed(head + b"x-forwarded-for: 1\r\n\r\n") is None
    assert [name for name, _ in log.scopes[0]["headers"]] == [b"host", b"transfer-encoding"]
    assert isinstance(log.feed(head + b"a:\r\n" * 50_000), HeadersTooLarge)


def test_the_body_after_an_offered_protocol_is_read_and_is_the_last() -> None:
    log = Log()
    upgrade = POST.replace(b"\r\n\r\n", b"\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")
    assert log.feed(upgrade + chunks(b"abc", 1)) is None
    assert (b"".join(log.bodies), log.ends, log.is_last) == (b"abc", 1, True)
    log = Log()
    assert log.feed(upgrade + chunks(b"x" * 100_000, 1)) is not None


def test_a_refusal_of_the_listener_is_raised() -> None:
    class Refusing(Log):
        def begin_request(self, scope: dict[str, Any], *, keep_alive: bool, expects_continue: bool) -> None:
            raise InvalidRequest("not here")

    problem = Refusing().feed(POST)
    assert problem is not None
    assert problem.message == "not here"
