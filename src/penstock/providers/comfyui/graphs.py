"""Small graphs of ComfyUI's built-in nodes, in the form of its API, and a function that fills in values."""

from collections.abc import Mapping
from typing import Any

Node = Mapping[str, Any]
Graph = Mapping[str, Node]
Link = tuple[str, int]  # the name of another node, and the number of its output

FRAMES_PER_SECOND = 24


def node(class_type: str, **inputs: Any) -> Node:
    return {"class_type": class_type, "inputs": inputs}


def fill(graph: Graph, values: Mapping[str, Mapping[str, Any]]) -> dict[str, Node]:
    """A copy of the graph with values for the inputs of its nodes, by node and input name.

    Values for nodes that the graph does not have are ignored, with these exceptions:
    - `mask_image` adds a mask: only the transparent part of this image is changed.
    - `first_image` adds the image that a video begins with.
    - `seconds` of `latent` is converted to a number of frames.
    """
    nodes = dict(graph)
    inputs = {name: dict(node_values) for name, node_values in values.items()}
    if "mask_image" in inputs:
        nodes["mask_image"] = node("LoadImage")
        nodes["masked"] = node("SetLatentNoiseMask", samples=("latent", 0), mask=("mask_image", 1))
        inputs.setdefault("sampler", {})["latent_image"] = ("masked", 0)
    if "first_image" in inputs:
        nodes["first_image"] = node("LoadImage")
        inputs.setdefault("latent", {})["start_image"] = ("first_image", 0)
    seconds = inputs.get("latent", {}).pop("seconds", None)
    if seconds is not None:
        inputs["latent"]["length"] = FRAMES_PER_SECOND * seconds + 1
    return {name: {**part, "inputs": {**part["inputs"], **inputs.get(name, {})}} for name, part in nodes.items()}


# ---------------------------------------------------------------------------------------------------------------- parts


def sampled(model: Link, clip: Link, vae: Link, latent: Node, **sampler: Any) -> Graph:
    """The nodes that images and videos share: prompts, a latent image, a sampler and a decoder."""
    return {
        "prompt": node("CLIPTextEncode", text="", clip=clip),
        "negative_prompt": node("CLIPTextEncode", text="", clip=clip),
        "latent": latent,
        "sampler": node(
            "KSampler",
            model=model,
            positive=("prompt", 0),
            negative=("negative_prompt", 0),
            latent_image=("latent", 0),
            **{"seed": 0, "denoise": 1.0, **sampler},
        ),
        "pixels": node("VAEDecode", samples=("sampler", 0), vae=vae),
    }


def image_graph(checkpoint: str, latent: Node, **sampler: Any) -> Graph:
    """An image from one checkpoint file. The output is a preview, which the server deletes when it restarts."""
    return {
        "model": node("CheckpointLoaderSimple", ckpt_name=checkpoint),
        **sampled(("model", 0), ("model", 1), ("model", 2), latent, **sampler),
        "result": node("PreviewImage", images=("pixels", 0)),
    }


# --------------------------------------------------------------------------------------------------------------- graphs

SDXL_FILE = "sd_xl_base_1.0.safetensors"
FLUX_FILE = "flux1-schnell-fp8.safetensors"
ESRGAN_FILE = "RealESRGAN_x4plus.pth"
WAN_FILE = "wan2.2_ti2v_5B_fp16.safetensors"

_EMPTY = node("EmptyLatentImage", width=1024, height=1024, batch_size=1)
_SDXL_SAMPLER = {"steps": 25, "cfg": 7.0, "sampler_name": "dpmpp_2m", "scheduler": "karras"}
_ENCODED_INPUT = node("VAEEncode", pixels=("input_image", 0), vae=("model", 2))

SDXL = image_graph(SDXL_FILE, _EMPTY, **_SDXL_SAMPLER)
SDXL_EDIT = {
    "input_image": node("LoadImage"),
    **image_graph(SDXL_FILE, _ENCODED_INPUT, **_SDXL_SAMPLER, denoise=0.75),
}
FLUX_SCHNELL = image_graph(FLUX_FILE, _EMPTY, steps=4, cfg=1.0, sampler_name="euler", scheduler="simple")
UPSCALE = {
    "model": node("UpscaleModelLoader", model_name=ESRGAN_FILE),
    "input_image": node("LoadImage"),
    "upscaled": node("ImageUpscaleWithModel", upscale_model=("model", 0), image=("input_image", 0)),
    "scaled": node("ImageScaleBy", image=("upscaled", 0), upscale_method="lanczos", scale_by=1.0),
    "result": node("PreviewImage", images=("scaled", 0)),
}
WAN = {
    "unet": node("UNETLoader", unet_name=WAN_FILE, weight_dtype="default"),
    "model": node("ModelSamplingSD3", model=("unet", 0), shift=8.0),
    "clip": node("CLIPLoader", clip_name="umt5_xxl_fp8_e4m3fn_scaled.safetensors", type="wan"),
    "vae": node("VAELoader", vae_name="wan2.2_vae.safetensors"),
    **sampled(
        ("model", 0),
        ("clip", 0),
        ("vae", 0),
        node("Wan22ImageToVideoLatent", vae=("vae", 0), width=1280, height=704, length=121, batch_size=1),
        steps=20,
        cfg=5.0,
        sampler_name="uni_pc",
        scheduler="simple",
    ),
    "video": node("CreateVideo", images=("pixels", 0), fps=float(FRAMES_PER_SECOND)),
    # There is no preview of videos: they stay in the server's output folder until they are deleted.
    "result": node("SaveVideo", video=("video", 0), filename_prefix="video/penstock", format="mp4", codec="h264"),
}
