"""Recordings of real exchanges: what `penstock providers check --record` writes is one that the tests can run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import penstock
from tests.fake_providers.bfl import BlackForestLabs
from tests.fake_providers.ideogram import Ideogram
from tests.fake_providers.luma import Luma
from tests.fake_providers.openai import OpenAI
from tests.fake_providers.scripted import KEY
from tests.fake_providers.server import FakeProvider, serve_in_thread
from tests.providers.recordings import Recording, as_json, run_recording

CHECKED = {
    "bfl": (BlackForestLabs, "", "flux-2-pro"),
    "ideogram": (Ideogram, "", "ideogram-v3"),
    "luma": (Luma, "/v1", "luma-ray-3"),
    "openai": (OpenAI, "/v1", "gpt-image-2"),
}


@pytest.fixture(params=CHECKED)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """The provider, and the recording of a call to its simulation."""
    slug = request.param
    fake, path, model = CHECKED[slug]
    provider: FakeProvider = fake()
    with serve_in_thread(provider):
        config = tmp_path / "penstock.toml"
        config.write_text(f'[providers.{slug}]\nbase_url = "{provider.url}{path}"\nkey_env = "CHECKED_KEY"\n')
        words = ("providers", "check", slug, "--model", model, "--yes", "--record", tmp_path / "kept")
        ended = penstock(
            *words, "--data", tmp_path / "data", "--config", config, CHECKED_KEY=KEY, PENSTOCK_POLL_SECONDS_MAX="1"
        )
    assert ended.status == 0, ended
    (found,) = (tmp_path / "kept").glob("*_exchanges.json")
    return slug, found


async def test_a_real_call_becomes_a_recording_of_the_test_suite(written: tuple[str, Path]) -> None:
    slug, path = written
    content: dict[str, Any] = json.loads(path.read_text())
    ended = await run_recording(Recording(path.parent / slug / path.name, content))
    expected = {"status": "completed", **content["result"]}
    assert as_json({name: ended[name] for name in expected}) == as_json(expected)
    assert KEY not in path.read_text()
    assert "127.0.0.1" not in json.dumps([exchange["sent"] for exchange in content["exchanges"]])


def test_what_the_operator_adds_to_every_request_is_left_out(tmp_path: Path) -> None:
    """A key of another kind may be in a parameter of the URL, or in a header that the server repeats in its replies."""
    provider = OpenAI()
    with serve_in_thread(provider):
        config = tmp_path / "penstock.toml"
        config.write_text(
            f"""[providers.own]
speaks = "openai"
base_url = "{provider.url}/v1"
key_env = "CHECKED_KEY"
query = {{ code = "own secret/1" }}
headers = {{ x-gate = "own-secret-2" }}
models = [{{ id = "m", upstream = "gpt-image-2", task = "image", price = {{ unit = "image", usd = "0.01" }} }}]
"""
        )
        words = ("providers", "check", "own", "--yes", "--record", tmp_path / "kept")
        ended = penstock(*words, "--data", tmp_path / "data", "--config", config, CHECKED_KEY=KEY)
    assert ended.status == 0, ended
    (found,) = (tmp_path / "kept").glob("*_exchanges.json")
    text = found.read_text()
    assert "code=" not in text, "a changed URL has no query"
    assert not re.search(r"own[ +%].*secret|own-secret", text)
