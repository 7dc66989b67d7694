"""xAI: Grok Imagine's pictures and films, and chat."""

from penstock.providers.chats import ONE_VOICE, chats, talk
from penstock.providers.compatible import error_text
from penstock.providers.spec import Provider, bearer, refused
from penstock.providers.xai import images, told, videos

TALK = talk(ONE_VOICE, *refused("stop", "presence_penalty", "frequency_penalty"))  # as models that reason do
CHATS = chats(
    "x-ai",
    told.NOTE,
    """
    grok-4.7        2     6    0.5  >200000  4    12  1
    grok-4.6        2     6    0.5  >200000  4    12  1
    grok-4.5        2     6    0.3  >200000  4    12  0.6
    grok-4.3        1.25  2.5  0.2  >200000  2.5  5   0.4
    grok-4.20       1.25  2.5  0.2  >200000  2.5  5   0.4
    grok-build-0.1  1     2    0.2  >200000  2    4   0.4
""",
    TALK,
)

PROVIDER = Provider(
    slug="xai",
    name="xAI",
    docs="https://docs.x.ai/docs/api-reference",
    base_url="https://api.x.ai/v1",
    key_env="XAI_API_KEY",
    auth=bearer,
    error_message=error_text,
    failure_kind=told.error_kind,
    models=(*images.MODELS, *videos.MODELS, *CHATS),
    retired={"grok-imagine-image-quality": "grok-imagine-image-2"},
)
