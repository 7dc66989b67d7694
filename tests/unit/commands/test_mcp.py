"""`penstock mcp`: without its extra it says what to install; with it, the official client is an agent."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock import commands
from penstock.models import description
from penstock.providers import discover
from tests import sounds
from tests.fake_providers.scripted import png
from tests.ports import unused_port
from tests.stories.processes import Serving, until
from tests.unit.commands.conftest import Command
from tests.unit.commands.mcp_library import HAS_MCP


def test_agents_are_told_of_every_mode() -> None:
    """In the description of a tool, which can be read where the extra is not installed, too."""
    tools = (Path(commands.__file__).parent / "mcp_server.py").read_text()
    modes = {mode for provider in discover() for model in provider.models for mode in description.modes(model)}
    assert len(modes) > 5
    assert [mode for mode in sorted(modes) if mode not in tools] == []


@pytest.mark.skipif(HAS_MCP, reason="the extra is installed")
def test_a_missing_extra_is_named(run: Command) -> None:
    ended = run("mcp")
    assert ended.status == 1
    assert "pip install '.[mcp]'" in ended.err


@pytest.mark.clients
@pytest.mark.filterwarnings("ignore")
def test_an_agent_reads_prices_and_makes_images_and_a_video(served: Serving, tmp_path: Path) -> None:
    asyncio.run(_journey(served, tmp_path))


@pytest.mark.clients
@pytest.mark.filterwarnings("ignore")
def test_an_agent_over_http_makes_an_image_and_a_video_and_reads_no_files(served: Serving, tmp_path: Path) -> None:
    port = unused_port()
    command = [sys.executable, "-m", "penstock", "mcp", "--transport", "http", "--port", str(port)]
    with subprocess.Popen(command, env=_environment(served), stderr=subprocess.PIPE, text=True) as process:
        try:
            asyncio.run(_http_journey(f"http://127.0.0.1:{port}/mcp", port, tmp_path))
        finally:
            process.terminate()


async def _http_journey(url: str, port: int, folder: Path) -> None:
    from mcp import Client

    await asyncio.to_thread(until, lambda: _listens(port))
    progress: list[float] = []

    async def note_progress(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    async with Client(url) as client:
        wanted: dict[str, Any] = {"prompt": "a fox", "model": "atelier/sketch", "size": "64x64"}
        made = await client.call_tool("generate_image", wanted)
        assert not made.is_error, made
        assert [block.type for block in made.content] == ["text", "resource_link", "image"]
        wanted = {"prompt": "a sunrise", "model": "atelier/clip", "seconds": "1", "size": "320x180"}
        video = await client.call_tool("make_video", wanted, progress_callback=note_progress)
        assert not video.is_error, video
        assert progress, "the agent was told how far the video is"
        (folder / "in.png").write_bytes(png(64, 64))
        wanted = {"image": str(folder / "in.png"), "model": "atelier/enlarge"}
        refused = await client.call_tool("upscale_image", wanted)
        assert refused.is_error
        assert "must be an HTTPS URL or a data URI" in refused.content[0].text


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _environment(served: Serving) -> dict[str, str]:
    paths = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}
    return {"PENSTOCK_URL": served.url, "PENSTOCK_KEY": served.key, **paths}


async def _journey(served: Serving, folder: Path) -> None:
    from mcp import Client, StdioServerParameters

    environment = _environment(served)
    server = StdioServerParameters(command=sys.executable, args=["-m", "penstock", "mcp"], env=environment)
    (folder / "in.png").write_bytes(png(64, 64))
    async with Client(server) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names >= {"list_models", "estimate_cost", "generate_image", "edit_image", "upscale_image", "make_video"}

        async def call(name: str, **arguments: Any) -> list[Any]:
            result = await client.call_tool(name, arguments, progress_callback=note_progress)
            assert not result.is_error, result
            return list(result.content)

        progress: list[float] = []

        async def note_progress(done: float, total: float | None, message: str | None) -> None:
            progress.append(done)

        models = json.loads((await call("list_models", mode="text-to-image"))[0].text)
        assert "atelier/sketch" in {model["id"] for model in models}
        wanted = {"model": "atelier/sketch", "prompt": "a fox"}
        estimate = json.loads((await call("estimate_cost", kind="image", **wanted))[0].text)
        assert estimate["total_cost_micros"] == 1000

        text, link, preview = await call("generate_image", size="512x512", **wanted)
        assert (link.type, link.mime_type, preview.type) == ("resource_link", "image/png", "image")
        assert len(preview.data) < 100_000
        made = json.loads(text.text)
        assert json.loads((await call("get_request", request_id=made["id"]))[0].text)["cost"] == 0.001

        path = str(folder / "in.png")
        assert json.loads((await call("verify_file", file=path))[0].text)["verdict"] == "none"
        _, larger, _ = await call("upscale_image", image=path, model="atelier/enlarge", scale_factor=2)
        assert larger.mime_type == "image/png"
        _, video = await call("make_video", prompt="a sunrise", model="atelier/clip", seconds=1, size="320x180")
        assert video.mime_type == "video/mp4"
        assert progress, "the agent was told how far the video is"
        voices = json.loads((await call("list_voices", model="atelier/voice", search="nova"))[0].text)
        assert [voice["id"] for voice in voices] == ["nova"]
        wanted = {"text": "Hello there.", "model": "atelier/voice", "voice": "nova", "response_format": "flac"}
        spoken, sound = await call("make_speech", **wanted)
        assert (sound.mime_type, json.loads(spoken.text)["status"]) == ("audio/flac", "completed")
        (folder / "tone.wav").write_bytes(sounds.wav(1.0))
        heard = await call("transcribe_audio", audio=str(folder / "tone.wav"), model="atelier/listen")
        assert json.loads(heard[0].text)["text"] == "[sound]"
        estimate = json.loads(
            (await call("estimate_cost", kind="speech", model="atelier/voice", prompt="Hello."))[0].text
        )
        assert estimate["total_cost_micros"] == 6
        refused = await client.call_tool("generate_image", {"prompt": "a fox", "model": "nonesuch"})
        assert refused.is_error
        assert "MODEL_NOT_FOUND" in refused.content[0].text
