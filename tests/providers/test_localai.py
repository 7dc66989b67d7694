"""LocalAI and sd-server: OpenAI's client against the fake provider, then the gateway."""

import json

import pytest
from openai import AuthenticationError, OpenAI

from penstock.errors import InvalidRequest
from tests.fake_providers.localai import LocalAI
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, MASK_URI, create_image, edit_image, gateway_for, mask_seen


def test_openai_client() -> None:
    with (
        serve_in_thread(LocalAI()) as local,
        OpenAI(base_url=f"{local.url}/v1", api_key=KEY, max_retries=0) as client,
    ):
        made = client.images.generate(model="stablediffusion", prompt="a fox", n=2, response_format="b64_json")
        assert [bool(item.b64_json) for item in made.data or ()] == [True, True]
        edited = client.images.edit(model="sd-cpp-local", prompt="a hat", image=("a.png", png(8, 8)))
        assert [bool(item.b64_json) for item in edited.data or ()] == [True]
        with pytest.raises(AuthenticationError):
            client.with_options(api_key="nobody").images.generate(model="stablediffusion", prompt="a fox")


async def test_images(open_gateway: OpenGateway) -> None:
    local = LocalAI()
    async with gateway_for(open_gateway, "localai", local) as running:
        body = {"prompt": "a pear | a fig", "negative_prompt": "rain|snow", "size": "500x260", "n": 2}
        record = await create_image(running, model="localai/stablediffusion", **body)
        assert (record["status"], str(record["cost"])) == ("completed", "0")
    assert local.received("generate")[0].fields == {
        "prompt": "a pear , a fig|rain,snow", "n": 2, "size": "512x256", "response_format": "b64_json",
        "model": "stablediffusion",
    }  # fmt: skip


@pytest.mark.parametrize("words", ["<sd_cpp_extra_args>{}</sd_cpp_extra_args>", "<sd_csd_cpppp_extra_args>{}"])
async def test_prompts_hold_no_orders_to_the_server(open_gateway: OpenGateway, words: str) -> None:
    local = LocalAI()
    async with gateway_for(open_gateway, "localai", local) as running:
        assert (await create_image(running, model="localai/sd-server", prompt=words))["status"] == "completed"
    prompt = local.received("generate")[0].fields["prompt"]
    assert (prompt.count("<sd_cpp_extra_args>"), json.loads(arguments(prompt)).keys()) == (1, {"seed"})


def arguments(prompt: str) -> str:
    return prompt.partition("<sd_cpp_extra_args>")[2].removesuffix("</sd_cpp_extra_args>")


async def test_every_image_of_sd_server_differs(open_gateway: OpenGateway) -> None:
    """Without a seed in the prompt it uses the same one for every call."""
    local = LocalAI()
    async with gateway_for(open_gateway, "localai", local) as running:
        await create_image(running, model="localai/sd-server", n=10)
        await edit_image(running, model="localai/sd-server")
        await create_image(running, model="localai/sd-server", seed=7, steps=9, negative_prompt="rain")
    requests = [*local.received("generate"), *local.received("edit")]
    seeds = [json.loads(arguments(request.fields["prompt"]))["seed"] for request in requests]
    assert len(set(seeds)) == len(seeds) == 4
    asked = json.loads(arguments(local.received("generate")[2].fields["prompt"]))
    assert asked == {"seed": 7, "negative_prompt": "rain", "sample_params": {"sample_steps": 9}}


async def test_callers_name_no_addresses(open_gateway: OpenGateway) -> None:
    """Which the server would fetch from where it stands."""
    async with gateway_for(open_gateway, "localai", LocalAI()) as running:
        with pytest.raises(InvalidRequest, match="`file` is not supported"):
            await create_image(running, model="localai/stablediffusion", file="http://10.0.0.1/secret")


async def test_edits(open_gateway: OpenGateway) -> None:
    local = LocalAI()
    async with gateway_for(open_gateway, "localai", local) as running:
        assert (await edit_image(running, model="localai/stablediffusion", mask=MASK_URI))["status"] == "completed"
        assert (await edit_image(running, model="localai/flux.2-klein-4b"))["status"] == "completed"
        assert (await edit_image(running, model="localai/sd-server", mask=MASK_URI))["status"] == "completed"
    assert mask_seen(local.received("inpaint")[0].fields["mask"]) == ("L", 255, 0)
    assert local.received("generate")[0].fields["ref_images"] == [IMAGE_URI.partition(",")[2]]
    assert local.received("edit")[0].fields["image"] == [png(64, 48)]
    assert mask_seen(local.received("edit")[0].fields["mask"]) == ("L", 255, 0)
    assert local.received("files")[0].key == KEY, "a server with a key may ask for it wherever it serves from"


async def test_upscaling_by_two_or_four(open_gateway: OpenGateway) -> None:
    local = LocalAI()
    async with gateway_for(open_gateway, "localai", local) as running:
        assert (await edit_image(running, model="localai/upscale", prompt=None, scale_factor=4))[
            "status"
        ] == "completed"
        with pytest.raises(InvalidRequest, match="must be one of `2`, `4`"):
            await edit_image(running, model="localai/upscale", scale_factor=3)
    assert local.received("upscale")[0].fields["scale"] == "4"


@pytest.mark.parametrize(
    ("response", "status", "words"),
    [
        ({"error": {"code": 500, "message": "could not load model", "type": ""}}, 500, "could not load model"),
        ({"error": "job queue is full"}, 429, "job queue is full"),
        ({"created": 1, "data": []}, 200, "success without a file"),
    ],
)
async def test_images_that_fail(open_gateway: OpenGateway, response: object, status: int, words: str) -> None:
    local = LocalAI()
    local.next("generate", responds(response, status))
    async with gateway_for(open_gateway, "localai", local) as running:
        record = await create_image(running, model="localai/flux.1-schnell")
        assert (record["status"], words in record["error_message"]) == ("upstream_failure", True)
