"""ComfyUI's own server through the gateway, with small models of random weights: what they show has no meaning."""

import base64
import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import openai
import pytest

from tests.fake_providers.scripted import mask as mask_image
from tests.fake_providers.scripted import png
from tests.ports import unused_port
from tests.servers.installing import COMFYUI_FOLDER, SCRIPTS, comfyui_data, python
from tests.servers.running import RealServer, gateway, skip_unless_installed, started
from tests.stories.processes import Serving, until

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]  # the first test waits until the server has started
TOML = """
[[providers.comfyui.models]]
id = "house-tiny"
checkpoint = "tiny.safetensors"
price = { unit = "image", usd = "0.01" }

[[providers.comfyui.models]]
id = "house-video"
task = "video"
workflow = "video.json"
nodes = { prompt = "text", seed = "sampler", steps = "sampler.steps", length = "latent.batch_size" }
price = { unit = "second", usd = "0.01" }
"""
VIDEO: dict[str, Any] = {
    "checkpoint": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "tiny.safetensors"}},
    "text": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["checkpoint", 1]}},
    "latent": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 64, "batch_size": 8}},
    "sampler": {
        "class_type": "KSampler",
        "inputs": {
            "model": ["checkpoint", 0], "positive": ["text", 0], "negative": ["text", 0], "latent_image": ["latent", 0],
            "seed": 1, "steps": 1, "cfg": 1.0, "sampler_name": "euler", "scheduler": "normal", "denoise": 1.0,
        },
    },
    "images": {"class_type": "VAEDecode", "inputs": {"samples": ["sampler", 0], "vae": ["checkpoint", 2]}},
    "video": {"class_type": "CreateVideo", "inputs": {"images": ["images", 0], "fps": 8.0}},
    "save": {
        "class_type": "SaveVideo",
        "inputs": {"video": ["video", 0], "filename_prefix": "video/house", "format": "mp4", "codec": "h264"},
    },
}  # fmt: skip
SLOW = 9000  # steps; nobody waits for their end
SECONDS = 120  # for a job, on a machine with much else to do
PROMPT_SECONDS = 60  # half of the time for which a job that a provider may find again is asked for


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    skip_unless_installed("comfyui")
    port = unused_port()
    folder = Path(os.environ[COMFYUI_FOLDER]).resolve()
    command = (python("comfyui"), SCRIPTS / "serve_comfyui.py", folder, comfyui_data(), str(port))
    with started("comfyui", command, "/system_stats", port, {"OMP_NUM_THREADS": "1"}) as server:
        yield server


@pytest.fixture(scope="module")
def served(server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("comfyui")
    (folder / "data").mkdir(mode=0o700)
    (folder / "data" / "video.json").write_text(json.dumps(VIDEO))
    with gateway(folder, TOML, COMFYUI_URL=server.url) as serving:
        yield serving


def made(response: Any) -> list[bytes]:
    return [base64.b64decode(image.b64_json or "") for image in response.data or ()]


def size(image: bytes) -> tuple[int, int]:
    return int.from_bytes(image[16:20], "big"), int.from_bytes(image[20:24], "big")


def create(client: openai.OpenAI, **fields: Any) -> list[bytes]:
    usual = {"model": "house-tiny", "prompt": "a fox", "size": "256x256", "response_format": "b64_json"}
    extra = {"steps": 1, **fields.pop("extra", {})}
    return made(client.images.generate(**{**usual, **fields}, extra_body=extra))


def edit(client: openai.OpenAI, mask: Any = openai.omit) -> list[bytes]:
    response = client.images.edit(
        model="house-tiny",
        image=("image.png", png(256, 256), "image/png"),
        mask=mask,
        prompt="a fox",
        response_format="b64_json",
        extra_body={"steps": 2, "strength": 0.5},
    )
    return made(response)


def start_video(served: Serving, **fields: Any) -> str:
    body = {"model": "house-video", "prompt": "a fox", "seconds": 1, **fields}
    response = served.call("POST", "/compat/v1/videos", body)
    assert response.status == 202, response.body
    return str(response.json["id"])


def video(served: Serving, name: str) -> dict[str, Any]:
    response: dict[str, Any] = served.call("GET", f"/compat/v1/videos/{name}").json
    return response


def wait_for(served: Serving, name: str, state: str, seconds: float = SECONDS) -> dict[str, Any]:
    until(lambda: video(served, name)["status"] in ("completed", "failed"), seconds)
    found = video(served, name)
    assert found["status"] == state, found
    return found


def cancel(served: Serving, name: str) -> None:
    assert served.call("DELETE", f"/compat/v1/videos/{name}").status == 204
    assert wait_for(served, name, "failed")["error"]["code"] == "CANCELLED"


def queue(server: RealServer) -> tuple[int, int]:
    """How many jobs run, and how many wait."""
    found = server.get("/queue")
    return len(found["queue_running"]), len(found["queue_pending"])


def test_images(client: openai.OpenAI) -> None:
    """Each image is another one, unless the caller gives a seed; the second of those comes from ComfyUI's cache."""
    several = create(client, n=3)
    assert [size(image) for image in several] == [(256, 256)] * 3
    again = create(client)
    assert len({sha256(image).digest() for image in (*several, *again)}) == 4
    seeded = [create(client, extra={"seed": 7}) for _ in range(2)]
    assert len(seeded[0]) == len(seeded[1]) == 1


def test_edits(client: openai.OpenAI) -> None:
    for mask in (openai.omit, ("mask.png", mask_image(256, 256), "image/png")):
        assert [size(image) for image in edit(client, mask)] == [(256, 256)]


def test_upscales_the_same_image_again(client: openai.OpenAI) -> None:
    """All but the first come from ComfyUI's cache."""
    for n in (1, 1, 2):
        response = client.images.edit(
            model="comfyui/upscale",
            image=("image.png", png(24, 16), "image/png"),
            prompt="",
            n=n,
            response_format="b64_json",
            extra_body={"scale_factor": 2},
        )
        assert [size(image) for image in made(response)] == [(48, 32)] * n


def test_videos(served: Serving) -> None:
    """The second one comes from ComfyUI's cache."""
    for _ in range(2):
        name = start_video(served, seed=7)
        wait_for(served, name, "completed")
        response = served.call("GET", f"/compat/v1/videos/{name}/content")
        assert response.body[4:8] == b"ftyp"


def test_a_missing_file_is_named(served: Serving) -> None:
    body = {"model": "comfyui/sdxl", "prompt": "a fox"}
    response = served.call("POST", "/compat/v1/images/generations", body)
    assert (response.status, response.json["error"]["code"]) == (502, "UPSTREAM_ERROR"), response.body
    assert "sd_xl_base_1.0.safetensors" in response.json["error"]["message"]


def test_cancelling(served: Serving, server: RealServer) -> None:
    """The one that waits leaves the queue and the other goes on; then the one that runs is stopped."""
    running, waiting = (start_video(served, steps=SLOW) for _ in range(2))
    until(lambda: queue(server) == (1, 1), SECONDS)
    cancel(served, waiting)
    assert queue(server) == (1, 0)
    cancel(served, running)
    until(lambda: queue(server) == (0, 0), SECONDS)


def test_a_queue_that_was_cleared(served: Serving, server: RealServer) -> None:
    """A job that somebody removed in ComfyUI's own window fails; the one that runs is not disturbed."""
    running = start_video(served, steps=SLOW)
    until(lambda: queue(server) == (1, 0), SECONDS)
    waiting = start_video(served, steps=SLOW)
    until(lambda: queue(server) == (1, 1), SECONDS)
    headers = {"content-type": "application/json"}
    with urlopen(Request(f"{server.url}/queue", b'{"clear": true}', headers), timeout=30):  # noqa: S310
        pass
    failed = wait_for(served, waiting, "failed")
    assert "no longer knows the job" in failed["error"]["message"]
    cancel(served, running)


def test_a_server_that_is_restarted(served: Serving, server: RealServer, client: openai.OpenAI) -> None:
    """ComfyUI keeps its jobs in memory: those that ran and waited are lost as soon as it answers again.

    It also deletes the images that were sent to it, so they are sent anew.
    """
    edited = edit(client)
    running = start_video(served, steps=SLOW)
    until(lambda: queue(server) == (1, 0), SECONDS)
    waiting = start_video(served, steps=SLOW)
    until(lambda: queue(server) == (1, 1), SECONDS)
    server.kill()
    server.start()
    for name in (running, waiting):
        failed = wait_for(served, name, "failed", PROMPT_SECONDS)
        assert "no longer knows the job" in failed["error"]["message"]
    assert queue(server) == (0, 0)
    assert len(edit(client)) == len(edited) == 1
