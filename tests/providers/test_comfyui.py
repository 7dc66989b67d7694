"""ComfyUI: the gateway against a fake made after its source; there is no client library."""

import pytest

from penstock.errors import InvalidRequest
from tests.fake_providers.comfyui import ComfyUI
from tests.fake_providers.scripted import mp4, png
from tests.fake_providers.server import responds, serve
from tests.gateway import OpenGateway, RunningGateway
from tests.providers.calls import IMAGE_URI, MASK_URI, create_image, create_video, edit_image, gateway_for, mask_seen


def graphs(comfy: ComfyUI) -> list[dict[str, dict[str, dict[str, object]]]]:
    return [request.fields["prompt"] for request in comfy.received("queue")]


async def test_images(open_gateway: OpenGateway) -> None:
    comfy = ComfyUI()
    async with gateway_for(open_gateway, "comfyui", comfy) as running:
        record = await create_image(
            running, model="comfyui/sdxl", n=2, size="512x256", negative_prompt="rain", steps=30
        )
        assert (record["status"], str(record["cost"])) == ("completed", "0")
    (graph,) = graphs(comfy)
    assert graph["latent"]["inputs"] == {"width": 512, "height": 256, "batch_size": 2}
    assert (graph["prompt"]["inputs"]["text"], graph["negative_prompt"]["inputs"]["text"]) == ("a pear", "rain")
    assert graph["sampler"]["inputs"]["steps"] == 30
    assert len(comfy.received("view")) == 2


async def test_seeds_differ_unless_the_caller_gives_one(open_gateway: OpenGateway) -> None:
    """The same graph with the same seed would only give the same image again."""
    comfy = ComfyUI()
    async with gateway_for(open_gateway, "comfyui", comfy) as running:
        for response in ({}, {}, {"seed": 7}):
            await create_image(running, model="comfyui/flux-schnell", **response)
    one, other, asked = (graph["sampler"]["inputs"]["seed"] for graph in graphs(comfy))
    assert one != other
    assert asked == 7


async def test_only_fields_with_rows_reach_the_graph(open_gateway: OpenGateway) -> None:
    comfy = ComfyUI()
    stolen = {"model_1": {"ckpt_name": "stolen"}, "sampler": {"class_type": "Evil"}, "prompt_id": "mine"}
    async with gateway_for(open_gateway, "comfyui", comfy) as running:
        assert (await create_image(running, model="comfyui/sdxl", **stolen))["status"] == "completed"
        with pytest.raises(InvalidRequest, match="`graph` is set from documented parameters"):
            await create_image(running, model="comfyui/sdxl", graph={"model": {"ckpt_name": "stolen"}})
    assert "stolen" not in comfy.received("queue")[0].body.decode()
    assert comfy.received("queue")[0].fields.keys() == {"prompt", "client_id"}


async def test_a_repeated_job_has_its_outputs_again(open_gateway: OpenGateway) -> None:
    """They come from the server's cache."""
    comfy = ComfyUI()
    async with gateway_for(open_gateway, "comfyui", comfy) as running:
        records = [await edit_image(running, model="comfyui/upscale", prompt=None, n=2) for _ in range(2)]
        assert [record["status"] for record in records] == ["completed"] * 2
    assert len(comfy.received("view")) == 4, "two images for each call"


@pytest.mark.parametrize(
    ("no_jobs", "message"),
    [
        (None, "no longer knows the job"),
        (b"404: Not Found", "version 0.7 or later does"),
        (b"", "version 0.7 or later does"),
    ],
)
async def test_a_job_that_the_server_does_not_know_fails_at_once(
    open_gateway: OpenGateway, no_jobs: bytes | None, message: str
) -> None:
    comfy = ComfyUI()
    comfy.no_jobs = no_jobs
    comfy.next("show", responds({"error": "Job not found"}, 404) if no_jobs is None else serve)
    async with gateway_for(open_gateway, "comfyui", comfy) as running:
        record = await create_image(running, model="comfyui/sdxl")
        assert (record["status"], message in record["error_message"]) == ("upstream_failure", True)
    assert len(comfy.received("show")) == 1


async def test_edits_within_a_mask(open_gateway: OpenGateway) -> None:
    comfy = ComfyUI()
    async with gateway_for(open_gateway, "comfyui", comfy) as running:
        assert (await edit_image(running, model="comfyui/sdxl", mask=MASK_URI, strength=0.9))["status"] == "completed"
        assert (await edit_image(running, model="comfyui/sdxl"))["status"] == "completed"
    masked, whole = graphs(comfy)
    assert masked["sampler"]["inputs"]["latent_image"] == ["masked", 0]
    assert masked["sampler"]["inputs"]["denoise"] == 0.9
    assert ("masked" in whole, whole["sampler"]["inputs"]["latent_image"]) == (False, ["latent", 0])
    hole = comfy.images[str(masked["mask_image"]["inputs"]["image"])]
    assert mask_seen(hole) == ("RGBA", (0, 0, 0, 0), (255, 255, 255, 255)), "transparent is edited, there as here"
    assert comfy.images[str(whole["input_image"]["inputs"]["image"])] == png(64, 48)


@pytest.mark.parametrize(("factor", "share"), [(4, 1.0), (2, 0.5), (None, 1.0)])
async def test_enlarging(open_gateway: OpenGateway, factor: int | None, share: float) -> None:
    comfy = ComfyUI()
    async with gateway_for(open_gateway, "comfyui", comfy) as running:
        assert (await edit_image(running, model="comfyui/upscale", prompt=None, scale_factor=factor))[
            "status"
        ] == "completed"
    assert graphs(comfy)[0]["scaled"]["inputs"]["scale_by"] == share


async def test_videos(open_gateway: OpenGateway) -> None:
    comfy = ComfyUI()
    async with gateway_for(open_gateway, "comfyui", comfy) as running:
        video = await create_video(
            running, model="comfyui/wan-2.2-5b", seconds=3, input_reference=[{"image_url": IMAGE_URI}]
        )
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == "0"
    canvas = graphs(comfy)[0]["latent"]["inputs"]
    assert (canvas["length"], canvas["start_image"], "seconds" in canvas) == (73, ["first_image", 0], False)


@pytest.mark.parametrize("state", ["pending", "in_progress"])
async def test_calling_off(open_gateway: OpenGateway, state: str) -> None:
    comfy = ComfyUI()
    comfy.next_states.extend([(state,), ("in_progress",)])
    async with gateway_for(open_gateway, "comfyui", comfy) as running:
        ours, theirs = [await running.video(model="comfyui/wan-2.2-5b") for _ in range(2)]
        await comfy.endpoints["queue"].reached(2)
        await asked_about(running, comfy, 2)
        await running.cancel(ours.json["id"])
        assert (await running.wait_for_request(ours.json["id"]))["status"] == "cancelled"
        unfinished = [job for job in comfy.jobs.values() if job.states[0] == "in_progress"]
        assert len(unfinished) == 1, "what belongs to others goes on"
        await running.cancel(theirs.json["id"])
        await running.wait_for_request(theirs.json["id"])


async def asked_about(running: RunningGateway, comfy: ComfyUI, count: int) -> None:
    async def met() -> bool:
        return len({request.path for request in comfy.received("show")}) >= count

    await running.wait_until(met)


async def test_a_machine_without_the_model(open_gateway: OpenGateway) -> None:
    comfy = ComfyUI()
    comfy.lacks.add("sd_xl_base_1.0.safetensors")
    async with gateway_for(open_gateway, "comfyui", comfy) as running:
        record = await create_image(running, model="comfyui/sdxl")
        assert record["status"] == "upstream_failure"
        expected = "CheckpointLoaderSimple: Value not in list: sd_xl_base_1.0.safetensors"
        assert expected in record["error_message"]
        assert ".png" not in record["error_message"], "what else it has is nobody's business"


@pytest.mark.parametrize(
    ("fate", "message"),
    [
        (
            {"status": "failed", "execution_error": {"exception_message": "Out of memory."}, "outputs": {}},
            "Out of memory",
        ),
        ({"status": "failed", "outputs": {}}, "gave no reason for the failure"),
        ({"status": "completed", "outputs": {}}, "success without a file"),
    ],
)
async def test_jobs_that_fail(open_gateway: OpenGateway, fate: object, message: str) -> None:
    comfy = ComfyUI()
    comfy.next_states.append(("pending", fate))
    async with gateway_for(open_gateway, "comfyui", comfy) as running:
        record = await create_image(running, model="comfyui/flux-schnell")
        assert (record["status"], message in record["error_message"]) == ("upstream_failure", True)
