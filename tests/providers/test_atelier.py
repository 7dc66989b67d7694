"""The built-in provider through a whole gateway: fields it does not know are refused by name, and mocks ignore them."""

from base64 import b64encode
from typing import Any

import pytest

from penstock.chat.endpoint import complete_chat
from penstock.errors import InvalidRequest
from penstock.generations import endpoints
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, RunningGateway

EXTRAS = ("foo", "path", "name", "progress", "image_bytes", "fps", "negative", "chance", "steps")
IMAGE = "data:image/png;base64," + b64encode(png(32, 32)).decode()
CALLS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "image": (endpoints.make_images, "/compat/v1/images/generations", {"model": "atelier/sketch", "prompt": "a pear"}),
    "edit": (
        endpoints.edit_images,
        "/compat/v1/images/edits",
        {"model": "atelier/retouch", "prompt": "night", "image": IMAGE},
    ),
    "upscale": (endpoints.edit_images, "/compat/v1/images/edits", {"model": "atelier/enlarge", "image": IMAGE}),
    "video": (endpoints.start_video, "/compat/v1/videos", {"model": "atelier/clip", "prompt": "a train"}),
    "chat": (
        complete_chat,
        "/compat/v1/chat/completions",
        {"model": "atelier/echo", "messages": [{"role": "user", "content": "hello"}]},
    ),
}


async def refusal(running: RunningGateway, task: str, **extras: Any) -> InvalidRequest:
    endpoint, path, body = CALLS[task]
    with pytest.raises(InvalidRequest) as caught:
        await endpoint(running.gateway, running.call({**body, **extras}, endpoint=path))
    return caught.value


@pytest.mark.parametrize("task", CALLS)
async def test_an_unknown_field_is_refused_by_name(open_gateway: OpenGateway, task: str) -> None:
    async with open_gateway(disabled_providers=()) as running:
        problems = [await refusal(running, task, **{name: 1}) for name in EXTRAS]
        assert [problem.param for problem in problems] == list(EXTRAS)
        assert all(f"`{problem.param}`" in problem.message for problem in problems)
        assert await running.rows("select id from generations") == []


async def test_a_mock_of_another_model_ignores_that_model_s_own_fields(open_gateway: OpenGateway) -> None:
    """Extras that the real model would take do not reach the renderer that stands in for it."""
    extras: dict[str, Any] = dict.fromkeys(("foo", "path", "name", "progress"), "x")
    headers = {"x-service-replay": "mock"}
    async with open_gateway() as running:
        made = await running.image(headers=headers, **extras)
        assert made["metadata"]["executed_model"] == "atelier/sketch"
        call = running.call(
            {"model": "video-1", "prompt": "a train", "seconds": 1, "size": "64x64", **extras}, headers=headers
        )
        video = (await endpoints.start_video(running.gateway, call)).json
        assert (await running.wait_for_video(video["id"]))["status"] == "completed"


async def test_a_mock_of_an_upscale_whose_image_is_not_fetched(open_gateway: OpenGateway) -> None:
    """There is no image to enlarge, no prompt and no size: the mock is an image of the default size."""
    async with open_gateway() as running:
        body = {"model": "atelier/enlarge", "image": "https://images.example/a.png"}
        call = running.call(body, endpoint="/compat/v1/images/edits", headers={"x-service-replay": "mock"})
        made = (await endpoints.edit_images(running.gateway, call)).json
        assert made["size"] == "1024x1024"
