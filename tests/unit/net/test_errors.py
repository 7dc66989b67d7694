"""Failures say whether the server may have received the request."""

from penstock.net.errors import LookupBusy, MaybeSent, NotSent, ResponseTooLarge, UrlBlocked


def test_what_was_not_sent_can_be_sent_again() -> None:
    assert isinstance(UrlBlocked(), NotSent)
    assert isinstance(LookupBusy(), NotSent)
    assert LookupBusy().local
    assert not UrlBlocked().local


def test_a_response_that_is_too_large_was_asked_for() -> None:
    error = ResponseTooLarge(7)
    assert isinstance(error, MaybeSent)
    assert str(error) == "the response has more than 7 bytes"
