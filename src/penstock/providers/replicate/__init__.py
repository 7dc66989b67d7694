"""Replicate: models of many makers, each with its own input; failures are told in words, outputs kept for an hour."""

from penstock.providers.replicate import images, predictions, videos
from penstock.providers.spec import Provider, bearer

PROVIDER = Provider(
    slug="replicate",
    name="Replicate",
    docs="https://replicate.com/docs/reference/http",
    base_url="https://api.replicate.com/v1",
    key_env="REPLICATE_API_TOKEN",
    callback_key_env="REPLICATE_WEBHOOK_SECRET",  # which GET /webhooks/default/secret tells
    auth=bearer,
    error_message=predictions.error,
    models=(*images.MODELS, *videos.MODELS),
)
