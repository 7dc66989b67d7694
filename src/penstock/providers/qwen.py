"""Qwen: Alibaba's Qwen-Image 3 on DashScope, which makes and edits images while the call waits."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.providers.convert import data_uri, each_image, on_off, pixels, size_text
from penstock.providers.dashscope_errors import code_kind, error_message, failure_kind
from penstock.providers.spec import (
    COMFY,
    File,
    Model,
    Operation,
    Price,
    Provider,
    Reply,
    Result,
    Task,
    bearer,
    complete_table,
    converted,
    emulated,
    passthrough,
    price_list,
    renamed,
)

MIN_AREA = 512 * 512
MAX_AREA = 2560 * 2560
AREA_OF_1K = 2_250_000  # outputs with more pixels cost what 2K costs
MAX_IMAGE_BYTES = 10_000_000


def read_images(reply: Reply) -> Result:
    """Read the images. An answer without any has a text in their place, or a code and a message."""
    response = reply.json
    if "output" not in response:
        kind = code_kind(response["code"]) or "broken"
        return Result(status="failed", failure_kind=kind, message=response.get("message"))
    parts = [part for choice in response["output"]["choices"] for part in choice["message"]["content"]]
    images = tuple(File(url=part["image"], content_type="image/png") for part in parts if part.get("image"))
    if images:
        return Result(files=images, upstream_id=response.get("request_id"))
    texts = " ".join(part["text"] for part in parts if part.get("text"))
    return Result(status="failed", message=texts or "Qwen made no image.", upstream_id=response.get("request_id"))


def build_body(fields: dict[str, Any]) -> dict[str, Any]:
    """One message with the images and the prompt; everything else is a parameter."""
    images: Sequence[str] = fields.pop("images", ())
    content = [*({"image": image} for image in images), {"text": fields.pop("prompt")}]
    parameters = fields.pop("parameters")
    return {"input": {"messages": [{"role": "user", "content": content}]}, "parameters": {**fields, **parameters}}


IMAGE = Operation(
    task="image",
    send="POST /api/v1/services/aigc/multimodal-generation/generation",
    read=read_images,
    adjust_body=build_body,
    params=(),
)
ROWS = (
    passthrough("prompt", required=True),
    emulated("n", to="parameters.n", high=6),
    renamed("negative_prompt", to="parameters.negative_prompt"),
    renamed("seed", to="parameters.seed", low=0, high=2**31 - 1),
    converted("prompt_enhancement", to="parameters.prompt_extend", convert=on_off(True, False)),
    converted(
        "frame",
        to="parameters.size",
        convert=size_text(pixels(multiple=16, min_side=256, max_side=2560, min_area=MIN_AREA, max_area=MAX_AREA), "*"),
    ),
)
IMAGES = converted(
    "images",
    to="images",
    convert=each_image(data_uri),
    required=True,
    max_items=3,
    max_bytes=MAX_IMAGE_BYTES,
)


def models(name: str, upstream: str, *prices: Price) -> list[Model]:
    """A model that makes and edits images, at one price for each output and one for each input."""
    tasks: dict[Task, tuple[Any, ...]] = {"image": ROWS, "edit": (*ROWS, IMAGES)}
    return [
        Model(
            id=name,
            upstream=upstream,
            op=replace(IMAGE, task=task, params=complete_table(task, *rows)),
            prices=prices,
        )
        for task, rows in tasks.items()
    ]


price = price_list(COMFY)
PROVIDER = Provider(
    slug="qwen",
    name="Qwen",
    docs="https://www.alibabacloud.com/help/en/model-studio",
    auth=bearer,
    # A key works in one region. Set `base_url` in `[providers.qwen]` for other regions.
    base_url="https://dashscope-intl.aliyuncs.com",
    key_env="DASHSCOPE_API_KEY",
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        *models("qwen-image-3", "qwen-image-3.0", price("0.03", "image", input_usd="0.003")),
        *models(
            "qwen-image-3-pro",
            "qwen-image-3.0-pro",
            replace(price("0.075", "image", input_usd="0.003"), above=AREA_OF_1K),
            price("0.04", "image", input_usd="0.003"),
        ),
    ),
)
