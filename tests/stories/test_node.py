"""OpenAI's client for Node and the AI SDK against the gateway; run by `make test-node`."""

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from penstock.store.base import Dialect
from tests.fake_providers.scripted import ScriptedProvider, mask
from tests.stories.processes import Serving

pytestmark = [pytest.mark.node, pytest.mark.timeout(300)]
HERE = Path(__file__).with_name("node")


@pytest.fixture
def dialect() -> Dialect:
    """The database makes no difference here."""
    return "sqlite"


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the locked versions beside the scripts, in a separate folder."""
    folder = tmp_path_factory.mktemp("node")
    for file in HERE.iterdir():
        shutil.copy(file, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return folder


def ran(packages: Path, script: str, served: Serving) -> Any:
    shape = base64.b64encode(mask(1024, 1024)).decode()
    environment = {**os.environ, "BASE_URL": served.base_url, "API_KEY": served.key, "MASK": shape}
    made = subprocess.run(
        ["node", script], cwd=packages, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout.splitlines()[-1])


def test_openai(packages: Path, served: Serving, lab: ScriptedProvider) -> None:
    saw = ran(packages, "openai.mjs", served)
    assert {"image-1", "edit-1", "video-1", "lab/chat"} <= set(saw["models"])
    assert saw["fetched"] == [200, "image/png"]
    assert (saw["images"], saw["magic"], saw["edited"]) == (2, "PNG", True)
    assert (saw["several"], saw["masked"]) == (2, ["1024x1024", "WEBP"])
    assert [len(received.fields["image"]) for received in lab.edits.received] == [1, 2, 1]
    assert [received.fields.get("mask") is not None for received in lab.edits.received] == [False, False, True]
    assert saw["promised"] == "queued"
    assert saw["video"][1:] == ["completed", "4", "1280x720"]
    assert saw["listed"] == [saw["video"][0]]
    assert saw["content"] == "ftyp"
    assert saw["form"] == {"echo": "pear"}
    assert saw["tools"] == [{"name": "weather", "arguments": '{"city": "echo"}'}] * 2
    assert saw["requestId"].startswith("req_")
    assert (saw["refusal"]["status"], saw["refusal"]["code"]) == (404, "MODEL_NOT_FOUND")
    assert saw["refusal"]["id"].startswith("req_")
    assert (saw["text"], saw["streamed"]) == ("one two three", "one two three")
    assert len(lab.invoice) == 8


def test_ai_sdk(packages: Path, served: Serving, lab: ScriptedProvider) -> None:
    saw = ran(packages, "ai.mjs", served)
    assert (saw["types"], saw["magic"]) == (["image/png", "image/png"], "PNG")
    assert (saw["text"], saw["streamed"], saw["tokens"]) == ("one two three", "four five six", 6)
    assert (saw["turns"], saw["form"]) == ([{"city": "echo"}, "sunny in echo"], {"city": "echo"})
    assert saw["second"] == "seven"
    assert saw["references"] == ["sunny in echo", "eight nine", "ten"]
    roles = [message["role"] for message in lab.chats.received[-1].fields["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant", "user"]
    assert saw["refusal"]["status"] == 404
    assert "does not exist" in saw["refusal"]["message"]
