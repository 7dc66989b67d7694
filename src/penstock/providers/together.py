"""Together AI: FLUX pictures by the megapixel and open chat models, under the names these have at the router."""

import re
from dataclasses import replace

from penstock.providers.convert import data_uri, first_image, pixels
from penstock.providers.chats import ONE_LIMIT, ONE_VOICE, chats, talk
from penstock.providers.compatible import error_text
from penstock.providers.spec import (
    File,
    FailureKind,
    Model,
    Operation,
    Price,
    Provider,
    Reply,
    Result,
    bearer,
    converted,
    emulated,
    fixed,
    ignored,
    passthrough,
    refused,
    complete_table,
)

UNFIT = re.compile(r"nsfw|flagged|safety", re.IGNORECASE)
# More steps cost more, and so do weights of the caller's own.
PRICED = frozenset({"steps", "image_loras"})


def read(reply: Reply) -> Result:
    made = sorted(reply.json["data"], key=lambda one: one["index"])
    files = tuple(File(url=one.get("url"), data=one.get("b64_json")) for one in made)
    return Result(files=files, upstream_id=reply.json.get("id"))


def error_kind(reply: Reply) -> FailureKind | None:
    return "refused" if reply.status in (400, 403, 422) and UNFIT.search(error_text(reply) or "") else None


def listed(stop: str | list[str]) -> list[str]:
    return [stop] if isinstance(stop, str) else stop


MADE = Operation(task="image", send="POST /images/generations", read=read, params=(), priced_extras=PRICED)
USUAL = (
    passthrough("prompt", required=True),
    emulated("n", "n", high=4),
    fixed("response_format", "base64"),
    fixed("output_format", "png"),
    converted("frame", ("width", "height"), pixels(multiple=16, min_side=256, max_side=1792, max_area=1792 * 1024)),
)
GIVEN = converted("images", "image_url", first_image(data_uri), required=True, max_items=1)


def paints(name: str, upstream: str, steps: int, usd: str) -> Model:
    op = replace(MADE, params=complete_table("image", *USUAL, fixed("steps", steps)))
    price = Price(unit="megapixel", usd=usd, note="a comparison of prices, 2026-05")
    return Model(id=name, upstream=upstream, op=op, prices=(price,), priority=10)


def edits(name: str, upstream: str, usd: str) -> Model:
    op = replace(MADE, task="edit", params=complete_table("edit", *USUAL, GIVEN))
    price = Price(unit="image", usd=usd, note="the maker's list, 2026-11")
    return Model(id=name, upstream=upstream, op=op, prices=(price,), priority=10)


# What it knows of probabilities has another form, and streams end with what was used unasked.
TALK = talk(
    ONE_VOICE,
    ONE_LIMIT,
    converted("stop", "stop", listed),
    *refused("logprobs", "top_logprobs"),
    *ignored("user", "stream_options", "store", "metadata"),
    finish={b"eos": b"stop"},
)

PROVIDER = Provider(
    slug="together",
    name="Together AI",
    docs="https://docs.together.ai/reference",
    base_url="https://api.together.ai/v1",
    key_env="TOGETHER_API_KEY",
    auth=bearer,
    error_message=error_text,
    failure_kind=error_kind,
    models=(
        paints("flux-schnell", "black-forest-labs/FLUX.1-schnell", 4, "0.0027"),
        paints("flux-dev", "black-forest-labs/FLUX.1-dev", 28, "0.0154"),
        edits("flux-kontext-pro", "black-forest-labs/FLUX.1-kontext-pro", "0.04"),
        edits("flux-kontext-max", "black-forest-labs/FLUX.1-kontext-max", "0.08"),
        *chats(
            "together",
            "public price table, 2026-11",
            """
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
        """,
            TALK,
        ),
    ),
)
