"""Chunks that arrive together are taken together, and counted."""

from penstock.long_bodies.arrivals import Arrivals


def test_what_has_arrived_is_one_piece() -> None:
    arrivals = Arrivals(16)
    assert not arrivals.pieces
    for letter in (b"a", b"b", b"c"):
        arrivals.add(letter)
    assert arrivals.pieces
    assert arrivals.take() == b"abc"
    assert not arrivals.pieces
    assert arrivals.take() == b""


def test_a_single_chunk_is_not_copied() -> None:
    arrivals = Arrivals(16)
    chunk = bytes(1000)
    arrivals.add(chunk)
    assert arrivals.take() is chunk


def test_a_few_chunks_stay_apart() -> None:
    arrivals = Arrivals(16)
    for number in range(10):
        arrivals.add(b"%d" % number)
    assert len(arrivals.take_few()) == 10
    assert not arrivals.pieces
    for number in range(100):
        arrivals.add(b"%d" % number)
    assert arrivals.take_few() == [b"".join(b"%d" % number for number in range(100))]


def _send(arrivals: Arrivals, chunk_bytes: int, count: int) -> None:
    for _ in range(count):
        arrivals.add(bytes(chunk_bytes))
    arrivals.take()


def test_many_chunks_must_have_a_size_on_average() -> None:
    arrivals = Arrivals(16)
    _send(arrivals, 1, 4000)
    assert not arrivals.are_too_small  # they are few
    _send(arrivals, 1, 1000)
    assert arrivals.are_too_small


def test_each_body_is_counted_by_itself() -> None:
    arrivals = Arrivals(16)
    _send(arrivals, 1, 5000)
    arrivals.restart()
    _send(arrivals, 1, 4000)
    assert not arrivals.are_too_small


def test_large_chunks_make_up_for_small_ones() -> None:
    arrivals = Arrivals(16)
    _send(arrivals, 17, 100_000)
    assert not arrivals.are_too_small
    arrivals.restart()
    _send(arrivals, 100_000, 1)
    _send(arrivals, 1, 5000)
    assert not arrivals.are_too_small


def test_small_chunks_that_arrive_one_at_a_time_are_not_counted() -> None:
    arrivals = Arrivals(16)
    for _ in range(10_000):
        _send(arrivals, 1, 1)
    assert not arrivals.are_too_small
