"""Topaz: upscaling of images and of videos with its generative models, as jobs."""

from penstock.providers.spec import Provider, Reply, header
from penstock.providers.topaz import images, videos


def error_message(reply: Reply) -> str | None:
    return str(reply.json.get("message") or reply.json["error"])


PROVIDER = Provider(
    slug="topaz",
    name="Topaz Labs",
    docs="https://developer.topazlabs.com",
    base_url="https://api.topazlabs.com",
    key_env="TOPAZ_API_KEY",
    auth=header("x-api-key"),
    error_message=error_message,
    models=(*images.MODELS, *videos.MODELS),
)
