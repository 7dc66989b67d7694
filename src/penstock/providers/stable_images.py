"""What Stability's image models take, at Stability itself and on Bedrock."""

from typing import Any

from penstock.providers.spec import frame, passthrough

PROMPT = passthrough("prompt", required=True, max_length=10_000)
NEGATIVE_PROMPT = passthrough("negative_prompt", max_length=10_000)
SEED = passthrough("seed", low=0, high=2**32 - 2)
RATIO = frame("1:1 16:9 9:16 3:2 2:3 5:4 4:5 21:9 9:21")
STRENGTH = passthrough("strength", low=0, high=1)


def add_default_strength(fields: dict[str, Any]) -> dict[str, Any]:
    """Add the field `strength`, which a model requires with an image and callers may leave out."""
    return {"strength": 0.7, **fields}


def add_default_prompt(fields: dict[str, Any]) -> dict[str, Any]:
    """Add the field `prompt`, which two upscalers require; callers who upscale may leave it out."""
    return {"prompt": "the same image, sharp and detailed", **fields}
