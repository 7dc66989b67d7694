"""Fixtures for tests that hold for both ways of sending, or for the library alone."""

import pytest

from penstock.net.http1 import Http1Client


@pytest.fixture
def through_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send all requests through the library, as unusual ones are."""
    monkeypatch.setattr(Http1Client, "exchange", lambda *request: None)


@pytest.fixture(params=["event loop", "library"])
def both_ways(request: pytest.FixtureRequest) -> None:
    """Run the test once as requests are sent, and once with all of them through the library."""
    if request.param == "library":
        request.getfixturevalue("through_library")
