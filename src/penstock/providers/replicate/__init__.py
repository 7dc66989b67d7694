"""Replicate: models of many providers, each with its own input; failures have only a message, outputs last an hour."""

from penstock.providers.replicate import images, live, predictions, videos
from penstock.providers.spec import Provider, bearer

PROVIDER = Provider(
    slug="replicate",
    name="Replicate",
    docs="https://replicate.com/docs/reference/http",
    base_url="https://api.replicate.com/v1",
    key_env="REPLICATE_API_TOKEN",
    callback_key_env="REPLICATE_WEBHOOK_SECRET",  # GET /webhooks/default/secret returns it
    auth=bearer,
    error_message=predictions.error_message,
    models=(*images.MODELS, *videos.MODELS),
    live=live.CATALOGUE,
)
