"""The log line of a failed attempt: provider, model, kind and words, but nothing that the caller wrote."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from penstock.chat.endpoint import complete_chat
from penstock.errors import Problem
from penstock.upstream.failure_log import without_quotations
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, sqlite_only

PROMPT = "a red fox that jumps over my neighbour's fence"


def test_quotations_are_hidden_and_other_words_stay() -> None:
    cases = {
        "The model is overloaded.": "The model is overloaded.",
        f"Rejected: '{PROMPT}'.": "Rejected: '[…]'.",
        "Cannot draw A RED FOX that jumps; try again.": "Cannot draw […]; try again.",
        "jumps over my garden": "[…] garden",
        "the fence": "the fence",
        "neighbourhood is not allowed": "neighbourhood is not allowed",
        "Incorrect key sk-proj-0123456789abcdef.": "Incorrect key [secret]",
        "a red fox, then a red fox": "[…], then […]",
        "x" * 400: "x" * 300,
    }
    wrong = {words: without_quotations(words, PROMPT) for words in cases}
    assert wrong == cases


def test_texts_are_found_wherever_they_are_in_json() -> None:
    sent = [{"role": "user", "content": [{"type": "text", "text": "meet Ä-B-C at noon"}]}]
    assert without_quotations("who is ä-b-c? internationalization", sent) == "who is […]? internationalization"
    assert without_quotations("bad word: internationalization", ["internationalization"]) == "bad word: […]"


def test_nothing_is_shown_if_too_much_would_have_to_be_searched() -> None:
    assert without_quotations("broken", "x" * 300_000) is None


async def failed_lines(running: RunningGateway) -> list[dict[str, object]]:
    running.lab.images.always(faults.error(500, f"No capacity for {PROMPT} today"))
    running.lab.chats.always(faults.error(429, f"Too many calls about {PROMPT} now"))
    body = {"model": "lab/chat", "messages": [{"role": "user", "content": PROMPT}]}
    with capture_logs() as lines:
        with pytest.raises(Problem):
            await running.image(prompt=PROMPT)
        with pytest.raises(Problem):
            await complete_chat(running.gateway, running.call(body, endpoint="/compat/v1/chat/completions"))
    return [dict(line) for line in lines if line["event"] == "attempt failed"]


@sqlite_only
async def test_a_failed_attempt_is_logged_with_the_words_of_its_provider(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        lines = await failed_lines(running)
    shown = [(line["provider"], line["model"], line["kind"], line["http_status"], line["words"]) for line in lines]
    assert shown == [
        ("lab", "easel-1", "broken", 500, "No capacity for […] today"),
        ("lab", "chat-1", "busy", 429, "Too many calls about […] now"),
    ]


@sqlite_only
async def test_where_nothing_may_be_stored_no_words_are_logged(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="none") as running:
        lines = await failed_lines(running)
    assert [(line["kind"], line["words"]) for line in lines] == [("broken", None), ("busy", None)]


@sqlite_only
async def test_what_a_provider_says_about_the_account_is_logged_and_not_shown_to_callers(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway() as running:
        running.lab.images.always(faults.error(402, "0 USD are available"))
        with capture_logs() as lines, pytest.raises(Problem) as caught:
            await running.image(prompt=PROMPT)
    assert "0 USD" not in caught.value.message
    assert [line["words"] for line in lines if line["event"] == "attempt failed"] == ["0 USD are available"]


def test_what_is_deep_or_has_many_texts_takes_no_long_search() -> None:
    """A caller can have as many calls rejected as it likes, and others wait while the words are searched."""
    deep: Any = "swordfish in moonlight"
    for _ in range(5000):
        deep = [deep]
    assert without_quotations("No swordfish in moonlight.", deep) == "No […]."
    assert without_quotations("No swordfish.", ["a"] * 33_000) is None
    assert without_quotations("No swordfish.", ["a" * 66_000]) is None
