"""Fireworks AI: OpenAI's client, for which it offers itself, against the simulated vendor; then the whole gateway."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.house import OpenHouse
from tests.providers.journeys import PICTURE, edit, house_of, image, talk
from tests.upstreams.fireworks import Fireworks
from tests.upstreams.lab import KEY
from tests.upstreams.server import serving_beside

AT = "/inference/v1"
KONTEXT = "/workflows/accounts/fireworks/models/flux-kontext-pro"


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    with (
        serving_beside(Fireworks()) as vendor,
        openai.OpenAI(api_key=KEY, base_url=vendor.url + AT, max_retries=0) as client,
    ):
        yield client


def test_client_talks(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="accounts/fireworks/models/glm-5p3", messages=[{"role": "user", "content": "Say hello."}], stream=True
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Say hello."
    assert chunks[-1].usage


def test_client_asks_after_a_job(client: openai.OpenAI) -> None:
    begun: Any = client.post(KONTEXT, body={"prompt": "a fox"}, cast_to=object)
    asked = {"id": begun["request_id"]}
    seen: list[Any] = [client.post(f"{KONTEXT}/get_result", body=asked, cast_to=object) for _ in range(2)]
    assert [one["status"] for one in seen] == ["Pending", "Ready"]
    lost: Any = client.post(f"{KONTEXT}/get_result", body={"id": "another"}, cast_to=object)
    assert lost["status"] == "Task not found"


async def test_pictures_at_once(open_house: OpenHouse) -> None:
    fireworks = Fireworks()
    async with house_of(open_house, "fireworks", fireworks, AT) as house:
        record = await image(house, model="flux-schnell", n=2, size="1792x1024", seed=7)
        assert (record["status"], str(record["cost"])) == ("completed", "0.0028")
    assert len(fireworks.heard("paint")) == 2
    assert fireworks.heard("paint")[0].fields == {
        "prompt": "a pear", "aspect_ratio": "16:9", "num_inference_steps": 4, "seed": 7,
    }  # fmt: skip


async def test_filtered_picture_is_none(open_house: OpenHouse) -> None:
    async with house_of(open_house, "fireworks", Fireworks(), AT) as house:
        record = await image(house, model="flux-schnell", prompt="nsfw")
        assert record["error_code"] == "CONTENT_POLICY_VIOLATION"


async def test_pictures_as_jobs(open_house: OpenHouse) -> None:
    fireworks = Fireworks()
    async with house_of(open_house, "fireworks", fireworks, AT) as house:
        record = await edit(house, model="flux-kontext-max", size="16:9", prompt_enhancement="off")
        assert (record["status"], str(record["cost"])) == ("completed", "0.08")
    assert fireworks.heard("submit")[0].fields == {
        "prompt": "add a hat", "input_image": PICTURE, "aspect_ratio": "16:9", "prompt_upsampling": False,
        "output_format": "png",
    }  # fmt: skip
    assert {one.fields["id"] for one in fireworks.heard("result")} == {"r-000001"}


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("Content Moderated", "CONTENT_POLICY_VIOLATION"),
        ("Request Moderated", "CONTENT_POLICY_VIOLATION"),
        ("Error", "ALL_PROVIDERS_EXHAUSTED"),
        ("Task not found", "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_jobs_that_make_nothing(open_house: OpenHouse, state: str, code: str) -> None:
    fireworks = Fireworks()
    fireworks.fates.append(("named", "Pending", state))
    async with house_of(open_house, "fireworks", fireworks, AT) as house:
        record = await edit(house, model="flux-kontext-pro")
        assert (record["status"], record["error_code"]) == ("upstream_failure", code)
        assert await house.money() == (10_000_000_000, 0)


async def test_chats(open_house: OpenHouse) -> None:
    async with house_of(open_house, "fireworks", Fireworks(), AT) as house:
        _, record = await talk(house, model="z-ai/glm-5.3", stream=True)
        assert str(record["cost"]) == "0.0000174"  # 3 at 1.4 and 3 at 4.4 dollars a million
