"""Fireworks AI: OpenAI's client against the fake provider, then the gateway."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.fake_providers.fireworks import Fireworks
from tests.fake_providers.scripted import KEY
from tests.fake_providers.server import serve_in_thread
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_chat, create_image, edit_image, gateway_for

AT = "/inference/v1"
KONTEXT = "/workflows/accounts/fireworks/models/flux-kontext-pro"


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    with (
        serve_in_thread(Fireworks()) as provider,
        openai.OpenAI(api_key=KEY, base_url=provider.url + AT, max_retries=0) as client,
    ):
        yield client


def test_client_completes_a_chat(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="accounts/fireworks/models/glm-5p3", messages=[{"role": "user", "content": "Say hello."}], stream=True
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Say hello."
    assert chunks[-1].usage


def test_client_polls_a_job(client: openai.OpenAI) -> None:
    begun: Any = client.post(KONTEXT, body={"prompt": "a fox"}, cast_to=object)
    asked = {"id": begun["request_id"]}
    seen: list[Any] = [client.post(f"{KONTEXT}/get_result", body=asked, cast_to=object) for _ in range(2)]
    assert [response["status"] for response in seen] == ["Pending", "Ready"]
    lost: Any = client.post(f"{KONTEXT}/get_result", body={"id": "another"}, cast_to=object)
    assert lost["status"] == "Task not found"


async def test_images_at_once(open_gateway: OpenGateway) -> None:
    fireworks = Fireworks()
    async with gateway_for(open_gateway, "fireworks", fireworks, AT) as running:
        record = await create_image(running, model="flux-schnell", n=2, size="1792x1024", seed=7)
        assert (record["status"], str(record["cost"])) == ("completed", "0.0028")
    assert len(fireworks.received("paint")) == 2
    assert fireworks.received("paint")[0].fields == {
        "prompt": "a pear", "aspect_ratio": "16:9", "num_inference_steps": 4, "seed": 7,
    }  # fmt: skip


async def test_filtered_image_is_none(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "fireworks", Fireworks(), AT) as running:
        record = await create_image(running, model="flux-schnell", prompt="nsfw")
        assert record["error_code"] == "CONTENT_POLICY_VIOLATION"


async def test_images_as_jobs(open_gateway: OpenGateway) -> None:
    fireworks = Fireworks()
    async with gateway_for(open_gateway, "fireworks", fireworks, AT) as running:
        record = await edit_image(running, model="flux-kontext-max", size="16:9", prompt_enhancement="off")
        assert (record["status"], str(record["cost"])) == ("completed", "0.08")
    assert fireworks.received("submit")[0].fields == {
        "prompt": "add a hat", "input_image": IMAGE_URI, "aspect_ratio": "16:9", "prompt_upsampling": False,
        "output_format": "png",
    }  # fmt: skip
    assert {request.fields["id"] for request in fireworks.received("result")} == {"r-000001"}


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("Content Moderated", "CONTENT_POLICY_VIOLATION"),
        ("Request Moderated", "CONTENT_POLICY_VIOLATION"),
        ("Error", "ALL_PROVIDERS_EXHAUSTED"),
        ("Task not found", "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_jobs_without_output(open_gateway: OpenGateway, state: str, code: str) -> None:
    fireworks = Fireworks()
    fireworks.next_states.append(("named", "Pending", state))
    async with gateway_for(open_gateway, "fireworks", fireworks, AT) as running:
        record = await edit_image(running, model="flux-kontext-pro")
        assert (record["status"], record["error_code"]) == ("upstream_failure", code)
        assert await running.money() == (10_000_000_000, 0)


async def test_chats(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "fireworks", Fireworks(), AT) as running:
        _, record = await create_chat(running, model="z-ai/glm-5.3", stream=True)
        assert str(record["cost"]) == "0.0000174"  # 3 at 1.4 and 3 at 4.4 dollars a million
