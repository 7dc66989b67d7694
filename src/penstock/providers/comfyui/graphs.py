"""Small graphs of ComfyUI's built-in nodes, in the form its API takes, and a way to fill in what a caller wants."""

from collections.abc import Mapping
from typing import Any

Node = Mapping[str, Any]
Graph = Mapping[str, Node]
Link = tuple[str, int]  # the name of another node, and which of its outputs

FRAMES_PER_SECOND = 24


def node(kind: str, **inputs: Any) -> Node:
    return {"class_type": kind, "inputs": inputs}


def filled(graph: Graph, told: Mapping[str, Mapping[str, Any]]) -> dict[str, Node]:
    """The graph with values put into its nodes, by the node's name and its input's. Two names stand for nodes that are
    only there when they are spoken of, and one is no input but is counted in frames.
    """
    nodes, values = dict(graph), {name: dict(inputs) for name, inputs in told.items()}
    if "hole" in values:  # a picture whose transparent part is to be painted
        nodes |= {
            "hole": node("LoadImage"),
            "masked": node("SetLatentNoiseMask", samples=("canvas", 0), mask=("hole", 1)),
        }
        values.setdefault("sampler", {})["latent_image"] = ("masked", 0)
    if "start" in values:  # a picture that a film begins with
        nodes |= {"start": node("LoadImage")}
        values.setdefault("canvas", {})["start_image"] = ("start", 0)
    seconds = values.get("canvas", {}).pop("seconds", None)
    if seconds is not None:
        values["canvas"]["length"] = FRAMES_PER_SECOND * seconds + 1
    return {name: {**one, "inputs": {**one["inputs"], **values.get(name, {})}} for name, one in nodes.items()}


# ---------------------------------------------------------------------------------------------------------------- parts


def sampled(model: Link, clip: Link, vae: Link, canvas: Node, **sampler: Any) -> Graph:
    """What pictures and films have in common: words, a canvas, a sampler, and the way back to pixels."""
    return {
        "words": node("CLIPTextEncode", text="", clip=clip),
        "unwanted": node("CLIPTextEncode", text="", clip=clip),
        "canvas": canvas,
        "sampler": node(
            "KSampler",
            model=model,
            positive=("words", 0),
            negative=("unwanted", 0),
            latent_image=("canvas", 0),
            **{"seed": 0, "denoise": 1.0, **sampler},
        ),
        "pixels": node("VAEDecode", samples=("sampler", 0), vae=vae),
    }


def drawn(checkpoint: str, canvas: Node, **sampler: Any) -> Graph:
    """By a checkpoint that holds everything. A preview is swept away when the server starts anew."""
    return {
        "model": node("CheckpointLoaderSimple", ckpt_name=checkpoint),
        **sampled(("model", 0), ("model", 1), ("model", 2), canvas, **sampler),
        "result": node("PreviewImage", images=("pixels", 0)),
    }


# --------------------------------------------------------------------------------------------------------------- graphs

SDXL_FILE = "sd_xl_base_1.0.safetensors"
FLUX_FILE = "flux1-schnell-fp8.safetensors"
ESRGAN_FILE = "RealESRGAN_x4plus.pth"
WAN_FILE = "wan2.2_ti2v_5B_fp16.safetensors"

_BLANK = node("EmptyLatentImage", width=1024, height=1024, batch_size=1)
_CAREFUL = {"steps": 25, "cfg": 7.0, "sampler_name": "dpmpp_2m", "scheduler": "karras"}

SDXL = drawn(SDXL_FILE, _BLANK, **_CAREFUL)
SDXL_EDIT = {
    "picture": node("LoadImage"),
    **drawn(SDXL_FILE, node("VAEEncode", pixels=("picture", 0), vae=("model", 2)), **_CAREFUL, denoise=0.75),
}
FLUX_SCHNELL = drawn(FLUX_FILE, _BLANK, steps=4, cfg=1.0, sampler_name="euler", scheduler="simple")
ENLARGED = {
    "model": node("UpscaleModelLoader", model_name=ESRGAN_FILE),
    "picture": node("LoadImage"),
    "large": node("ImageUpscaleWithModel", upscale_model=("model", 0), image=("picture", 0)),
    "fitted": node("ImageScaleBy", image=("large", 0), upscale_method="lanczos", scale_by=1.0),
    "result": node("PreviewImage", images=("fitted", 0)),
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
    "film": node("CreateVideo", images=("pixels", 0), fps=float(FRAMES_PER_SECOND)),
    # Films have no preview: they stay in the server's output folder until somebody sweeps it.
    "result": node("SaveVideo", video=("film", 0), filename_prefix="video/penstock", format="mp4", codec="h264"),
}
