"""xAI: Grok Imagine images and videos, Grok chat models, speech and transcription."""

from penstock.providers.chat_models import DEVELOPER_AS_SYSTEM, RESPONSES, chat_models, chat_operation
from penstock.providers.openai_compatible import error_message
from penstock.providers.spec import LITELLM, Provider, bearer, refused, renamed
from penstock.providers.xai import images, media, speech, transcription, videos

CHAT = chat_operation(
    DEVELOPER_AS_SYSTEM,
    renamed("max_tokens", to="max_completion_tokens"),
    *refused("stop", "presence_penalty", "frequency_penalty"),
    responses=RESPONSES,
)
# Dollars for a million tokens of input, output and cached input; `chat_models` describes the columns.
CHAT_MODELS = """
    grok-4.7        2     6    0.5  >200000  4    12  1
    grok-4.6        2     6    0.5  >200000  4    12  1
    grok-4.5        2     6    0.3  >200000  4    12  0.6
    grok-4.3        1.25  2.5  0.2  >200000  2.5  5   0.4
    grok-4.20       1.25  2.5  0.2  >200000  2.5  5   0.4
    grok-build-0.1  1     2    0.2  >200000  2    4   0.4
"""

PROVIDER = Provider(
    slug="xai",
    name="xAI",
    docs="https://docs.x.ai/docs/api-reference",
    base_url="https://api.x.ai/v1",
    key_env="XAI_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=media.failure_kind,
    models=(
        *images.MODELS,
        *videos.MODELS,
        *speech.MODELS,
        *transcription.MODELS,
        *chat_models("x-ai", LITELLM, CHAT_MODELS, CHAT),
    ),
    retired={"grok-imagine-image-quality": "grok-imagine-image-2"},
)
