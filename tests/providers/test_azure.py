"""Azure: OpenAI's own client against the fake provider, then the gateway."""

import json
from collections.abc import Iterator

import openai
import pytest

from penstock.errors import InvalidRequest
from penstock.providers import azure
from tests.fake_providers.azure import BLOCKED, Azure
from tests.fake_providers.scripted import KEY
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_chat, create_image, edit_image, gateway_for

# ------------------------------------------------------------------------------------------------------ its own client


@pytest.fixture
def provider() -> Iterator[Azure]:
    with serve_in_thread(Azure()) as provider:
        yield provider


def test_client_creates_images(provider: Azure) -> None:
    base_url = f"{provider.url}/openai/v1"
    with openai.OpenAI(api_key="unused", base_url=base_url, default_headers={"api-key": KEY}, max_retries=0) as client:
        made = client.images.generate(model="gpt-image-2", prompt="a fox", size="1536x1024")
        assert made.data
        assert made.data[0].b64_json
    assert provider.received("azure_generate")[0].headers["api-key"] == KEY


# ---------------------------------------------------------------------------------------------------------- the gateway


def test_a_key_and_a_token_of_entra_have_headers_of_their_own() -> None:
    assert azure.auth("0123abcd") == {"api-key": "0123abcd"}
    assert azure.auth("eyJ0eXAi.e30.c2ln") == {"authorization": "Bearer eyJ0eXAi.e30.c2ln"}


async def test_images_and_chat_of_openai(open_gateway: OpenGateway) -> None:
    provider = Azure()
    async with gateway_for(open_gateway, "azure", provider) as running:
        made = await create_image(running, model="gpt-image-2", size="1536x1024", quality="low")
        edited = await edit_image(running, model="gpt-image-2.5-flare", image=[IMAGE_URI, IMAGE_URI], quality="low")
        # 10 tokens of text at 5, 196 of the image at 30 dollars a million; then 600 of input images at 8.
        assert [str(record["cost"]) for record in (made, edited)] == ["0.00593", "0.01073"]
        text, record = await create_chat(running, model="azure/gpt-5.4", max_tokens=20)
        assert json.loads(text)["choices"][0]["message"]["content"] == "Name a colour."
        assert record["status"] == "completed"
    assert provider.received("azure_generate")[0].fields["model"] == "gpt-image-2"
    assert len(provider.received("azure_edit")[0].fields["image"]) == 2
    assert provider.received("azure_chat")[0].fields["max_completion_tokens"] == 20


async def test_images_of_microsoft(open_gateway: OpenGateway) -> None:
    provider = Azure()
    async with gateway_for(open_gateway, "azure", provider) as running:
        made = await create_image(running, model="mai-image-2.6", size="512x1024")
        edited = await edit_image(running, model="mai-image-2.6-flash")
        # 4 tokens of text at 5, 1152 of the image at 38 dollars a million; then 4 at 1.75, 300 at 2.5, 1024 at 19.
        assert [str(record["cost"]) for record in (made, edited)] == ["0.043796", "0.020213"]
        with pytest.raises(InvalidRequest, match="`seed`"):
            await create_image(running, model="mai-image-2.6", seed=7)
    received = provider.received("mai")[0].fields
    assert received == {"model": "MAI-Image-2.6", "prompt": "a pear", "width": 768, "height": 1536}


async def test_images_of_flux(open_gateway: OpenGateway) -> None:
    provider = Azure()
    async with gateway_for(open_gateway, "azure", provider) as running:
        made = await create_image(running, model="flux-2-pro", size="1024x1024", seed=7)
        edited = await edit_image(running, model="flux-2-flex", image=[IMAGE_URI, IMAGE_URI], size="1024x1024")
        # A megapixel is 1024 x 1024 pixels: 0.015, and 0.015 for the output; then 0.05, and as much for the inputs.
        assert str(made["cost"]) == "0.03"
        assert str(edited["cost"]) == "0.050292969"
        with pytest.raises(InvalidRequest, match="`num_images`"):
            await create_image(running, model="flux-2-pro", num_images=4)
    first, second = provider.received("flux")
    assert first.path == "/providers/blackforestlabs/v1/flux-2-pro?api-version=preview"
    assert first.fields == {
        "model": "FLUX.2-pro", "prompt": "a pear", "width": 1024, "height": 1024, "seed": 7, "output_format": "png",
    }  # fmt: skip
    assert {"input_image", "input_image_2"} <= second.fields.keys()


async def test_failures(open_gateway: OpenGateway) -> None:
    provider = Azure()
    missing = {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}}
    provider.next("azure_generate", responds(BLOCKED, 400))
    provider.next("azure_generate", responds(missing, 404))
    async with gateway_for(open_gateway, "azure", provider) as running:
        refused, broken = [await create_image(running, model="gpt-image-2") for _ in range(2)]
        assert refused["error_code"] == "CONTENT_POLICY_VIOLATION"
        assert broken["error_code"] != "CONTENT_POLICY_VIOLATION"
        assert await running.money() == (10_000_000_000, 0)
