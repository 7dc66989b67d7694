"""vLLM on the processor through the gateway, with a tiny model of random weights: what it says has no meaning."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import openai
import pytest

from tests.ports import unused_port
from tests.servers.installing import python, tiny_chat_model
from tests.servers.running import RealServer, begin_chat, gateway, message, skip_unless_installed, started
from tests.stories.processes import Serving, until

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]  # the first test waits until the server has started
KEY = "vllm-key"
MODEL = "vllm/tiny"
TOML = """
[providers.vllm]
key_env = "VLLM_KEY"
responses = true

[[providers.vllm.models]]
id = "house-tiny"
upstream = "tiny"
task = "chat"
price = { unit = "token", input_usd = "0.000001", output_usd = "0.000002" }
"""
LOOK: Any = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {
            "type": "object",
            "properties": {"colour": {"enum": ["red", "blue"]}},
            "required": ["colour"],
            "additionalProperties": False,
        },
    },
}


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    skip_unless_installed("vllm")
    port = unused_port()
    command = (
        python("vllm"), "-m", "vllm.entrypoints.openai.api_server", "--model", tiny_chat_model(),
        "--served-model-name", "tiny",
        "--host", "127.0.0.1", "--port", str(port), "--api-key", KEY, "--max-model-len", "512", "--dtype", "float32",
        "--enforce-eager", "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
    )  # fmt: skip
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    with started("vllm", command, "/health", port, environment) as server:
        yield server


@pytest.fixture(scope="module")
def served(server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    # The usual form of such a URL ends in /v1.
    environment = {"VLLM_URL": f"{server.url}/v1", "VLLM_KEY": KEY}
    with gateway(tmp_path_factory.mktemp("vllm"), TOML, **environment) as serving:
        yield serving


def endless(**fields: Any) -> dict[str, Any]:
    """A call that lasts until the context is full."""
    return {"model": MODEL, "messages": message("hi"), "max_tokens": 460, "ignore_eos": True, **fields}


def running_count(server: RealServer) -> float:
    """How many calls it works on."""
    with urlopen(f"{server.url}/metrics", timeout=30) as response:  # noqa: S310
        lines = response.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("vllm:num_requests_running"))


def test_chats(client: openai.OpenAI) -> None:
    seeded = [
        client.chat.completions.create(
            model=MODEL,
            messages=message("Name a colour."),
            max_completion_tokens=12,
            seed=7,
            n=2,
            logprobs=True,
            extra_body={"top_k": 20, "chat_template_kwargs": {"enable_thinking": False}},
        )
        for _ in range(2)
    ]
    assert [len(whole.choices) for whole in seeded] == [2, 2]
    assert [choice.message.content for choice in seeded[0].choices] == [
        choice.message.content for choice in seeded[1].choices
    ]
    assert seeded[0].choices[0].logprobs is not None
    assert seeded[0].usage is not None
    assert 0 < seeded[0].usage.completion_tokens <= 24


def test_a_model_with_a_name_and_a_price(served: Serving, client: openai.OpenAI) -> None:
    """One model, by all its names: sent to the same path, at the same price, and in the list of models."""
    for model in ("house-tiny", "vllm/house-tiny", MODEL):
        assert client.chat.completions.create(model=model, messages=message("hi"), max_tokens=4).choices, model
    assert {"house-tiny", MODEL} <= {model.id for model in client.models.list()}
    records = served.call("GET", "/v1/requests?limit=3").json["data"]
    assert [record["cost"] > 0 for record in records] == [True] * 3


def test_streams(client: openai.OpenAI) -> None:
    """Many at once, each with its own usage at the end."""

    def stream(number: int) -> tuple[int, list[Any]]:
        chunks = client.chat.completions.create(
            model=MODEL,
            messages=message(f"Count to {number}."),
            max_tokens=number,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"ignore_eos": True},
        )
        return number, list(chunks)

    with ThreadPoolExecutor(8) as threads:
        for number, chunks in threads.map(stream, range(8, 24)):
            assert [chunk.usage.completion_tokens for chunk in chunks if not chunk.choices and chunk.usage] == [number]
            assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "length"


def test_structured_output(client: openai.OpenAI) -> None:
    response = client.chat.completions.create(
        model=MODEL,
        messages=message("A colour, please."),
        max_tokens=300,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "colour", "schema": LOOK["function"]["parameters"]},
        },
    )
    assert json.loads(response.choices[0].message.content or "")["colour"] in ("red", "blue")


def test_tools(client: openai.OpenAI) -> None:
    """A model that cannot speak calls it with nonsense, which the server passes on; only the name is certain.

    vLLM makes no call of a text that is empty or only spaces, which such a model may write, so several seeds are tried.
    """
    choice: Any = {"type": "function", "function": {"name": "look"}}
    calls: list[Any] = []
    for seed in range(10):
        response = client.chat.completions.create(
            model=MODEL, messages=message("Look."), max_tokens=300, tools=[LOOK], tool_choice=choice, seed=seed
        )
        if calls := list(response.choices[0].message.tool_calls or ()):
            break
        assert not (response.choices[0].message.content or "").strip(), response
    assert [call.function.name for call in calls] == ["look"]


def test_responses(client: openai.OpenAI) -> None:
    """Sent to vLLM's own /v1/responses."""
    made = client.responses.create(model=MODEL, input="Name a colour.", max_output_tokens=16)
    assert made.usage is not None
    assert 0 < made.usage.output_tokens <= 16


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"messages": message("pear " * 400)}, "context"),
        ({"max_tokens": 5000}, "max_tokens"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "no"}}}}, ""),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "What is this?"},
                            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                        ],
                    }
                ]
            },
            "multimodal",
        ),
    ],
    ids=["context", "max_tokens", "schema", "vision"],
)
def test_what_it_rejects_is_the_callers_mistake(served: Serving, body: dict[str, Any], words: str) -> None:
    usual = {"model": MODEL, "messages": message("hi"), "max_tokens": 8}
    response = served.call("POST", "/compat/v1/chat/completions", {**usual, **body})
    assert (response.status, response.json["error"]["code"]) == (400, "INVALID_REQUEST"), response.body
    assert words in response.json["error"]["message"]


def test_a_model_that_it_does_not_serve(served: Serving) -> None:
    body = {"model": "vllm/other", "messages": message("hi")}
    response = served.call("POST", "/compat/v1/chat/completions", body)
    assert (response.status, response.json["error"]["code"]) == (404, "MODEL_NOT_FOUND"), response.body


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_caller_who_hangs_up_stops_the_server(served: Serving, server: RealServer, stream: bool) -> None:
    until(lambda: running_count(server) == 0)
    connection = begin_chat(served, endless(stream=stream))
    until(lambda: running_count(server) == 1)
    connection.close()
    until(lambda: running_count(server) == 0)
    (record,) = served.call("GET", "/v1/requests?limit=1").json["data"]
    assert record["status"] != "completed", "it ran to its end before anybody hung up"


def test_a_wrong_key_is_the_operators_mistake(server: RealServer, tmp_path: Path) -> None:
    with gateway(tmp_path, TOML, VLLM_URL=server.url, VLLM_KEY="wrong") as serving:
        response = serving.call("POST", "/compat/v1/chat/completions", {"model": MODEL, "messages": message("hi")})
        assert (response.status, response.json["error"]["code"]) == (502, "UPSTREAM_ERROR"), response.body


def test_a_server_that_is_gone(server: RealServer, served: Serving) -> None:
    """The last test of this file: it ends the server in the middle of a stream."""
    connection = begin_chat(served, endless(stream=True))
    response = connection.getresponse()
    response.read(10)
    server.kill()
    rest = response.read().decode()
    connection.close()
    assert '"error"' in rest
    assert "[DONE]" not in rest
    refused = served.call("POST", "/compat/v1/chat/completions", {"model": MODEL, "messages": message("hi")})
    assert (refused.status, refused.json["error"]["code"]) == (502, "UPSTREAM_ERROR"), refused.body
