"""llama.cpp's own server through the gateway, with a small real chat model."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import openai
import pytest

from tests.ports import unused_port
from tests.servers.installing import chat_model_file, python
from tests.servers.running import RealServer, begin_chat, gateway, message, skip_unless_installed, started
from tests.stories.processes import Serving, until

pytestmark = pytest.mark.servers
KEY = "llamacpp-key"
MODEL = "llamacpp/smollm2"
LONG = "Write a very long story about a lighthouse, a fox and the sea. Never stop."


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    skip_unless_installed("llamacpp")
    port = unused_port()
    script = Path(__file__).with_name("serve_llamacpp.py")
    command = (python("llamacpp"), script, chat_model_file(), str(port), KEY)
    with started("llamacpp", command, "/health", port) as server:
        yield server


@pytest.fixture(scope="module")
def served(server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    # The usual form of such a URL ends in /v1.
    toml = '[providers.llamacpp]\nkey_env = "LLAMACPP_KEY"\n'
    environment = {"LLAMACPP_URL": f"{server.url}/v1", "LLAMACPP_KEY": KEY}
    with gateway(tmp_path_factory.mktemp("llamacpp"), toml, **environment) as serving:
        yield serving


def busy_slots(server: RealServer) -> int:
    request = Request(f"{server.url}/slots", headers={"authorization": f"Bearer {KEY}"})  # noqa: S310
    with urlopen(request, timeout=30) as response:  # noqa: S310
        return sum(slot["is_processing"] for slot in json.loads(response.read()))


def test_chats(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model=MODEL, messages=message("Name a colour."), max_completion_tokens=12)
    assert whole.choices[0].message.content
    assert whole.usage is not None
    assert whole.usage.completion_tokens <= 12

    seeded = [
        client.chat.completions.create(model=MODEL, messages=message("Tell me a word."), max_tokens=8, seed=7)
        for _ in range(2)
    ]
    assert seeded[0].choices[0].message.content == seeded[1].choices[0].message.content


def test_streams(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=MODEL,
        messages=message("Count to five."),
        max_tokens=16,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert [chunk.usage is not None for chunk in chunks if not chunk.choices] == [True]


def test_structured_output(client: openai.OpenAI) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "blue"]}},
        "required": ["colour"],
    }
    response = client.chat.completions.create(
        model=MODEL,
        messages=message("A colour, please."),
        max_tokens=40,
        response_format={"type": "json_schema", "json_schema": {"name": "colour", "schema": schema}},
    )
    assert json.loads(response.choices[0].message.content or "")["colour"] in ("red", "blue")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"messages": message("pear " * 4000)}, "context"),
        ({"messages": message("hi"), "grammar": "root ::= ("}, "grammar"),
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
            "image",
        ),
    ],
    ids=["context", "grammar", "vision"],
)
def test_what_it_rejects_is_the_callers_mistake(served: Serving, body: dict[str, Any], words: str) -> None:
    response = served.call("POST", "/compat/v1/chat/completions", {"model": MODEL, "max_tokens": 8, **body})
    assert (response.status, response.json["error"]["code"]) == (400, "INVALID_REQUEST"), response.body
    assert words in response.json["error"]["message"]


def test_a_caller_who_hangs_up_stops_a_stream(served: Serving, server: RealServer) -> None:
    until(lambda: busy_slots(server) == 0)
    body = {"model": MODEL, "messages": message(LONG), "max_tokens": 1800, "stream": True, "ignore_eos": True}
    connection = begin_chat(served, body)
    until(lambda: busy_slots(server) == 1)
    connection.getresponse().read(10)
    connection.close()
    until(lambda: busy_slots(server) == 0)


def test_a_wrong_key_is_the_operators_mistake(server: RealServer, tmp_path: Path) -> None:
    toml = '[providers.llamacpp]\nkey_env = "LLAMACPP_KEY"\n'
    with gateway(tmp_path, toml, LLAMACPP_URL=server.url, LLAMACPP_KEY="wrong") as serving:
        response = serving.call("POST", "/compat/v1/chat/completions", {"model": MODEL, "messages": message("hi")})
        assert (response.status, response.json["error"]["code"]) == (502, "UPSTREAM_ERROR"), response.body


def test_a_server_that_is_gone(server: RealServer, served: Serving) -> None:
    """The last test of this file: it ends the server in the middle of a stream."""
    body = {"model": MODEL, "messages": message(LONG), "max_tokens": 1800, "stream": True, "ignore_eos": True}
    connection = begin_chat(served, body)
    response = connection.getresponse()
    response.read(10)
    server.kill()
    rest = response.read().decode()
    connection.close()
    assert '"error"' in rest
    assert "[DONE]" not in rest
    refused = served.call("POST", "/compat/v1/chat/completions", {"model": MODEL, "messages": message("hi")})
    assert (refused.status, refused.json["error"]["code"]) == (502, "UPSTREAM_ERROR"), refused.body
