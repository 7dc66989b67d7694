"""LiteLLM's proxy behind the gateway, as a server that speaks OpenAI's API and passes others' errors on."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.fake_providers.scripted import png
from tests.ports import unused_port
from tests.servers.installing import FOLDER, python
from tests.servers.running import RealServer, gateway, skip_unless_installed, started
from tests.stories.processes import Serving

pytestmark = pytest.mark.servers
KEY = "sk-litellm"
CHATS = {
    "hello": "Hello from a mock.",
    "busy": "litellm.RateLimitError",
    "long": "litellm.ContextWindowExceededError",
    "broken": "litellm.InternalServerError",
}
# LiteLLM returns the mock response of an image model as the image's URL.
PAINTER = {"painter": "data:image/png;base64," + base64.b64encode(png(8, 8)).decode()}


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    skip_unless_installed("litellm")
    port = unused_port()
    listed = [
        {"model_name": name, "litellm_params": {"model": "openai/x", "api_key": "x", "mock_response": response}}
        for name, response in (CHATS | PAINTER).items()
    ]
    settings = {"model_list": listed, "general_settings": {"master_key": KEY}, "litellm_settings": {"num_retries": 0}}
    config = FOLDER / "litellm.yaml"
    config.write_text(json.dumps(settings))  # JSON is YAML
    command = (python("litellm").with_name("litellm"), "--config", config, "--port", str(port), "--host", "127.0.0.1")
    offline = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with started("litellm", command, "/health/liveliness", port, offline) as server:
        yield server


@pytest.fixture(scope="module")
def served(server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    lines = ['[providers.lite]\nspeaks = "openai"\nkey_env = "LITE_KEY"', f'base_url = "{server.url}/v1"']
    for name in CHATS:
        lines += ["[[providers.lite.models]]", f'id = "lite/{name}"', f'upstream = "{name}"', 'task = "chat"']
        lines.append('price = { unit = "token", input_usd = "0", output_usd = "0" }')
    lines += ["[[providers.lite.models]]", 'id = "lite/painter"', 'upstream = "painter"', 'task = "image"']
    lines.append('price = { unit = "image", usd = "0" }')
    with gateway(tmp_path_factory.mktemp("litellm"), "\n".join(lines), LITE_KEY=KEY) as serving:
        yield serving


def test_chats_and_streams(client: openai.OpenAI) -> None:
    """It sends the usage of a stream in a chunk with an empty choice; callers get it as from OpenAI."""
    messages: list[Any] = [{"role": "user", "content": "hi"}]
    whole = client.chat.completions.create(model="lite/hello", messages=messages)
    assert whole.choices[0].message.content == CHATS["hello"]
    for asks in (True, False):
        stream = client.chat.completions.create(
            model="lite/hello", messages=messages, stream=True, stream_options={"include_usage": asks}
        )
        chunks = list(stream)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == CHATS["hello"]
        assert [chunk.choices for chunk in chunks if chunk.usage] == ([[]] if asks else [])
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"


def test_makes_an_image(client: openai.OpenAI) -> None:
    made = client.images.generate(model="lite/painter", prompt="a hat", response_format="b64_json")
    assert [base64.b64decode(image.b64_json or "")[:4] for image in made.data or ()] == [b"\x89PNG"]


@pytest.mark.parametrize(
    ("model", "status", "code"),
    [
        ("lite/busy", 429, "RATE_LIMITED"),
        ("lite/long", 400, "INVALID_REQUEST"),
        ("lite/broken", 502, "UPSTREAM_ERROR"),
    ],
)
def test_errors_keep_their_meaning(served: Serving, model: str, status: int, code: str) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    response = served.call("POST", "/compat/v1/chat/completions", body)
    assert (response.status, response.json["error"]["code"]) == (status, code), response.body
