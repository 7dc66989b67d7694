"""How replies with Gemini's images are read."""

import json
from typing import Any

import pytest

from penstock.providers.gemini_images import read_images, read_tokens
from penstock.providers.spec import Reply


def read(**body: Any) -> Any:
    return read_images(Reply(200, {}, json.dumps(body).encode()))


def test_drafts_are_left_out() -> None:
    def part(data: str, **fields: Any) -> dict[str, Any]:
        return {"inlineData": {"mimeType": "image/png", "data": data}, **fields}

    result = read(candidates=[{"content": {"parts": [part("ZHJhZnQ=", thought=True), part("b25l")]}}], responseId="r")
    assert ([file.data for file in result.files], result.upstream_id) == (["b25l"], "r")


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ({"promptFeedback": {"blockReason": "OTHER"}}, "refused", "Gemini made no image: OTHER."),
        ({"candidates": [{"finishReason": "IMAGE_SAFETY"}]}, "refused", "Gemini made no image: IMAGE_SAFETY."),
        ({"candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": "No."}]}}]}, "rejected", "No."),
        ({}, "rejected", "Gemini made no image: no candidates."),
    ],
)
def test_replies_without_an_image(body: dict[str, Any], kind: str, message: str) -> None:
    result = read(**body)
    assert (result.status, result.failure_kind, result.message) == ("failed", kind, message)


def test_thoughts_and_words_cost_less_than_images() -> None:
    reported = {"promptTokenCount": 7, "candidatesTokenCount": 110, "thoughtsTokenCount": 40}
    by_modality = {"candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 100}]}
    assert read_tokens({**reported, **by_modality}) == {"input": 7, "output": 100, "text_output": 50}
    assert read_tokens(reported) == {"input": 7, "output": 110, "text_output": 40}
