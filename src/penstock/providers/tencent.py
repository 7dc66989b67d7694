"""Tencent: Hunyuan images that are made and edited while the call waits, and open chat models, on TokenHub.

Tencent's older API with signed requests, `hunyuan.tencentcloudapi.com`, was shut down on 2026-09-30.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.providers import openai_compatible
from penstock.providers.chat_models import DEVELOPER_AS_SYSTEM, MAX_TOKENS, chat_models, chat_operation
from penstock.providers.convert import data_uri, each_image, pixels, size_text
from penstock.providers.spec import (
    LITELLM,
    FailureKind,
    File,
    Model,
    Operation,
    Param,
    Provider,
    Reply,
    Result,
    Source,
    Task,
    bearer,
    complete_table,
    converted,
    passthrough,
    price_list,
)

AREA_OF_2K = 2048 * 2048  # outputs with more pixels are enlarged by the model, and cost more


def read_image(reply: Reply) -> Result:
    """Read the image. A prompt that is refused may be answered with status 200 and an error."""
    response = reply.json
    if error := response.get("error"):
        kind: FailureKind = "refused" if openai_compatible.is_refusal(error) else "broken"
        return Result(status="failed", failure_kind=kind, message=error.get("message"))
    images = [choice["delta"]["image"] for choice in response["choices"] if choice["delta"].get("image")]
    return Result(
        files=tuple(File(url=image["url"], content_type="image/png") for image in images),
        upstream_id=response.get("id"),
    )


def failure_kind(reply: Reply) -> FailureKind | None:
    """With status 422 Tencent refuses content, of the request or of what was made."""
    return "refused" if reply.status == 422 else openai_compatible.failure_kind(reply)


def build_message(fields: dict[str, Any]) -> dict[str, Any]:
    """One message with the prompt and the images."""
    images: Sequence[str] = fields.pop("images", ())
    text = {"type": "text", "text": fields.pop("prompt")}
    content = [text, *({"type": "image_url", "image_url": {"url": image}} for image in images)]
    return {**fields, "messages": [{"role": "user", "content": content}]}


def image_model(task: Task, *rows: Param) -> Model:
    op = Operation(
        task=task,
        send="POST /wand/hunyuan-image/v35-generation",
        read=read_image,
        adjust_body=build_message,
        params=complete_table(task, *ROWS, *rows),
        priced_extras=frozenset({"messages", "generate_max_pixels", "use_search_tool"}),
    )
    prices = (replace(price("0.032", "image"), above=AREA_OF_2K), price("0.024", "image"))
    return Model(
        id="hy-image-3.5-preview", upstream="hy-image-v3.5-preview", name="Hunyuan Image 3.5", op=op, prices=prices
    )


ROWS = (
    passthrough("prompt", required=True),
    passthrough("seed", low=0, high=2**31 - 1),
    converted(
        "frame",
        to="size",
        convert=size_text(pixels(multiple=16, min_side=256, max_side=8192, max_area=4096 * 4096)),
    ),
)
IMAGES = converted(
    "images", to="images", convert=each_image(data_uri), required=True, max_items=5, max_bytes=20_000_000
)

CHAT = chat_operation(DEVELOPER_AS_SYSTEM, MAX_TOKENS)
# Dollars for a million tokens of input, output and cached input; `chat_models` describes the columns.
CHAT_MODELS = """
    z-ai/glm-5.3=glm-5.3                                 1.4  4.4  0.26
    z-ai/glm-5.2=glm-5.2                                 1.4  4.4  0.26
    moonshotai/kimi-k3=kimi-k3                           3    15   0.3
    moonshotai/kimi-k2.7-code=kimi-k2.7-code             0.95 4    0.19
    minimax/minimax-m3=minimax-m3                        0.3  1.2  0.06
    deepseek/deepseek-v4-pro-0813=deepseek-v4-pro-0813   1.32 3.96 0.044
    deepseek/deepseek-v4-flash=deepseek-v4-flash         0.14 0.28 0.0028
"""

# An image counts as 15,000 tokens, and as 20,000 above 2K.
price = price_list(Source("TokenHub's prices by the token, as others recorded them", "2026-10-04", is_second_hand=True))
PROVIDER = Provider(
    slug="tencent",
    name="Tencent",
    docs="https://www.tencentcloud.com/document/product/1300/83708",
    # Keys of mainland China work at another host. Set `base_url` in `[providers.tencent]` for it.
    base_url="https://tokenhub-intl.tencentcloudmaas.com/v1",
    key_env="TENCENT_TOKENHUB_API_KEY",
    auth=bearer,
    error_message=openai_compatible.error_message,
    failure_kind=failure_kind,
    models=(
        image_model("image"),
        image_model("edit", IMAGES),
        *chat_models("tencent", LITELLM, CHAT_MODELS, CHAT, priority=10),
    ),
)
