"""What is worked out from several settings."""

from typing import Any

import pytest

from penstock.settings import Settings


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "http://127.0.0.1:8080"),
        ({"host": "::1", "port": 9}, "http://[::1]:9"),
        ({"public_url": "https://gateway.example/"}, "https://gateway.example"),
        ({"public_url": "https://gateway.example:8443/penstock"}, "https://gateway.example:8443/penstock"),
    ],
)
def test_base_url(given: dict[str, Any], url: str) -> None:
    assert Settings(**given).base_url == url
