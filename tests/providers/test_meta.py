"""Meta: OpenAI's client against the fake provider, then the gateway."""

import openai

from tests.fake_providers.meta import Meta
from tests.fake_providers.scripted import KEY
from tests.fake_providers.server import serve_in_thread
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_image, edit_image, gateway_for


def test_openais_client_makes_an_image() -> None:
    with (
        serve_in_thread(Meta()) as provider,
        openai.OpenAI(api_key=KEY, base_url=f"{provider.url}/v1", max_retries=0) as client,
    ):
        made = client.images.generate(model="muse-image-1.0", prompt="a fox")
        assert made.data
        assert made.data[0].b64_json


async def test_images_and_edits(open_gateway: OpenGateway) -> None:
    meta = Meta()
    async with gateway_for(open_gateway, "meta", meta, "/v1") as running:
        made = await create_image(running, model="muse-image-1", n=3, thinking="minimal", user="u1")
        edited = await edit_image(running, model="muse-image-1", image=[IMAGE_URI, IMAGE_URI])
        refused = await create_image(running, model="muse-image-1", prompt="nude")
        assert [str(record["cost"]) for record in (made, edited)] == ["0.03", "0.01"]
        assert refused["error_code"] == "CONTENT_POLICY_VIOLATION"
    first, second, _ = [request.fields for request in meta.received("images")]
    assert first == {
        "model": "muse-image-1.0",
        "prompt": "a pear",
        "n": 3,
        "size": "64x64",
        "reasoning_strength": "low",
        "response_format": "b64_json",
        "output_format": "png",
        "user": "u1",
    }
    assert second["images"] == [{"image_url": IMAGE_URI}] * 2
