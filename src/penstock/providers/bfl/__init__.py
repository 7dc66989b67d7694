"""Black Forest Labs: FLUX images, edits and videos, as tasks with a poll URL on one of its clusters."""

from penstock.providers.bfl import images, tasks, videos
from penstock.providers.spec import Provider, header

PROVIDER = Provider(
    slug="bfl",
    name="Black Forest Labs",
    docs="https://docs.bfl.ai",
    base_url="https://api.bfl.ai",
    domain="bfl.ai",
    key_env="BFL_API_KEY",
    auth=header("x-key"),
    error_message=tasks.error_message,
    models=(*images.MODELS, *videos.MODELS),
)
