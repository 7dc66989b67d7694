"""Together AI: OpenAI's client against the fake provider, then the gateway."""

import json
from collections.abc import Iterator

import openai
import pytest

from penstock.errors import InvalidRequest
from tests.fake_providers.scripted import KEY
from tests.fake_providers.server import serve_in_thread
from tests.fake_providers.together import Together
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_chat, create_image, create_video, edit_image, gateway_for


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    with (
        serve_in_thread(Together()) as provider,
        openai.OpenAI(api_key=KEY, base_url=f"{provider.url}/v1", max_retries=0) as client,
    ):
        yield client


def test_client_paints(client: openai.OpenAI) -> None:
    size = {"width": 128, "height": 64, "response_format": "base64", "steps": 4}
    made = client.images.generate(model="black-forest-labs/FLUX.1-schnell", prompt="a fox", n=2, extra_body=size)
    assert made.data
    assert [bool(item.b64_json) for item in made.data] == [True, True]
    with pytest.raises(openai.UnprocessableEntityError, match="NSFW"):
        client.images.generate(model="m", prompt="nsfw", extra_body=size)


def test_client_completes_a_chat(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="zai-org/GLM-5.3", messages=[{"role": "user", "content": "Say hello."}], stream=True
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Say hello."
    assert chunks[-1].usage


async def test_images(open_gateway: OpenGateway) -> None:
    together = Together()
    async with gateway_for(open_gateway, "together", together, "/v1") as running:
        record = await create_image(running, model="flux-schnell", n=5, size="1024x1024")
        assert (record["status"], str(record["cost"])) == ("completed", "0.014155776"), "5 of 1.048576 megapixels"
        assert (await edit_image(running, model="flux-kontext-pro", size="1:1"))["status"] == "completed"
    first, second, third = (request.fields for request in together.received("generate"))
    assert first == {
        "model": "black-forest-labs/FLUX.1-schnell", "prompt": "a pear", "n": 4, "width": 1024, "height": 1024,
        "steps": 4, "response_format": "base64", "output_format": "png",
    }  # fmt: skip
    assert (second["n"], third["image_url"]) == (1, IMAGE_URI)


async def test_flux_2_takes_several_images_and_no_negative_prompt(open_gateway: OpenGateway) -> None:
    together = Together()
    async with gateway_for(open_gateway, "together", together, "/v1") as running:
        record = await edit_image(running, model="flux-2-max", image=[IMAGE_URI, IMAGE_URI], size="1920x1088")
        assert (record["status"], str(record["cost"])) == ("completed", "0.1462272"), "2.08896 megapixels"
        with pytest.raises(InvalidRequest, match="negative_prompt"):
            await create_image(running, model="flux-2-pro", negative_prompt="rain")
    (sent,) = (request.fields for request in together.received("generate"))
    assert (sent["model"], sent["reference_images"]) == ("black-forest-labs/FLUX.2-max", [IMAGE_URI, IMAGE_URI])


async def test_videos(open_gateway: OpenGateway) -> None:
    """The video is behind a redirect. A job that does not say what it cost is charged by the table."""
    together = Together()
    image = {"image_url": IMAGE_URI}
    async with gateway_for(open_gateway, "together", together, "/v1") as running:
        video = await create_video(running, model="seedance-2.5", seconds=6, resolution="480p", input_reference=image)
        assert (video["status"], str(video["metadata"]["cost"])) == ("completed", "0.69")
        together.next_states.append(("queued", {"status": "failed", "error": {"message": "Output was flagged."}}))
        refused = await create_video(running, model="seedance-2", aspect_ratio="9:16", resolution="4K")
        assert refused["error"]["code"] == "CONTENT_POLICY_VIOLATION"
        with pytest.raises(InvalidRequest, match="generate_audio"):
            await create_video(running, model="seedance-2", generate_audio=False)
    first, second = (request.fields for request in together.received("create_video"))
    frame = {"input_image": IMAGE_URI.partition(",")[2], "frame": "first"}
    assert first == {
        "model": "ByteDance/Seedance-2.5", "prompt": "a train", "seconds": "6", "resolution": "480p",
        "media": {"frame_images": [frame]},
    }  # fmt: skip
    assert (second["ratio"], second["resolution"], second["seconds"]) == ("9:16", "4k", "4")


async def test_wan_takes_ratios_and_one_resolution(open_gateway: OpenGateway) -> None:
    together = Together()
    async with gateway_for(open_gateway, "together", together, "/v1") as running:
        video = await create_video(running, model="wan-2.7", seconds=2, size="9:16", negative_prompt="rain", seed=7)
        assert (video["status"], str(video["metadata"]["cost"])) == ("completed", "0.2")
    assert together.received("create_video")[0].fields == {
        "model": "Wan-AI/wan2.7-t2v", "prompt": "a train", "seconds": "2", "ratio": "9:16", "resolution": "720P",
        "negative_prompt": "rain", "seed": 7,
    }  # fmt: skip


async def test_videos_from_frames_and_from_references(open_gateway: OpenGateway) -> None:
    together = Together()
    frames = [{"image_url": IMAGE_URI, "role": role} for role in ("first_frame", "last_frame")]
    references = [{"image_url": IMAGE_URI, "role": "reference"}] * 2
    async with gateway_for(open_gateway, "together", together, "/v1") as running:
        for inputs in (frames, references):
            video = await create_video(running, model="seedance-2", seconds=1, input_reference=inputs)
            assert video["status"] == "completed", video
    first, second = (request.fields for request in together.received("create_video"))
    image = IMAGE_URI.partition(",")[2]
    assert first["media"] == {
        "frame_images": [{"input_image": image, "frame": "first"}, {"input_image": image, "frame": "last"}]
    }
    assert second["media"] == {"reference_images": [image, image]}
    assert (first["seconds"], second["seconds"]) == ("4", "4"), "the shortest that it makes"


async def test_fields_of_its_own_that_cost_money_are_refused(open_gateway: OpenGateway) -> None:
    together = Together()
    async with gateway_for(open_gateway, "together", together, "/v1") as running:
        for name, value in (("steps", 50), ("image_loras", [{"path": "x", "scale": 1}])):
            with pytest.raises(InvalidRequest, match=name):
                await create_image(running, model="flux-2-pro", **{name: value})
        for name in ("media", "settings"):
            with pytest.raises(InvalidRequest, match=name):
                await create_video(running, model="seedance-2", **{name: {}})
    assert not together.received("generate")
    assert not together.received("create_video")


async def test_unfit_images(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "together", Together(), "/v1") as running:
        record = await create_image(running, model="flux-schnell", prompt="nsfw")
        assert record["error_code"] == "CONTENT_POLICY_VIOLATION"
        assert await running.money() == (10_000_000_000, 0)


async def test_chats(open_gateway: OpenGateway) -> None:
    together = Together()
    async with gateway_for(open_gateway, "together", together, "/v1") as running:
        text, record = await create_chat(running, model="z-ai/glm-5.3", stop=".", user="u-17", logprobs=False)
        assert json.loads(text)["choices"][0]["message"]["content"] == "Name a colour."
        assert str(record["cost"]) == "0.0000174"  # 3 at 1.4 and 3 at 4.4 dollars a million
        _, record = await create_chat(running, model="z-ai/glm-5.3", stream=True)
        assert str(record["cost"]) == "0.0000174"
    assert together.received("chat")[0].fields["stop"] == ["."]
