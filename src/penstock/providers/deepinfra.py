"""DeepInfra: FLUX.2 images, open chat models, Kokoro's speech and Whisper, over OpenAI-compatible endpoints."""

from dataclasses import replace

from penstock.providers.chat_models import DEVELOPER_AS_SYSTEM, MAX_TOKENS, chat_models, chat_operation
from penstock.providers.convert import pixels, size_text
from penstock.providers.open_speech import KOKORO, KOKORO_OPENAI_VOICES, KOKORO_VOICES
from penstock.providers.openai_compatible import IMAGE as OPENAI_IMAGE
from penstock.providers.openai_compatible import SPEECH, TRANSCRIPTION, TRANSLATION
from penstock.providers.spec import (
    LITELLM,
    FailureKind,
    Model,
    Price,
    Provider,
    Reply,
    Source,
    bearer,
    complete_table,
    converted,
    emulated,
    passthrough,
    price_list,
)
from penstock.providers.speech import Speech, named_formats

REFUSALS = ("nsfw", "moderat", "safety", "content policy")  # in the text of an error, which has no code


def error_message(reply: Reply) -> str | None:
    """The message of an error: a text, an object with one, or a list of what is wrong with the fields."""
    found = reply.json.get("error") or reply.json["detail"]
    if isinstance(found, list):
        return str(found[0]["msg"])
    return str(found["message"] if isinstance(found, dict) else found)


def failure_kind(reply: Reply) -> FailureKind | None:
    message = (error_message(reply) or "").lower()
    is_refusal = reply.status in (400, 403, 422) and any(word in message for word in REFUSALS)
    return "refused" if is_refusal else None


IMAGE = replace(
    OPENAI_IMAGE,
    params=complete_table(
        "image",
        passthrough("prompt", required=True),
        converted(
            "frame",
            to="size",
            convert=size_text(pixels(multiple=16, min_side=256, max_side=1920, max_area=1920 * 1088)),
        ),
    ),
    priced_extras=frozenset({"num_inference_steps", "iters"}),
)


def image_model(name: str, upstream: str, price: Price) -> Model:
    return Model(id=name, upstream=f"black-forest-labs/{upstream}", op=IMAGE, prices=(price,), priority=10)


# Its streams report the usage with the last event.
CHAT = chat_operation(DEVELOPER_AS_SYSTEM, MAX_TOKENS)
# Dollars for a million tokens of input, output and cached input; `chat_models` describes the columns.
CHAT_MODELS = """
    openai/gpt-oss-120b=openai/gpt-oss-120b                        0.037 0.17
    z-ai/glm-5.2=zai-org/GLM-5.2                                   0.75  2.4   0.14
    moonshotai/kimi-k3=moonshotai/Kimi-K3                          2.85  14.25 0.285
    moonshotai/kimi-k2.6=moonshotai/Kimi-K2.6                      0.75  3.5   0.15
    minimax/minimax-m3=MiniMaxAI/MiniMax-M3                        0.28  1.1   0.056
    qwen/qwen3.7-max=Qwen/Qwen3.7-Max                              2.5   7.5   0.5
    qwen/qwen3.8-2.4t-a95b=Qwen/Qwen3.8-2.4T-A95B                  2     6     0.2
    qwen/qwen3.5-9b=Qwen/Qwen3.5-9B                                0.1   0.15
    deepseek/deepseek-v4-pro-0813=deepseek-ai/DeepSeek-V4-Pro-0813 1.3   2.6   0.1
    deepseek/deepseek-v4-flash=deepseek-ai/DeepSeek-V4-Flash       0.09  0.18  0.018
    thinkingmachines/inkling=thinkingmachines/Inkling              0.95  4.05  0.16
    meta/muse-glimmer-30b=meta-models/Muse-Glimmer-30B             0.3   1.2   0.04
"""

SPEAK = replace(
    SPEECH,
    takes_extras=False,
    params=complete_table(
        "speech", passthrough("input", required=True), passthrough("voice"), emulated("speed", to="speed")
    ),
    speech=Speech(
        formats=named_formats("response_format", "wav pcm mp3 flac opus"),
        max_characters=4000,
        voices=KOKORO_VOICES,
        openai_voices=KOKORO_OPENAI_VOICES,
        speeds=(0.25, 4),
    ),
)
TRANSCRIBE = replace(TRANSCRIPTION, takes_extras=False)
TRANSLATE = replace(TRANSLATION, takes_extras=False)
# What somebody who calls it was billed; lists of resellers have less than that.
KOKORO_PRICE = Price(
    unit="character",
    usd="0.00000099",
    source=Source("a project that calls it, citing deepinfra.com", "2026-10-08", is_second_hand=True),
)
_WHISPERS = (
    ("whisper-large-v3", TRANSCRIBE, "0.0000075"),
    ("whisper-large-v3", TRANSLATE, "0.0000075"),
    ("whisper-large-v3-turbo", TRANSCRIBE, "0.000003334"),
)
_WHISPER_PAGES = Source("copies of the models' pages on deepinfra.com", "2026-11-19")
WHISPER_MODELS = tuple(
    Model(
        id=f"openai/{name}",
        upstream=f"openai/{name}",
        op=op,
        prices=(Price(unit="second", usd=usd, source=_WHISPER_PAGES),),
        priority=10,
    )
    for name, op, usd in _WHISPERS
)

# The pages name the price of 1024 x 1024 pixels, which is 1.048576 of our megapixels.
price = price_list(Source("copies of the models' pages on deepinfra.com", "2026-11-15"))
PROVIDER = Provider(
    slug="deepinfra",
    name="DeepInfra",
    docs="https://deepinfra.com/docs",
    base_url="https://api.deepinfra.com/v1/openai",
    key_env="DEEPINFRA_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        image_model("deepinfra/flux-2-dev", "FLUX-2-dev", price("0.0095367431640625", "megapixel")),
        image_model("flux-2-klein-4b", "FLUX-2-klein-4b", price("0.0133514404296875", "megapixel")),
        image_model("flux-2-max", "FLUX-2-max", price("0.07", "image")),
        Model(id=KOKORO, upstream="hexgrad/Kokoro-82M", op=SPEAK, prices=(KOKORO_PRICE,)),
        *WHISPER_MODELS,
        *chat_models("deepinfra", LITELLM, CHAT_MODELS, CHAT, priority=10),
    ),
)
