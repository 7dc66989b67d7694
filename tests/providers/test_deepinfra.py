"""DeepInfra: OpenAI's client against the fake provider, then the gateway."""

import json

import openai

from tests.fake_providers.deepinfra import DeepInfra
from tests.fake_providers.scripted import KEY
from tests.fake_providers.server import serve_in_thread
from tests.gateway import OpenGateway
from tests.providers.calls import create_chat, create_image, gateway_for


def test_openais_client_makes_an_image() -> None:
    with (
        serve_in_thread(DeepInfra()) as provider,
        openai.OpenAI(api_key=KEY, base_url=f"{provider.url}/v1/openai", max_retries=0) as client,
    ):
        made = client.images.generate(model="black-forest-labs/FLUX-2-dev", prompt="a fox", size="256x256")
        assert made.data
        assert made.data[0].b64_json


async def test_images(open_gateway: OpenGateway) -> None:
    deepinfra = DeepInfra()
    async with gateway_for(open_gateway, "deepinfra", deepinfra, "/v1/openai") as running:
        record = await create_image(running, model="deepinfra/flux-2-dev", n=2, size="512x512")
        assert (record["status"], str(record["cost"])) == ("completed", "0.005"), "a quarter of 0.01, twice"
        refused = await create_image(running, model="flux-2-max", prompt="nsfw")
        assert refused["error_code"] == "CONTENT_POLICY_VIOLATION"
    assert deepinfra.received("generate")[0].fields == {
        "model": "black-forest-labs/FLUX-2-dev",
        "prompt": "a pear",
        "size": "512x512",
    }


async def test_chat(open_gateway: OpenGateway) -> None:
    deepinfra = DeepInfra()
    async with gateway_for(open_gateway, "deepinfra", deepinfra, "/v1/openai") as running:
        text, record = await create_chat(running, model="openai/gpt-oss-120b", max_completion_tokens=50)
        assert (json.loads(text)["choices"][0]["finish_reason"], record["status"]) == ("stop", "completed")
    assert deepinfra.received("chat")[0].fields["max_tokens"] == 50
