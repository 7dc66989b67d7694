"""LocalAI, and sd-server of stable-diffusion.cpp: OpenAI's shapes on your own machine, with quirks of their own."""

from dataclasses import replace
from typing import Any

from penstock.providers.convert import each_image, first_image, size_text, pixels, plain_base64
from penstock.providers.openai_compatible import read_images, form_file
from penstock.providers.spec import (
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Task,
    bearer_if_set,
    converted,
    emulated,
    fixed,
    passthrough,
    refused,
    renamed,
    complete_table,
)


def error(reply: Reply) -> str | None:
    """One has OpenAI's envelope, the other a word and sometimes a sentence."""
    told = reply.json
    if isinstance(told["error"], dict):
        return str(told["error"]["message"])
    return str(told.get("message") or told["error"])


def plain(prompt: str) -> str:
    """A bar begins what is not wanted, and a tag holds orders to the server; callers have other ways for the former."""
    return prompt.replace("|", ",").replace("sd_cpp", "sd-cpp")


def barred(fields: dict[str, Any]) -> dict[str, Any]:
    unwanted = fields.pop("negative_prompt", None)
    return {**fields, "prompt": f"{fields['prompt']}|{unwanted}"} if unwanted else fields


def does(task: Task, path: str, *rows: Param, **more: Any) -> Operation:
    return Operation(
        task=task,
        send=f"POST /v1/images/{path}",
        read=read_images,
        safe_to_resubmit=True,
        params=complete_table(task, *rows),
        **more,
    )


PROMPT, N, INLINE = (
    converted("prompt", "prompt", plain, required=True),
    emulated("n", "n", high=4),
    fixed("response_format", "b64_json"),
)
SIZE = converted("frame", "size", size_text(pixels(multiple=64, min_side=64, max_side=2048)))
PICTURE = converted("images", "image", first_image(form_file), required=True, max_items=1)
MASK = converted("mask", "mask", form_file, required=True)
UNWANTED = converted("negative_prompt", "negative_prompt", plain)
WHITE: dict[str, Any] = {"body": "form", "settings": {"mask": "white"}}
STEPS = passthrough("step", low=1, high=150)
DRAW = does(
    "image",
    "generations",
    PROMPT,
    UNWANTED,
    N,
    SIZE,
    INLINE,
    STEPS,
    *refused("file", "files", "ref_images"),
    adjust_body=barred,
)
GUIDED = does(
    "edit",
    "generations",
    PROMPT,
    UNWANTED,
    N,
    SIZE,
    INLINE,
    STEPS,
    *refused("file", "files"),
    converted("images", "ref_images", each_image(plain_base64), required=True, max_items=4),
    adjust_body=barred,
)
INPAINT = does("edit", "inpainting", PROMPT, PICTURE, MASK, **WHITE)
ENLARGE = does("upscale", "upscale", PICTURE, renamed("scale_factor", "scale", one_of=(2, 4), default=2), body="form")
SD_DRAW = does("image", "generations", PROMPT, N, SIZE, fixed("output_format", "png"))
SD_EDIT = does(
    "edit",
    "edits",
    PROMPT,
    N,
    SIZE,
    converted("images", "image[]", each_image(form_file), required=True, max_items=4),
    replace(MASK, required=False),
    fixed("output_format", "png"),
    **WHITE,
)
FREE = (Price(unit="image", usd="0", note="your own hardware"),)
PROVIDER = Provider(
    slug="localai",
    name="LocalAI",
    docs="https://localai.io/features/image-generation",
    error_message=error,
    base_url="http://127.0.0.1:8080",
    base_url_env="LOCALAI_URL",
    auth=bearer_if_set,
    models=(  # by the names that they have in its documents and its gallery
        Model(id="localai/stablediffusion", upstream="stablediffusion", op=DRAW, prices=FREE),
        Model(id="localai/stablediffusion", upstream="stablediffusion", op=INPAINT, prices=FREE),
        Model(id="localai/flux.1-schnell", upstream="flux.1-schnell", op=DRAW, prices=FREE),
        Model(id="localai/flux.2-klein-4b", upstream="flux.2-klein-4b", op=DRAW, prices=FREE),
        Model(id="localai/flux.2-klein-4b", upstream="flux.2-klein-4b", op=GUIDED, prices=FREE),
        Model(id="localai/upscale", upstream="stable-diffusion-x4-upscaler", op=ENLARGE, prices=FREE),
        # sd-server has one model, whatever it is, and calls it this.
        Model(id="localai/sd-server", upstream="sd-cpp-local", op=SD_DRAW, prices=FREE),
        Model(id="localai/sd-server", upstream="sd-cpp-local", op=SD_EDIT, prices=FREE),
    ),
)
