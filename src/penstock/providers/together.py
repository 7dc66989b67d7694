"""Together AI: FLUX images by the megapixel, and open chat models under the ids that OpenRouter gives them."""

import re
from dataclasses import replace

from penstock.providers.chat_models import DEVELOPER_AS_SYSTEM, MAX_TOKENS, chat_models, chat_operation
from penstock.providers.convert import data_uri, first_image, pixels
from penstock.providers.openai_compatible import error_message
from penstock.providers.spec import (
    FailureKind,
    File,
    LITELLM,
    Model,
    Operation,
    Price,
    Provider,
    Reply,
    Result,
    Source,
    bearer,
    complete_table,
    converted,
    emulated,
    fixed,
    ignored,
    passthrough,
    refused,
)

REFUSAL = re.compile(r"nsfw|flagged|safety", re.IGNORECASE)


def read_images(reply: Reply) -> Result:
    images = sorted(reply.json["data"], key=lambda image: image["index"])
    files = tuple(File(url=image.get("url"), data=image.get("b64_json")) for image in images)
    return Result(files=files, upstream_id=reply.json.get("id"))


def failure_kind(reply: Reply) -> FailureKind | None:
    """A refusal for content has no code, only a message."""
    return "refused" if reply.status in (400, 403, 422) and REFUSAL.search(error_message(reply) or "") else None


def stop_list(stop: str | list[str]) -> list[str]:
    return [stop] if isinstance(stop, str) else stop


IMAGE = Operation(
    task="image",
    send="POST /images/generations",
    read=read_images,
    params=(),
    priced_extras=frozenset({"steps", "image_loras"}),
)
IMAGE_ROWS = (
    passthrough("prompt", required=True),
    emulated("n", to="n", high=4),
    fixed("response_format", "base64"),
    fixed("output_format", "png"),
    passthrough("seed"),
    passthrough("negative_prompt"),
    converted(
        "frame",
        to=("width", "height"),
        convert=pixels(multiple=16, min_side=256, max_side=1792, max_area=1792 * 1024),
    ),
)
INPUT_IMAGE = converted("images", to="image_url", convert=first_image(data_uri), required=True, max_items=1)


def image_model(name: str, upstream: str, steps: int, usd: str) -> Model:
    op = replace(IMAGE, params=complete_table("image", *IMAGE_ROWS, fixed("steps", steps)))
    price = Price(
        unit="megapixel",
        usd=usd,
        source=Source("workflowlab.dev, which quotes together.ai/pricing", "2026-05-25", is_second_hand=True),
    )
    return Model(id=name, upstream=upstream, op=op, prices=(price,), priority=10)


def edit_model(name: str, upstream: str, usd: str) -> Model:
    op = replace(IMAGE, task="edit", params=complete_table("edit", *IMAGE_ROWS, INPUT_IMAGE))
    price = Price(unit="image", usd=usd, source=Source("Together's price list", "2026-11"))
    return Model(id=name, upstream=upstream, op=op, prices=(price,), priority=10)


# Its `logprobs` have another form than OpenAI's. Its streams always report the usage.
CHAT = chat_operation(
    DEVELOPER_AS_SYSTEM,
    MAX_TOKENS,
    converted("stop", to="stop", convert=stop_list),
    *refused("logprobs", "top_logprobs"),
    *ignored("user", "stream_options", "store", "metadata"),
    finish_reasons={b"eos": b"stop"},
)
CHAT_MODELS = """
    openai/gpt-oss-120b=openai/gpt-oss-120b                        0.15  0.6
    z-ai/glm-5.3=zai-org/GLM-5.3                                   1.4   4.4   0.26
    z-ai/glm-5.2=zai-org/GLM-5.2                                   1.4   4.4   0.26
    moonshotai/kimi-k3=moonshotai/Kimi-K3                          3     15    0.3
    minimax/minimax-m3=MiniMaxAI/MiniMax-M3                        0.3   1.2   0.06
    qwen/qwen3.7-max=Qwen/Qwen3.7-Max                              1.5   4.5   0.3
    qwen/qwen3.7-plus=Qwen/Qwen3.7-Plus                            0.32  1.28
    qwen/qwen3.8-2.4t-a95b=Qwen/Qwen3.8-2.4T-A95B                  2     6     0.25
    qwen/qwen3.5-9b=Qwen/Qwen3.5-9B                                0.17  0.25
    deepseek/deepseek-v4-pro-0813=deepseek-ai/DeepSeek-V4-Pro-0813 1.32  3.96  0.13
    thinkingmachines/inkling=thinkingmachines/Inkling              1     4.05  0.17
    meta/muse-glimmer-30b=meta-models/Muse-Glimmer-30B             0.35  1.5   0.04
"""

PROVIDER = Provider(
    slug="together",
    name="Together AI",
    docs="https://docs.together.ai/reference",
    base_url="https://api.together.ai/v1",
    key_env="TOGETHER_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        image_model("flux-schnell", "black-forest-labs/FLUX.1-schnell", 4, "0.0027"),
        edit_model("flux-kontext-pro", "black-forest-labs/FLUX.1-kontext-pro", "0.04"),
        edit_model("flux-kontext-max", "black-forest-labs/FLUX.1-kontext-max", "0.08"),
        *chat_models("together", LITELLM, CHAT_MODELS, CHAT),
    ),
)
