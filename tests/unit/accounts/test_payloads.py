"""When stored payloads expire, and which of their texts is listed."""

from typing import Any

import pytest

from penstock.accounts.payloads import expiry_ms, prompt_of
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


@pytest.mark.parametrize(
    ("body", "prompt"),
    [
        ({"input": "say it"}, "say it"),
        ({"messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]}, "one"),
        ({"input": [{"role": "user", "content": "one"}, {"role": "user", "content": "three"}]}, "three"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "what"}]}]},
            "what",
        ),
        ({"messages": [{"role": "system", "content": "be brief"}]}, None),
        ({"messages": [7, {"role": "user", "content": [7]}]}, None),
        ({"input": "é" * 3000}, "é" * 2000),
        ({}, None),
    ],
)
def test_the_prompt_of_a_chat_is_what_its_user_said_last(body: dict[str, Any], prompt: str | None) -> None:
    assert prompt_of(body) == prompt
