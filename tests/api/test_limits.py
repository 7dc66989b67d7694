"""The limits of the interface: the last accepted and the first refused value of each."""

from typing import Any

import pytest

from tests.api.http_calls import checked_json, served_api
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only

CHATS = {"messages": [{"role": "user", "content": "x"}], "model": "lab/chat", "max_tokens": 5}
IMAGES = {"model": "image-1", "prompt": "x"}
VIDEOS = {"model": "video-1", "prompt": "x"}
PATHS = {"image-1": "images/generations", "video-1": "videos", "lab/chat": "chat/completions"}


@pytest.mark.parametrize(
    ("body", "field", "good", "bad"),
    [
        (VIDEOS, "n", [1, 4], [0, 5, -1, 1.5, "1", True]),
        (IMAGES, "n", [1, 10], [0, 11]),
        (VIDEOS, "negative_prompt", ["x" * 5000], ["x" * 5001]),
        (VIDEOS, "idempotency_key", ["k" * 256], ["k" * 257, "", " "]),
        (IMAGES, "output_compression", [1, 100], [0, 101]),
        (CHATS, "temperature", [0, 2, 0.5], [-0.1, 2.1]),
        (CHATS, "frequency_penalty", [-2, 2], [-2.1, 2.1]),
        (CHATS, "presence_penalty", [-2.0, 2.0], [-2.1, 2.1]),
        (CHATS, "stop", ["x", ["a", "b", "c", "d"]], [["a", "b", "c", "d", "e"], [1]]),
        (IMAGES, "webhook_url", ["https://a.example/x", "https://a.example:8443/"], ["https://a.example:444/"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_values_at_and_over_the_limits(
    open_gateway: OpenGateway, body: dict[str, Any], field: str, good: list[Any], bad: list[Any]
) -> None:
    path = f"/compat/v1/{PATHS[body['model']]}?dryRun=true"
    async with served_api(open_gateway) as api:
        for value in good:
            checked_json("Estimate", await api.call("POST", path, {**body, field: value}))
        for value in bad:
            problem = checked_json("Error", await api.call("POST", path, {**body, field: value}), 400)["error"]
            assert problem["param"].startswith(field), value


async def test_top_logprobs(open_gateway: OpenGateway) -> None:
    path = "/compat/v1/chat/completions?dryRun=true"
    async with served_api(open_gateway) as api:
        for value in (0, 20):
            checked_json("Estimate", await api.call("POST", path, {**CHATS, "logprobs": True, "top_logprobs": value}))
        for more in ({"logprobs": True, "top_logprobs": 21}, {"top_logprobs": 1}):
            response = await api.call("POST", path, {**CHATS, **more})
            assert checked_json("Error", response, 400)["error"]["param"] == "top_logprobs"


async def test_lists(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        for path in ("/v1/requests", "/v1/keys"):
            for good in (1, 100):
                assert (await api.call("GET", f"{path}?limit={good}")).status == 200
            for bad in (0, 101, -1, "x"):
                response = await api.call("GET", f"{path}?limit={bad}")
                assert checked_json("Error", response, 400)["error"]["param"] == "limit"
        for _ in range(21):
            await api.call("POST", "/v1/keys", {})
        assert len(checked_json("KeyList", await api.call("GET", "/v1/keys"))["data"]) == 20


@pytest.mark.parametrize("body", [IMAGES, VIDEOS, CHATS], ids=lambda body: body["model"])
async def test_the_header_with_the_session_id(open_gateway: OpenGateway, body: dict[str, Any]) -> None:
    """It has the limit of the field, also in the record of a call that is refused for it: lists return many of them."""
    path = f"/compat/v1/{PATHS[body['model']]}"
    async with served_api(open_gateway) as api:
        for length, status in ((256, 400), (257, 400), (30_000, 400)):
            headers = {"x-service-session-id": "s" * length}
            response = await api.call("POST", path, {**body, "n": "x", "max_tokens": "x"}, headers=headers)
            message = checked_json("Error", response, status)["error"]["message"]
            assert ("X-Service-Session-Id" in message) == (length > 256)
        records = checked_json("RequestList", await api.call("GET", "/v1/requests"))["data"]
        assert [record["session_id"] for record in records] == ["s" * 256] * 3
