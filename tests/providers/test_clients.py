"""Client libraries that are too large or conflict with others: installed only for `make test-clients`."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.fake_providers.bytedance import ByteDance
from tests.fake_providers.scripted import KEY
from tests.fake_providers.server import serve_in_thread
from tests.fake_providers.together import Together
from tests.providers.calls import IMAGE_URI

pytestmark = pytest.mark.clients

HELLO = {"role": "user", "content": "Say hello."}

# ------------------------------------------------------------------------------------------------------------- Together


@pytest.fixture
def together() -> Iterator[Any]:
    with serve_in_thread(Together()) as provider:
        yield import_module("together").Together(api_key=KEY, base_url=provider.url, max_retries=0)


def test_together_draws(together: Any) -> None:
    asked = {"model": "black-forest-labs/FLUX.2-pro", "width": 64, "height": 48, "response_format": "base64"}
    made = together.images.generate(prompt="a fox", n=2, **asked)
    assert [item.type for item in made.data] == ["b64_json"] * 2
    with pytest.raises(import_module("together").UnprocessableEntityError, match="NSFW"):
        together.images.generate(prompt="nsfw", **asked)


def test_together_completes_a_chat(together: Any) -> None:
    details = together.chat.completions.create(model="openai/gpt-oss-120b", messages=[HELLO])
    assert (details.choices[0].message.content, details.usage.total_tokens) == ("Say hello.", 4)
    *_, last = together.chat.completions.create(model="openai/gpt-oss-120b", messages=[HELLO], stream=True)
    assert last.usage.total_tokens == 4


# ------------------------------------------------------------------------------------------------------------- ModelArk


@pytest.fixture
def ark() -> Iterator[ByteDance]:
    with serve_in_thread(ByteDance()) as provider:
        yield provider


@pytest.fixture
def client(ark: ByteDance) -> Any:
    return import_module("byteplussdkarkruntime").Ark(api_key=KEY, base_url=f"{ark.url}/api/v3", max_retries=0)


def test_ark_draws(client: Any) -> None:
    made = client.images.generate(model="seedream-4-5-251128", prompt="a fox", size="2560x1440", response_format="url")
    assert (made.data[0].size, made.usage.generated_images) == ("2560x1440", 1)


def begun(client: Any) -> Any:
    image = {"type": "image_url", "image_url": {"url": IMAGE_URI}, "role": "first_frame"}
    content = [{"type": "text", "text": "a fox"}, image]
    details = {"duration": 5, "resolution": "720p", "ratio": "16:9"}
    return client.content_generation.tasks.create(model="seedance-1-0-pro-250528", content=content, **details)


def test_ark_videos(client: Any) -> None:
    tasks, task = client.content_generation.tasks, begun(client)
    assert tasks.get(task_id=task.id).status == "running"
    done = tasks.get(task_id=task.id)
    assert (done.status, done.usage.completion_tokens) == ("succeeded", 108_900)
    assert done.content.video_url


def test_ark_calls_off_and_sees_failures(ark: ByteDance, client: Any) -> None:
    error = {"code": "OutputVideoSensitiveContentDetected", "message": "No."}
    ark.next_states.extend([("queued",), ("queued", {"status": "failed", "error": error})])
    tasks, waiting, refused = client.content_generation.tasks, begun(client), begun(client)
    tasks.delete(task_id=waiting.id)
    assert tasks.get(task_id=waiting.id).status == "cancelled"
    assert tasks.get(task_id=refused.id).error.code == "OutputVideoSensitiveContentDetected"
    with pytest.raises(import_module("byteplussdkarkruntime._exceptions").ArkNotFoundError):
        tasks.get(task_id="elsewhere")
