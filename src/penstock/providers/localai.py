"""LocalAI, and the sd-server of stable-diffusion.cpp: OpenAI-compatible images on your own machine."""

from dataclasses import replace
from typing import Any

import msgspec

from penstock.providers.convert import each_image, first_image, pixels, plain_base64, size_text
from penstock.providers.openai_compatible import form_file, read_images
from penstock.providers.spec import (
    OWN_HARDWARE,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Task,
    bearer_if_set,
    complete_table,
    converted,
    emulated,
    fixed,
    passthrough,
    refused,
    renamed,
)


def error_message(reply: Reply) -> str | None:
    """The message of an error response: LocalAI has OpenAI's error object, sd-server a code and perhaps a message."""
    response = reply.json
    if isinstance(response["error"], dict):
        return str(response["error"]["message"])
    return str(response.get("message") or response["error"])


def safe_prompt(prompt: str) -> str:
    """The prompt without what LocalAI and sd-server read as commands: a bar (negative prompt) and the tag `sd_cpp`."""
    return prompt.replace("|", ",").replace("sd_cpp", "sd-cpp")


def positive_seed(number: int) -> int:
    """A seed that is not negative as a signed number of 32 bits; instead of a negative one, sd-server uses the time."""
    return number % 2**31


def join_prompts(fields: dict[str, Any]) -> dict[str, Any]:
    """Append the negative prompt to the prompt, after a bar."""
    negative = fields.pop("negative_prompt", None)
    return {**fields, "prompt": f"{fields['prompt']}|{negative}"} if negative else fields


def with_arguments(fields: dict[str, Any]) -> dict[str, Any]:
    """Append what sd-server takes only inside the prompt: without a seed it would make the same image every time."""
    arguments = msgspec.json.encode(fields.pop("arguments", {})).decode()
    return {**fields, "prompt": f"{fields['prompt']}<sd_cpp_extra_args>{arguments}</sd_cpp_extra_args>"}


def operation(task: Task, path: str, *rows: Param, **fields: Any) -> Operation:
    return Operation(
        task=task,
        send=f"POST /v1/images/{path}",
        read=read_images,
        safe_to_resubmit=True,
        params=complete_table(task, *rows),
        **fields,
    )


PROMPT = converted("prompt", to="prompt", convert=safe_prompt, required=True)
NEGATIVE_PROMPT = converted("negative_prompt", to="negative_prompt", convert=safe_prompt)
N = emulated("n", to="n", high=4)
SIZE = converted("frame", to="size", convert=size_text(pixels(multiple=64, min_side=64, max_side=2048)))
BASE64 = fixed("response_format", "b64_json")
PNG = fixed("output_format", "png")
STEPS = passthrough("step", low=1, high=150)
INPUT_IMAGE = converted("images", to="image", convert=first_image(form_file), required=True, max_items=1)
MASK = converted("mask", to="mask", convert=form_file, required=True)
WHITE_MASK: dict[str, Any] = {"body": "form", "settings": {"mask": "white"}}
SHARED = (PROMPT, NEGATIVE_PROMPT, N, SIZE, BASE64, STEPS)
IMAGE = operation("image", "generations", *SHARED, *refused("file", "files", "ref_images"), adjust_body=join_prompts)
REFERENCE_EDIT = operation(
    "edit",
    "generations",
    *SHARED,
    *refused("file", "files"),
    converted("images", to="ref_images", convert=each_image(plain_base64), required=True, max_items=4),
    adjust_body=join_prompts,
)
INPAINT = operation("edit", "inpainting", PROMPT, INPUT_IMAGE, MASK, **WHITE_MASK)
UPSCALE = operation(
    "upscale",
    "upscale",
    INPUT_IMAGE,
    renamed("scale_factor", to="scale", one_of=(2, 4), default=2),
    body="form",
)
SD_SERVER_ROWS = (
    PROMPT,
    converted("negative_prompt", to="arguments.negative_prompt", convert=safe_prompt),
    converted("random_seed", to="arguments.seed", convert=positive_seed),  # used unless the caller gives a seed
    renamed("seed", to="arguments.seed", low=0, high=2**31 - 1),
    renamed("steps", to="arguments.sample_params.sample_steps", low=1, high=150),
    emulated("n", to="n", high=8),
    SIZE,
    PNG,
)
SD_SERVER_IMAGE = operation("image", "generations", *SD_SERVER_ROWS, adjust_body=with_arguments)
SD_SERVER_EDIT = operation(
    "edit",
    "edits",
    *SD_SERVER_ROWS,
    converted("images", to="image[]", convert=each_image(form_file), required=True, max_items=4),
    replace(MASK, required=False),
    adjust_body=with_arguments,
    **WHITE_MASK,
)


def free_model(name: str, upstream: str, op: Operation) -> Model:
    return Model(id=name, upstream=upstream, op=op, prices=(Price(unit="image", usd="0", source=OWN_HARDWARE),))


PROVIDER = Provider(
    slug="localai",
    name="LocalAI",
    docs="https://localai.io/features/image-generation",
    error_message=error_message,
    base_url="http://127.0.0.1:8080",
    self_hosted=True,
    base_url_env="LOCALAI_URL",
    auth=bearer_if_set,
    models=(  # the names in LocalAI's documentation and gallery
        free_model("localai/stablediffusion", "stablediffusion", IMAGE),
        free_model("localai/stablediffusion", "stablediffusion", INPAINT),
        free_model("localai/flux.1-schnell", "flux.1-schnell", IMAGE),
        free_model("localai/flux.2-klein-4b", "flux.2-klein-4b", IMAGE),
        free_model("localai/flux.2-klein-4b", "flux.2-klein-4b", REFERENCE_EDIT),
        free_model("localai/upscale", "stable-diffusion-x4-upscaler", UPSCALE),
        # sd-server has one model and gives it this name.
        free_model("localai/sd-server", "sd-cpp-local", SD_SERVER_IMAGE),
        free_model("localai/sd-server", "sd-cpp-local", SD_SERVER_EDIT),
    ),
)
