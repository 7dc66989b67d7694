"""Hugging Face: its own client's paths and shapes on the fake router, through the gateway."""

from tests.fake_providers.huggingface import HuggingFace
from tests.gateway import OpenGateway
from tests.providers.calls import create_image, gateway_for


async def test_images(open_gateway: OpenGateway) -> None:
    router = HuggingFace()
    async with gateway_for(open_gateway, "huggingface", router) as running:
        small = await create_image(running, model="flux-schnell", size="512x512")
        large = await create_image(running, model="flux-dev", n=2, size="1024x1024")
        assert [str(record["cost"]) for record in (small, large)] == ["0.000340787", "0.05"]
    assert router.received("nscale")[0].fields["model"] == "black-forest-labs/FLUX.1-schnell"
    sent = router.received("fal")[0]
    assert (sent.path, sent.fields["image_size"]) == ("/fal-ai/fal-ai/flux/dev", {"width": 1024, "height": 1024})


async def test_failures(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "huggingface", HuggingFace()) as running:
        refused = await create_image(running, model="qwen-image", prompt="nude")
        assert (refused["error_code"], refused["error_message"]) == (
            "CONTENT_POLICY_VIOLATION",
            "The content was flagged.",
        )
        assert await running.money() == (10_000_000_000, 0)
