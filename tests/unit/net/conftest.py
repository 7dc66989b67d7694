"""A fixture for tests that hold for both ways of sending."""

import pytest

from penstock.net.client import HttpClient


@pytest.fixture(params=["event loop", "library"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test once as requests are sent, and once with all of them through the library, as unusual ones are."""
    if request.param == "library":
        monkeypatch.setattr(HttpClient, "_exchange", lambda *request: None)
