"""ComfyUI with an operator's own workflow files, checkpoints and LoRAs; AUTOMATIC1111 with the latter two."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.models.catalog import Catalog
from penstock.providers import discover
from penstock.settings import Settings
from penstock.typed_config import Misconfigured
from tests.fake_providers.a1111 import Automatic1111
from tests.fake_providers.comfyui import ComfyUI
from tests.fake_providers.scripted import KEY_ENV
from tests.fake_providers.server import FakeProvider, serving
from tests.gateway import OpenGateway, RunningGateway
from tests.providers.calls import IMAGE_URI, create_image, create_video, edit_image

# What ComfyUI's "Export (API)" writes of the workflow that it starts with.
WORKFLOW: dict[str, Any] = {
    "3": {
        "class_type": "KSampler",
        "inputs": {
            "seed": 156680208700286,
            "steps": 20,
            "cfg": 8,
            "sampler_name": "euler",
            "scheduler": "normal",
            "denoise": 1,
            "model": ["4", 0],
            "positive": ["6", 0],
            "negative": ["7", 0],
            "latent_image": ["5", 0],
        },
        "_meta": {"title": "KSampler"},
    },
    "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "house.safetensors"}},
    "5": {"class_type": "EmptyLatentImage", "inputs": {"width": 512, "height": 512, "batch_size": 1}},
    "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "old", "clip": ["4", 1]}, "_meta": {"title": "Positive"}},
    "7": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["4", 1]}, "_meta": {"title": "Negative"}},
    "8": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0], "vae": ["4", 2]}},
    "9": {"class_type": "SaveImage", "inputs": {"images": ["8", 0], "filename_prefix": "ComfyUI"}},
}
NODES = {"prompt": "Positive", "negative_prompt": "7", "size": "5", "seed": "KSampler", "cfg": "3.cfg"}
FREE = {"unit": "image", "usd": "0"}


def with_image() -> dict[str, Any]:
    graph: dict[str, Any] = json.loads(json.dumps(WORKFLOW))
    graph["10"] = {"class_type": "LoadImage", "inputs": {"image": "example.png"}, "_meta": {"title": "Start"}}
    graph["5"] = {"class_type": "VAEEncode", "inputs": {"pixels": ["10", 0], "vae": ["4", 2]}}
    return graph


def with_video() -> dict[str, Any]:
    graph = with_image()
    size = {"vae": ["4", 2], "width": 832, "height": 480, "length": 81, "batch_size": 1, "start_image": ["10", 0]}
    graph["5"] = {"class_type": "Wan22ImageToVideoLatent", "inputs": size}
    graph["8b"] = {"class_type": "CreateVideo", "inputs": {"images": ["8", 0], "fps": 16}}
    video = {"video": ["8b", 0], "filename_prefix": "v", "format": "mp4", "codec": "h264"}
    graph["9"] = {"class_type": "SaveVideo", "inputs": video}
    return graph


@asynccontextmanager
async def with_models(
    open_gateway: OpenGateway, slug: str, server: FakeProvider, *models: dict[str, Any]
) -> AsyncIterator[RunningGateway]:
    tables = [{"price": FREE, **model} for model in models]
    async with serving(server):
        changed = {"base_url": server.url, "key_env": KEY_ENV, "models": tables}
        async with open_gateway(providers={slug: changed}) as running:
            yield running


def exported(tmp_path: Path, graph: dict[str, Any]) -> str:
    path = tmp_path / "exported.json"
    path.write_text(json.dumps(graph))
    return str(path)


async def test_an_exported_workflow_makes_images(open_gateway: OpenGateway, tmp_path: Path) -> None:
    comfy = ComfyUI()
    table = {"id": "house", "task": "image", "workflow": exported(tmp_path, WORKFLOW), "nodes": NODES}
    async with with_models(open_gateway, "comfyui", comfy, table) as running:
        for fields in ({"seed": 7}, {}):
            record = await create_image(running, model="house", size="768x512", n=2, negative_prompt="rain", **fields)
            assert record["status"] == "completed"
        with pytest.raises(InvalidRequest, match="is not a parameter of this model"):
            await running.image(model="house", sampler_name="evil")
    first, second = (request.fields["prompt"] for request in comfy.received("queue"))
    assert first["5"]["inputs"] == {"width": 768, "height": 512, "batch_size": 2}
    assert (first["6"]["inputs"]["text"], first["7"]["inputs"]["text"]) == ("a pear", "rain")
    assert first["3"]["inputs"]["seed"] == 7
    assert second["3"]["inputs"]["seed"] not in (7, 156680208700286)
    assert "_meta" not in first["6"]


async def test_workflows_that_edit_and_that_make_videos(open_gateway: OpenGateway, tmp_path: Path) -> None:
    comfy = ComfyUI()
    edit = {
        "id": "touch",
        "task": "edit",
        "workflow": exported(tmp_path, with_image()),
        "nodes": {"prompt": "6", "image": "Start", "seed": "3", "strength": "3.denoise"},
    }
    async with with_models(open_gateway, "comfyui", comfy, edit) as running:
        assert (await edit_image(running, model="touch", strength=0.4))["status"] == "completed"
    graph = comfy.received("queue")[0].fields["prompt"]
    assert graph["10"]["inputs"]["image"] in comfy.images
    assert graph["3"]["inputs"]["denoise"] == 0.4
    moving = {
        "id": "moving",
        "task": "video",
        "workflow": exported(tmp_path, with_video()),
        "nodes": {"prompt": "6", "image": "10", "size": "5", "length": "5"},
        "price": {"unit": "second", "usd": "0"},
    }
    async with with_models(open_gateway, "comfyui", comfy, moving) as running:
        reference = {"image_url": IMAGE_URI}
        video = await create_video(running, model="moving", prompt="a fox", seconds=3, input_reference=reference)
        assert video["status"] == "completed"
        with pytest.raises(InvalidRequest, match="`input_reference` is required"):
            await running.video(model="moving", prompt="a fox")
    assert comfy.received("queue")[1].fields["prompt"]["5"]["inputs"]["length"] == 49


async def test_a_checkpoint_with_loras(open_gateway: OpenGateway) -> None:
    comfy = ComfyUI()
    table = {
        "id": "dream",
        "checkpoint": "dream.safetensors",
        "loras": {"detail.safetensors": 0.8, "ink.safetensors": 1},
    }
    async with with_models(open_gateway, "comfyui", comfy, table) as running:
        assert (await create_image(running, model="dream"))["status"] == "completed"
        assert (await edit_image(running, model="dream"))["status"] == "completed"
    graph = comfy.received("queue")[0].fields["prompt"]
    assert graph["model"]["inputs"]["ckpt_name"] == "dream.safetensors"
    assert graph["lora1"]["inputs"]["model"] == ["model", 0]
    assert graph["lora2"]["inputs"]["lora_name"] == "ink.safetensors"
    assert (graph["sampler"]["inputs"]["model"], graph["prompt"]["inputs"]["clip"]) == (["lora2", 0], ["lora2", 1])
    a1111 = Automatic1111()
    table = {"id": "dream", "checkpoint": "dream.safetensors", "loras": {"detail": 0.8}}
    async with with_models(open_gateway, "a1111", a1111, table) as running:
        assert (await create_image(running, model="dream", prompt="a fox"))["status"] == "completed"
    body = a1111.received("draw")[0].fields
    assert body["prompt"] == "a fox <lora:detail:0.8>"
    assert body["override_settings"] == {"sd_model_checkpoint": "dream.safetensors"}


def test_what_cannot_work_is_refused_at_the_start(tmp_path: Path) -> None:
    plain = exported(tmp_path, WORKFLOW)
    loading = tmp_path / "loading.json"
    loading.write_text(json.dumps(with_image()))
    still = tmp_path / "still.json"
    still.write_text(json.dumps({**with_video(), "8b": {"class_type": "CreateVideo", "inputs": {}}}))
    odd = tmp_path / "odd.json"
    odd.write_text(json.dumps({"nodes": [], "links": []}))
    (tmp_path / "text.json").write_text("hello")
    (tmp_path / "deaf.json").write_text(json.dumps({"4": WORKFLOW["4"]}))
    image = {"task": "image", "workflow": plain}
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("comfyui", {"task": "image", "workflow": "gone.json"}, "gone.json cannot be read"),
        ("comfyui", {"task": "image", "workflow": "text.json"}, "is not a JSON object"),
        ("comfyui", {"task": "image", "workflow": "odd.json"}, 'export it with "Export \\(API\\)"'),
        ("comfyui", {"task": "image", "workflow": "deaf.json"}, "no node that saves"),
        ("comfyui", {"workflow": plain}, "a workflow needs task"),
        ("comfyui", image, "needs nodes.prompt"),
        ("comfyui", {**image, "nodes": {"prompt": "66"}}, "no node 66; there are 3 \\(KSampler\\), 4"),
        ("comfyui", {**image, "nodes": {"prompt": "5"}}, "has no input text or .*; it has width, height, batch_size"),
        ("comfyui", {**image, "nodes": {"prompt": "6.clip"}}, "is connected to another node"),
        ("comfyui", {**image, "nodes": {"prompt": "6", "image": "6"}}, "takes no image"),
        ("comfyui", {"task": "edit", "workflow": plain, "nodes": {"prompt": "6"}}, "needs nodes.image"),
        ("comfyui", {**image, "nodes": {"prompt": "6", "length": "5"}}, "are for videos"),
        (
            "comfyui",
            {"task": "video", "workflow": "still.json", "nodes": {"prompt": "6", "length": "5"}},
            "needs fps",
        ),
        ("comfyui", {**image, "nodes": {"prompt": "6"}, "checkpoint": "x"}, "in its own nodes"),
        ("comfyui", {"task": "video", "checkpoint": "x"}, "makes or edits images like one of comfyui/sdxl"),
        ("a1111", {**image, "nodes": {"prompt": "6"}}, "a workflow is for ComfyUI"),
        ("a1111", {"task": "upscale", "checkpoint": "x"}, "a checkpoint can do image and edit"),
        ("a1111", {"loras": {"a>b": 1}}, "has one of < > : in it"),
        ("localai", {"task": "image", "checkpoint": "x"}, "takes no workflow, checkpoint or loras"),
    ]
    for slug, table, reason in cases:
        written = {slug: {"models": [{"id": "mine", "price": FREE, **table}]}}
        with pytest.raises(Misconfigured, match=reason):
            Catalog(discover(), Settings(data=tmp_path, providers=written), {})
