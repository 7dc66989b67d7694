"""Tencent through the gateway, against a fake that takes the described fields and no others."""

import json

from tests.fake_providers.server import responds
from tests.fake_providers.tencent import Tencent, error
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_chat, create_image, edit_image, gateway_for

MODEL = "hy-image-3.5-preview"


async def test_images_and_edits(open_gateway: OpenGateway) -> None:
    """What is larger than 2K costs more."""
    tencent = Tencent()
    async with gateway_for(open_gateway, "tencent", tencent, "/v1") as running:
        made = await create_image(running, model=MODEL, seed=7, size="1:1")
        large = await create_image(running, model=MODEL, size="4096x4096")
        edited = await edit_image(running, model=MODEL, image=[IMAGE_URI, IMAGE_URI], size="16:9")
        assert [str(record["cost"]) for record in (made, large, edited)] == ["0.024", "0.032", "0.024"]
    first, second, third = [request.fields for request in tencent.received("generate")]
    assert first == {
        "model": "hy-image-v3.5-preview",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a pear"}]}],
        "seed": 7,
        "size": "1024x1024",
    }
    assert second["size"] == "4096x4096"
    image = {"type": "image_url", "image_url": {"url": IMAGE_URI}}
    assert third["messages"][0]["content"] == [{"type": "text", "text": "add a hat"}, image, image]


async def test_refusals_and_failures_are_free(open_gateway: OpenGateway) -> None:
    tencent = Tencent()
    blocked = error(422, "content_filter", "output moderation rejected")
    unpaid = error(402, "401007", "no free quota, and no postpaid billing")
    async with gateway_for(open_gateway, "tencent", tencent, "/v1") as running:
        in_the_reply = await create_image(running, model=MODEL, prompt="forbidden")
        tencent.next("generate", *(responds(response.json, response.status) for response in (blocked, unpaid)))
        by_status = await create_image(running, model=MODEL)
        without_money = await create_image(running, model=MODEL)
        assert [record["error_code"] for record in (in_the_reply, by_status, without_money)] == [
            "CONTENT_POLICY_VIOLATION", "CONTENT_POLICY_VIOLATION", "ALL_PROVIDERS_EXHAUSTED",
        ]  # fmt: skip
        assert await running.money() == (10_000_000_000, 0)


async def test_chat(open_gateway: OpenGateway) -> None:
    tencent = Tencent()
    async with gateway_for(open_gateway, "tencent", tencent, "/v1") as running:
        text, record = await create_chat(running, model="minimax/minimax-m3", max_completion_tokens=50)
        assert (json.loads(text)["choices"][0]["finish_reason"], record["status"]) == ("stop", "completed")
    fields = tencent.received("chat")[0].fields
    assert (fields["model"], fields["max_tokens"]) == ("minimax-m3", 50)
