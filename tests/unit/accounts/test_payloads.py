"""When stored payloads expire."""

import pytest

from penstock.accounts.payloads import expiry_ms
from penstock.settings import Settings


@pytest.mark.parametrize(
    ("settings", "stored_ms"),
    [
        (Settings(), 30 * 86_400_000),
        (Settings(payloads="all", payload_retention="5h"), 5 * 3_600_000),
        (Settings(payloads="none", payload_retention="5h"), 2_000),
    ],
)
def test_payloads_expire_some_time_after_the_end(settings: Settings, stored_ms: int) -> None:
    assert expiry_ms(settings, 1_700_000_000_000) - 1_700_000_000_000 == stored_ms
