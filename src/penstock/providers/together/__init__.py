"""Together AI: FLUX images by the megapixel, Seedance and Wan videos, speech, Whisper, and open chat models."""

from penstock.providers.chat_models import DEVELOPER_AS_SYSTEM, MAX_TOKENS, chat_models, chat_operation
from penstock.providers.openai_compatible import error_message
from penstock.providers.spec import LITELLM, FailureKind, Provider, Reply, bearer, converted, ignored, refused
from penstock.providers.together import images, speech, transcription, videos
from penstock.providers.together.videos import REFUSAL


def failure_kind(reply: Reply) -> FailureKind | None:
    """A refusal for content has no code, only a message."""
    return "refused" if reply.status in (400, 403, 422) and REFUSAL.search(error_message(reply) or "") else None


def stop_list(stop: str | list[str]) -> list[str]:
    return [stop] if isinstance(stop, str) else stop


# Its `logprobs` have another form than OpenAI's. Its streams always report the usage.
CHAT = chat_operation(
    DEVELOPER_AS_SYSTEM,
    MAX_TOKENS,
    converted("stop", to="stop", convert=stop_list),
    *refused("logprobs", "top_logprobs"),
    *ignored("user", "stream_options", "store", "metadata"),
    finish_reasons={b"eos": b"stop"},
    send="POST /v1/chat/completions",
)
# Dollars for a million tokens of input, output and cached input; `chat_models` describes the columns.
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
    base_url="https://api.together.ai",
    key_env="TOGETHER_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        *images.MODELS,
        *videos.MODELS,
        *speech.MODELS,
        *transcription.MODELS,
        *chat_models("together", LITELLM, CHAT_MODELS, CHAT),
    ),
)
