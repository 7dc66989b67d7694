"""Run in ComfyUI's environment: make a small checkpoint like Stable Diffusion 1.5 and an upscaler, of random weights.

`python make_image_models.py SOURCE_FOLDER MODELS_FOLDER`

ComfyUI recognises a model by the names and shapes of its weights. Those of the checkpoint are few: one block of the
diffusion model, and the small decoder that ComfyUI knows as TAESD. Only the text encoder has its usual size.
"""

import json
import sys
from pathlib import Path

import safetensors.torch  # type: ignore[import-not-found]  # only in that environment
import torch  # type: ignore[import-not-found]

source, models = Path(sys.argv[1]), Path(sys.argv[2])
sys.path.insert(0, str(source))
sys.argv = ["main.py", "--cpu"]  # ComfyUI reads its options when it is imported

import comfy.options  # type: ignore[import-not-found]  # noqa: E402

comfy.options.enable_args_parsing()
from comfy.clip_model import CLIPTextModel  # type: ignore[import-not-found]  # noqa: E402
from comfy.ldm.modules.diffusionmodules.openaimodel import (  # type: ignore[import-not-found]  # noqa: E402
    UNetModel,
)
from comfy.ops import disable_weight_init  # type: ignore[import-not-found]  # noqa: E402
from comfy.taesd.taesd import TAESD  # type: ignore[import-not-found]  # noqa: E402

KIND = {"dtype": torch.float32, "device": "cpu", "operations": disable_weight_init}
GROWTH = 32  # channels that each layer of the upscaler adds; the program that loads it takes no other number
WIDTH = 8  # channels of the upscaler


def save_checkpoint(file: Path) -> None:
    diffusion = UNetModel(
        image_size=32,
        in_channels=4,
        out_channels=4,
        model_channels=320,
        num_res_blocks=[1],
        channel_mult=[1],
        transformer_depth=[1],
        transformer_depth_output=[1, 1],
        transformer_depth_middle=1,
        context_dim=768,
        num_heads=8,
        use_spatial_transformer=True,
        legacy=False,
        **KIND,
    )
    text = CLIPTextModel(json.loads((source / "comfy" / "sd1_clip_config.json").read_text()), **KIND)
    parts = {"model.diffusion_model.": diffusion, "cond_stage_model.transformer.": text, "first_stage_model.": TAESD()}
    weights = {
        prefix + name: torch.empty_like(value).normal_(0, 0.05).half()
        for prefix, part in parts.items()
        for name, value in part.state_dict().items()
    }
    safetensors.torch.save_file(weights, file)


def save_upscaler(file: Path) -> None:
    """An ESRGAN that enlarges four times, as small as that goes."""
    shapes = {"conv_first": (WIDTH, 3), "conv_last": (3, WIDTH)}
    shapes |= dict.fromkeys(("conv_body", "conv_up1", "conv_up2", "conv_hr"), (WIDTH, WIDTH))
    for block in (1, 2, 3):
        for layer in range(1, 6):
            outputs = GROWTH if layer < 5 else WIDTH
            shapes[f"body.0.rdb{block}.conv{layer}"] = (outputs, WIDTH + (layer - 1) * GROWTH)
    weights = {}
    for name, (outputs, inputs) in shapes.items():
        weights[f"{name}.weight"] = torch.randn(outputs, inputs, 3, 3) / 10
        weights[f"{name}.bias"] = torch.zeros(outputs)
    torch.save({"params_ema": weights}, file)


for folder in ("checkpoints", "upscale_models"):
    (models / folder).mkdir(parents=True, exist_ok=True)
torch.manual_seed(1)
save_checkpoint(models / "checkpoints" / "tiny.safetensors")
save_upscaler(models / "upscale_models" / "RealESRGAN_x4plus.pth")
