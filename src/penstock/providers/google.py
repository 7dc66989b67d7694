"""Google: Gemini image, speech and transcription models and Lyria music models, by a plain key."""

from penstock.providers import gemini_images, gemini_speech, gemini_transcription, lyria
from penstock.providers.openai_compatible import error_message, failure_kind
from penstock.providers.spec import Provider, header

PROVIDER = Provider(
    slug="google",
    name="Google",
    docs="https://ai.google.dev/gemini-api/docs/image-generation",
    key_env="GEMINI_API_KEY",
    base_url="https://generativelanguage.googleapis.com/v1beta",
    auth=header("x-goog-api-key"),
    error_message=error_message,
    failure_kind=failure_kind,
    models=(*gemini_images.MODELS, *gemini_speech.MODELS, *gemini_transcription.MODELS, *lyria.MODELS),
    retired=gemini_images.RETIRED,
)
