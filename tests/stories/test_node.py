"""OpenAI's client for Node and the AI SDK against the gateway, and another reader of Content Credentials; run by
`make test-node`.
"""

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from penstock.provenance.seal import seal_image
from penstock.store.base import Dialect
from tests.fake_providers.scripted import ScriptedProvider, mask
from tests.signed_files import damaged, own_signing, picture, plan, signed_by_vendor
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


@pytest.mark.parametrize("form", ["png", "jpeg", "avif"])
def test_a_reader_that_shares_no_code_with_ours_agrees(packages: Path, tmp_path: Path, form: str) -> None:
    signing = own_signing(trusts_vendor=False)
    content_type = f"image/{form}"
    signed = seal_image(picture(form), content_type, plan(signing, has_seal=False), signing.sign)["data"]
    vendors = signed_by_vendor(picture(form), content_type)
    to: Any = ("png" if form == "jpeg" else "jpeg", 90)
    carried = seal_image(vendors, content_type, plan(signing, has_seal=True), signing.sign, to)["data"]
    files = {"signed": signed, "changed": damaged(signed), "carried": carried}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    command = ["node", "provenance.mjs", *(str(tmp_path / name) for name in files)]
    made = subprocess.run(command, cwd=packages, capture_output=True, text=True, timeout=60, check=False)
    assert made.returncode == 0, made.stderr
    found = {Path(file).name: result for file, result in json.loads(made.stdout).items()}
    assert found["signed"] == {"manifests": 1, "valid": True, "problems": []}
    assert found["changed"]["valid"] is False
    assert "Hash.mismatch" in found["changed"]["problems"][0]
    assert found["carried"] == {"manifests": 2, "valid": True, "problems": []}
