"""Ideogram: images with legible text, and edits of them."""

from penstock.providers.ideogram import images, v1, v2
from penstock.providers.spec import Provider, header

PROVIDER = Provider(
    slug="ideogram",
    name="Ideogram",
    docs="https://developer.ideogram.ai",
    base_url="https://api.ideogram.ai",
    key_env="IDEOGRAM_API_KEY",
    auth=header("api-key"),
    error_message=images.error_message,
    failure_kind=images.failure_kind,
    models=(*v1.MODELS, *v2.MODELS),
)
