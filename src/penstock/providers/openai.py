"""OpenAI: GPT Image models, billed by the token, GPT chat models, speech and transcription."""

from penstock.providers import openai_compatible
from penstock.providers.batches import ChatBatches
from penstock.providers.chat_models import RESPONSES, chat_models, chat_operation
from penstock.providers.gpt_chats import MAX_TOKENS, gpt_chats
from penstock.providers.gpt_images import (
    FREE_SIZE,
    IMAGE_1_MINI,
    IMAGE_2,
    IMAGE_15,
    IMAGE_25,
    IMAGE_26,
    THREE_SIZES,
    UP_TO_MAX,
    image_models,
)
from penstock.providers.gpt_speech import speech_models
from penstock.providers.gpt_transcription import transcription_models
from penstock.providers.spec import Provider, Source, bearer

BATCHES = ChatBatches(
    price_percent=50, source=Source("what several sites say of OpenAI's Batch API", "2026-04-24", is_second_hand=True)
)
CHAT = chat_operation(MAX_TOKENS, responses=RESPONSES, batches=BATCHES)
# They hear and speak, in chat completions only.
AUDIO_CHAT = chat_operation(MAX_TOKENS)
AUDIO_CHATS = """
    gpt-audio-1.5   2.5  10         sound 32  64
    gpt-audio       2.5  10         sound 32  64  until 2027-01-20
    gpt-audio-mini  0.6  2.4        sound 10  20  until 2027-01-20
"""
AUDIO_SOURCE = Source("litellm 1.106.2's price table", "2026-11-19", is_second_hand=True)
CHAT_SHUTDOWN_DATES = {
    "gpt-5.4-nano": "2027-04-01",
    "gpt-5.1": "2027-04-01",
    "gpt-4.1": "2027-01-14",
    "gpt-4.1-mini": "2027-01-14",
    "gpt-4o": "2027-01-14",
    "gpt-4o-mini": "2027-01-14",
}

SPEECH_SHUTDOWN_DATES = dict.fromkeys(("gpt-4o-mini-tts", "tts-1", "tts-1-hd"), "2027-01-06")
TRANSCRIPTION_SHUTDOWN_DATES = {
    "gpt-transcribe": "",
    "gpt-4o-transcribe": "2027-02-26",
    "gpt-4o-mini-transcribe": "2027-02-26",
    "gpt-4o-transcribe-diarize": "2027-02-26",
    "whisper-1": "2027-02-26",
}

PROVIDER = Provider(
    slug="openai",
    name="OpenAI",
    docs="https://platform.openai.com/docs/api-reference",
    base_url="https://api.openai.com/v1",
    key_env="OPENAI_API_KEY",
    auth=bearer,
    error_message=openai_compatible.error_message,
    failure_kind=openai_compatible.failure_kind,
    models=(
        *image_models("gpt-image-2.6-sunburst", FREE_SIZE, IMAGE_26),
        *image_models("gpt-image-2.6-flare", FREE_SIZE, IMAGE_26),
        *image_models("gpt-image-2.5-sunburst", FREE_SIZE, IMAGE_25, UP_TO_MAX),
        *image_models("gpt-image-2.5-flare", FREE_SIZE, IMAGE_25, UP_TO_MAX),
        *image_models("gpt-image-2", FREE_SIZE, IMAGE_2),
        *image_models("gpt-image-1.5", THREE_SIZES, IMAGE_15, shutdown_date="2026-12-01"),
        *image_models("gpt-image-1-mini", THREE_SIZES, IMAGE_1_MINI, shutdown_date="2026-12-01"),
        *gpt_chats("openai", CHAT, CHAT_SHUTDOWN_DATES),
        *chat_models("openai", AUDIO_SOURCE, AUDIO_CHATS, AUDIO_CHAT, max_sound_tokens=20),
        *speech_models(SPEECH_SHUTDOWN_DATES),
        *transcription_models(TRANSCRIPTION_SHUTDOWN_DATES),
    ),
    retired=dict.fromkeys(("gpt-image-1", "dall-e-3", "dall-e-2"), "gpt-image-2.6-sunburst"),
)
