"""Azure OpenAI: OpenAI's models at OpenAI's prices, with shutdown dates of their own."""

from dataclasses import replace

from penstock.providers.chat_models import chat_operation
from penstock.providers.gpt_chats import MAX_TOKENS, gpt_chats
from penstock.providers.gpt_images import (
    FREE_SIZE,
    IMAGE_1_MINI,
    IMAGE_2,
    IMAGE_15,
    IMAGE_25,
    THREE_SIZES,
    UP_TO_MAX,
    image_models,
)
from penstock.providers.gpt_speech import speech_models
from penstock.providers.gpt_transcription import transcription_models
from penstock.providers.spec import Model

PATH = "/openai/v1"
CHAT = chat_operation(
    MAX_TOKENS,
    send=f"POST {PATH}/chat/completions",
    responses=f"POST {PATH}/responses",
)
CHAT_SHUTDOWN_DATES = {
    "gpt-6.1-sol": "2028-03-11",
    "gpt-6-sol": "2028-03-11",
    "gpt-6-luna": "2028-03-11",
    "gpt-6-astra": "2028-01-11",
    "gpt-5.6-sol": "2028-01-11",
    "gpt-5.6-terra": "2028-01-11",
    "gpt-5.6-luna": "2028-01-11",
    "gpt-5.5": "2027-10-26",
    "gpt-5.4": "2027-09-02",
    "gpt-5.4-mini": "2027-09-21",
    "gpt-5.4-nano": "2027-09-21",
    "gpt-5.2": "2027-06-08",
    "gpt-5.1": "2027-05-15",
    "gpt-4.1": "2027-04-14",
    "gpt-4.1-mini": "2027-04-14",
    "gpt-4o": "2027-04-14",
    "gpt-4o-mini": "2027-04-14",
}


def on_azure(model: Model) -> Model:
    """A model as Azure serves it, of lower priority than OpenAI's own."""
    method, path = model.op.send.split()
    return replace(model, op=replace(model.op, send=f"{method} {PATH}{path}"), priority=10)


IMAGES = (
    *image_models("gpt-image-2.5-sunburst", FREE_SIZE, IMAGE_25, UP_TO_MAX, shutdown_date="2027-09-09"),
    *image_models("gpt-image-2.5-flare", FREE_SIZE, IMAGE_25, UP_TO_MAX, shutdown_date="2027-09-09"),
    *image_models("gpt-image-2", FREE_SIZE, IMAGE_2, shutdown_date="2027-10-21"),
    *image_models("gpt-image-1.5", THREE_SIZES, IMAGE_15, shutdown_date="2026-12-16"),
    *image_models("gpt-image-1-mini", THREE_SIZES, IMAGE_1_MINI, shutdown_date="2027-04-07"),
)
SPEECH_SHUTDOWN_DATES = {"gpt-4o-mini-tts": "2027-06-15", "tts-1": "2026-12-15", "tts-1-hd": "2026-12-15"}
TRANSCRIPTION_SHUTDOWN_DATES = {
    "gpt-transcribe": "2028-02-01",
    "gpt-4o-mini-transcribe": "2027-06-15",
    "gpt-4o-transcribe-diarize": "2027-04-15",
    "whisper-1": "2026-12-15",
}
MODELS = (
    *map(on_azure, IMAGES),
    *gpt_chats("azure", CHAT, CHAT_SHUTDOWN_DATES),
    *map(on_azure, speech_models(SPEECH_SHUTDOWN_DATES)),
    *map(on_azure, transcription_models(TRANSCRIPTION_SHUTDOWN_DATES)),
)
