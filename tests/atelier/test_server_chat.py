"""The built-in chat model through the gateway: its limits, and where its work takes place."""

import json
from typing import Any

import pytest

from penstock.chat.endpoint import complete_chat
from penstock.errors import InvalidRequest
from penstock.schema import Response
from penstock_atelier.renderers import echo
from tests.gateway import OpenGateway, RunningGateway, sqlite_only

pytestmark = sqlite_only
LONG = "word " * 10_000


async def chat(running: RunningGateway, content: Any, **body: Any) -> Response:
    fields = {"model": "atelier/echo", "messages": [{"role": "user", "content": content}], **body}
    return await complete_chat(running.gateway, running.call(fields, endpoint="/compat/v1/chat/completions"))


async def read(response: Response) -> bytes:
    if response.chunks is None:
        return bytes(response.body or b"")
    return b"".join([chunk async for chunk in response.chunks])


@pytest.mark.parametrize(
    "body",
    [
        {"content": "word " * 14_000},
        {"content": "short", "stop": "x" * 70_000},
        {"content": "short", "tools": [{"type": "function", "function": {"name": "n" * 70_000}}]},
        {"content": "short", "response_format": {"type": "json_schema", "json_schema": {"schema": ["x"] * 70_000}}},
    ],
    ids=["messages", "stop", "tools", "response_format"],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_is_too_large_is_refused_with_the_limit(
    open_gateway: OpenGateway, body: dict[str, Any], stream: bool
) -> None:
    async with open_gateway(disabled_providers=()) as running:
        with pytest.raises(InvalidRequest, match="at most 65536 bytes"):
            await chat(running, stream=stream, **body)


async def test_images_do_not_count_and_are_not_sent(open_gateway: OpenGateway) -> None:
    async with open_gateway(disabled_providers=()) as running:
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
        response = await chat(running, [{"type": "text", "text": "see"}, image])
        assert json.loads(await read(response))["choices"][0]["message"]["content"] == "see [image]"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("content", "options"),
    [(LONG, {}), ("a few words", {"logprobs": True, "top_logprobs": 20}), (LONG, {"logprobs": True})],
    ids=["long", "probabilities", "both"],
)
async def test_a_call_with_much_work_is_not_answered_on_the_event_loop(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, content: str, options: dict[str, Any], stream: bool
) -> None:
    def fail(_: Any) -> None:
        raise AssertionError("the echo runs in the gateway's own process")

    monkeypatch.setattr(echo, "_reply", fail)
    async with open_gateway(disabled_providers=(), child_processes=True) as running:
        assert content.split()[0].encode() in await read(await chat(running, content, stream=stream, **options))


async def test_a_response_has_a_limited_number_of_tokens(open_gateway: OpenGateway) -> None:
    async with open_gateway(disabled_providers=()) as running:
        completion = json.loads(await read(await chat(running, LONG, max_tokens=9000)))
        assert completion["usage"]["completion_tokens"] == 4096
        assert completion["choices"][0]["finish_reason"] == "length"
