"""Qwen-Image: DashScope's own client against the fake provider, then the gateway."""

from typing import Any

import pytest

from tests.fake_providers.qwen import Qwen
from tests.fake_providers.scripted import KEY
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_image, edit_image, gateway_for


def test_client_makes_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    import dashscope  # takes longer than the tests of most providers, so only who needs it waits for it

    with serve_in_thread(Qwen()) as provider:
        monkeypatch.setattr(dashscope, "base_http_api_url", f"{provider.url}/api/v1")
        messages: list[Any] = [{"role": "user", "content": [{"image": IMAGE_URI}, {"text": "add a hat"}]}]
        made: Any = dashscope.MultiModalConversation.call(
            api_key=KEY, model="qwen-image-3.0", messages=messages, size="512*512", n=1
        )
        assert made.status_code == 200
        assert made.output.choices[0].message.content[0]["image"].startswith(provider.url)


async def test_images_and_edits(open_gateway: OpenGateway) -> None:
    qwen = Qwen()
    async with gateway_for(open_gateway, "qwen", qwen) as running:
        made = await create_image(running, model="qwen-image-3-pro", n=2, prompt_enhancement="off")
        large = await create_image(running, model="qwen-image-3-pro", size="2048x2048")
        edited = await edit_image(running, model="qwen-image-3", image=[IMAGE_URI] * 2, size="1:1")
        assert [str(record["cost"]) for record in (made, large, edited)] == ["0.08", "0.075", "0.036"]
    first, _, third = [request.fields for request in qwen.received("create")]
    assert first == {
        "model": "qwen-image-3.0-pro",
        "input": {"messages": [{"role": "user", "content": [{"text": "a pear"}]}]},
        "parameters": {"n": 2, "size": "512*512", "prompt_extend": False},
    }
    content = third["input"]["messages"][0]["content"]
    assert content == [{"image": IMAGE_URI}, {"image": IMAGE_URI}, {"text": "add a hat"}]


async def test_failures(open_gateway: OpenGateway) -> None:
    qwen = Qwen()
    no_image = {"choices": [{"message": {"role": "assistant", "content": [{"text": "I cannot draw this."}]}}]}
    async with gateway_for(open_gateway, "qwen", qwen) as running:
        refused = await create_image(running, model="qwen-image-3", prompt="nude")
        assert refused["error_code"] == "CONTENT_POLICY_VIOLATION"
        qwen.next("create", responds({"output": no_image, "request_id": "7574ee8f"}))
        failed = await create_image(running, model="qwen-image-3")
        assert "I cannot draw this." in failed["error_message"]
        assert await running.money() == (10_000_000_000, 0)
