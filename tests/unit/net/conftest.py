"""A fixture for tests that hold for both ways of sending."""

import pytest

from penstock.net.client import HttpClient


@pytest.fixture(params=["library", "event loop"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test once with requests through the library, and once with interruptible ones."""
    if request.param == "event loop":
        for method in (HttpClient.send, HttpClient.stream):
            defaults = {**(method.__kwdefaults__ or {}), "interruptible": True}
            monkeypatch.setattr(method, "__kwdefaults__", defaults)
