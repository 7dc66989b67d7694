"""LiteLLM's proxy behind the gateway, as a server that speaks OpenAI's API and passes others' errors on."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.ports import unused_port
from tests.servers.installing import FOLDER, python
from tests.servers.running import RealServer, gateway, skip_unless_installed, started
from tests.stories.processes import Serving

pytestmark = pytest.mark.servers
KEY = "sk-litellm"
MODELS = {
    "hello": "Hello from a mock.",
    "busy": "litellm.RateLimitError",
    "long": "litellm.ContextWindowExceededError",
    "broken": "litellm.InternalServerError",
}


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    skip_unless_installed("litellm")
    port = unused_port()
    listed = [
        {"model_name": name, "litellm_params": {"model": "openai/x", "api_key": "x", "mock_response": response}}
        for name, response in MODELS.items()
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
    for name in MODELS:
        lines += ["[[providers.lite.models]]", f'id = "lite/{name}"', f'upstream = "{name}"', 'task = "chat"']
        lines.append('price = { unit = "token", input_usd = "0", output_usd = "0" }')
    with gateway(tmp_path_factory.mktemp("litellm"), "\n".join(lines), LITE_KEY=KEY) as serving:
        yield serving


@pytest.fixture
def client(served: Serving) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served.base_url, api_key=served.key, timeout=60, max_retries=0) as client:
        yield client


def test_chats_and_streams(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="lite/hello", messages=[{"role": "user", "content": "hi"}])
    assert whole.choices[0].message.content == MODELS["hello"]
    messages: list[Any] = [{"role": "user", "content": "hi"}]
    stream = client.chat.completions.create(model="lite/hello", messages=messages, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == MODELS["hello"]


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
