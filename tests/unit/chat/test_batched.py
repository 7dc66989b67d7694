"""Which chat calls can go with a batch of their provider, and at what price."""

from base64 import b64encode
from typing import Any

import pytest

from penstock.batches.row_checks import row_call
from penstock.chat.batched import BatchedChat, admit, batched_chat, provider_fields
from penstock.errors import ContentPolicyViolation, InvalidRequest
from tests import sounds
from tests.fake_providers.openai_batches import OpenAIBatches
from tests.gateway import OpenGateway, RunningGateway, caller_with, sqlite_only
from tests.unit.batches.vendor_calls import chat_body, opened

pytestmark = sqlite_only
CHATS = "/compat/v1/chat/completions"
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


async def found(running: RunningGateway, body: dict[str, Any], **changes: Any) -> BatchedChat | None:
    caller = caller_with(running.caller, **changes)
    return await batched_chat(running.gateway, row_call(running.gateway, caller, CHATS, body))


async def test_text_goes_with_a_batch_at_half_the_price(open_gateway: OpenGateway) -> None:
    async with opened(open_gateway, OpenAIBatches()) as running:
        chat = await found(running, chat_body("a plum", user="u-1"))
        assert chat is not None
        assert (chat.request.values, chat.candidate.in_batch) == ({"user": "u-1"}, True)
        assert 0 < chat.estimate(2000) * 2 <= chat.amount + 1
        fields = provider_fields(running.gateway, chat.call, chat.candidate)
        assert (fields["model"], fields["max_completion_tokens"], fields["user"]) == ("gpt-4o-mini", 20, "u-1")


async def test_what_needs_more_than_text_or_is_limited_does_not(open_gateway: OpenGateway) -> None:
    async with opened(open_gateway, OpenAIBatches()) as running:
        text = {"type": "text", "text": "what is it"}
        seen = chat_body("", messages=[{"role": "user", "content": [text, IMAGE]}])
        sound = {
            "type": "input_audio",
            "input_audio": {"data": b64encode(sounds.encoded("wav", 1)).decode(), "format": "wav"},
        }
        heard = chat_body("", model="openai/gpt-audio-1.5", messages=[{"role": "user", "content": [text, sound]}])
        for body in (seen, heard, chat_body("hello", model="openai/gpt-audio-1.5")):
            assert await found(running, body) is None
        for limit in ({"requests_per_minute": 5}, {"concurrent_requests": 5}, {"replay_mode": "record"}):
            assert await found(running, chat_body("a plum"), **limit) is None


async def test_a_wrong_call_is_refused_as_alone(open_gateway: OpenGateway) -> None:
    async with opened(open_gateway, OpenAIBatches()) as running:
        with pytest.raises(InvalidRequest):
            await found(running, chat_body("a plum", temperature=9))


async def test_guards_read_a_call_before_it_is_sent(open_gateway: OpenGateway) -> None:
    guards = {"words": {"rules": {"words": ["plum"]}, "when": "input"}}
    async with opened(open_gateway, OpenAIBatches(), guards=guards) as running:
        chat = await found(running, chat_body("a plum"))
        assert chat is not None
        with pytest.raises(ContentPolicyViolation):
            await admit(running.gateway, chat)
