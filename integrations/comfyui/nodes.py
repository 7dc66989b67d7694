"""The nodes: images, videos and speech. What a model takes beside the inputs of a node goes into `fields`, as JSON."""

import base64
import io
import json
import wave

import comfy.model_management
import comfy.utils
import numpy as np
import torch
from comfy_api.latest import InputImpl
from PIL import Image

from .gateway import IMAGES, SOUNDS, VIDEOS, Gateway, Refused

GATEWAY = Gateway()
SEED_MAX = 2**31 - 1
FIELDS = ("STRING", {"default": "{}", "multiline": True, "tooltip": "Further fields of the call, as JSON"})
MAX_USD = ("FLOAT", {"default": 0.10, "min": 0.0, "step": 0.01, "tooltip": "A call that may cost more is not made"})
PROMPT = ("STRING", {"default": "", "multiline": True})
SEED = ("INT", {"default": 0, "min": 0, "max": SEED_MAX, "control_after_generate": True})


class _Node:
    """What all nodes share. The last output says what was made, by which model, and what it cost."""

    CATEGORY = "Penstock"
    FUNCTION = "make"

    @classmethod
    def VALIDATE_INPUTS(cls, model):  # noqa: N802 - ComfyUI's name
        """Any model may be named, also one that the list does not have yet; the gateway says if there is none."""
        return bool(model) or "Choose a model. Is the gateway running, and is PENSTOCK_KEY set?"

    @classmethod
    def _models(cls):
        return (GATEWAY.models(cls.MODES) or [""], {"tooltip": "A model of the gateway"})

    def _make(self, path, own, fields, max_usd):
        bar = comfy.utils.ProgressBar(100)
        stop = comfy.model_management.throw_exception_if_processing_interrupted
        made, files = GATEWAY.make(path, {**own, **_parsed(fields)}, max_usd, stop, bar.update_absolute)
        bar.update_absolute(100)
        metadata = made["metadata"]
        told = {"id": made["id"], "model": metadata["executed_model"], "cost_usd": metadata["cost"]}
        return json.dumps(told), files


class PenstockImage(_Node):
    """Make an image; edit the connected images; or enlarge one, with a model that does so and without a prompt."""

    MODES = frozenset({"text-to-image", "image-edit", "upscale"})
    RETURN_TYPES = ("IMAGE", "STRING")
    RETURN_NAMES = ("images", "made")

    @classmethod
    def INPUT_TYPES(cls):  # noqa: N802
        size = ("STRING", {"default": "1024x1024", "tooltip": "WIDTHxHEIGHT, or a proportion such as 16:9"})
        n = ("INT", {"default": 1, "min": 1, "max": 10})
        required = {"model": cls._models(), "prompt": PROMPT, "size": size, "n": n, "seed": SEED}
        optional = {"images": ("IMAGE",), "mask": ("MASK",), "max_usd": MAX_USD, "fields": FIELDS}
        return {"required": required, "optional": optional}

    def make(self, model, prompt, size, n, seed, images=None, mask=None, max_usd=0.10, fields="{}"):
        own = {"model": model, "prompt": prompt}
        if images is None:
            own |= {"size": size, "n": n, "seed": seed}
        elif prompt:
            own |= {"size": size, "n": n, "image": [_data_uri(image) for image in images]}
            own |= {} if mask is None else {"mask": _mask_uri(mask)}
        else:
            own["image"] = [_data_uri(images[0])]
        path = f"{IMAGES}/generations" if images is None else f"{IMAGES}/edits"
        told, files = self._make(path, {"output_format": "png", **own}, fields, max_usd)
        return (torch.stack([_tensor(file) for file in files]), told)


class PenstockVideo(_Node):
    """Make a video from a prompt, or from its first and last frame."""

    MODES = frozenset({"text-to-video", "image-to-video"})
    RETURN_TYPES = ("VIDEO", "STRING")
    RETURN_NAMES = ("video", "made")

    @classmethod
    def INPUT_TYPES(cls):  # noqa: N802
        seconds = ("FLOAT", {"default": 4.0, "min": 0.5, "max": 120.0, "step": 0.5})
        size = ("STRING", {"default": "16:9", "tooltip": "WIDTHxHEIGHT, or a proportion"})
        required = {"model": cls._models(), "prompt": PROMPT, "seconds": seconds, "size": size}
        optional = {"first_frame": ("IMAGE",), "last_frame": ("IMAGE",), "max_usd": MAX_USD, "fields": FIELDS}
        return {"required": required, "optional": optional}

    def make(self, model, prompt, seconds, size, first_frame=None, last_frame=None, max_usd=0.10, fields="{}"):
        frames = (("first_frame", first_frame), ("last_frame", last_frame))
        references = [{"image_url": _data_uri(each[0]), "role": role} for role, each in frames if each is not None]
        own = {"model": model, "prompt": prompt, "seconds": f"{seconds:g}", "size": size}
        told, files = self._make(VIDEOS, {**own, "input_reference": references or None}, fields, max_usd)
        return (InputImpl.VideoFromFile(io.BytesIO(files[0])), told)


class PenstockSpeech(_Node):
    """Speak a text."""

    MODES = frozenset({"text-to-speech"})
    RETURN_TYPES = ("AUDIO", "STRING")
    RETURN_NAMES = ("audio", "made")

    @classmethod
    def INPUT_TYPES(cls):  # noqa: N802
        required = {"model": cls._models(), "text": PROMPT, "voice": ("STRING", {"default": "alloy"})}
        return {"required": required, "optional": {"max_usd": MAX_USD, "fields": FIELDS}}

    def make(self, model, text, voice, max_usd=0.10, fields="{}"):
        own = {"model": model, "input": text, "voice": voice, "response_format": "wav"}
        told, files = self._make(f"{SOUNDS}/speech", own, fields, max_usd)
        return (_audio(files[0]), told)


# ------------------------------------------------------------------------------------------ what ComfyUI calls an image


def _parsed(fields):
    try:
        parsed = json.loads(fields or "{}")
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise Refused('`fields` must be a JSON object, such as {"quality": "hd"}.')
    return parsed


def _png_uri(image):
    file = io.BytesIO()
    image.save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _data_uri(image):
    """An image of ComfyUI: height, width, colours from 0 to 1."""
    return _png_uri(Image.fromarray((image.cpu().numpy() * 255).round().clip(0, 255).astype(np.uint8)))


def _mask_uri(mask):
    """A mask of ComfyUI is 1 where the image is to be edited; the gateway wants that transparent."""
    alpha = ((1 - mask.reshape(mask.shape[-2:]).cpu().numpy()) * 255).round().clip(0, 255).astype(np.uint8)
    image = Image.new("RGBA", (alpha.shape[1], alpha.shape[0]), "white")
    image.putalpha(Image.fromarray(alpha))
    return _png_uri(image)


def _tensor(content):
    image = Image.open(io.BytesIO(content)).convert("RGB")
    return torch.from_numpy(np.asarray(image, dtype=np.float32) / 255)


def _audio(content):
    """A sound of ComfyUI: one batch, channels, samples from -1 to 1."""
    with wave.open(io.BytesIO(content)) as sound:
        samples = np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2").astype(np.float32) / 2**15
        waveform = torch.from_numpy(samples.reshape(-1, sound.getnchannels()).T.copy()).unsqueeze(0)
        return {"waveform": waveform, "sample_rate": sound.getframerate()}
