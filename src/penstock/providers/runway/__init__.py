"""Runway: its own videos and images, Veo videos and effects; tasks report their cost in credits of a cent."""

from penstock.providers.runway import images, sounds, tasks, videos
from penstock.providers.spec import Provider, bearer

PROVIDER = Provider(
    slug="runway",
    name="Runway",
    docs="https://docs.dev.runwayml.com",
    base_url="https://api.dev.runwayml.com/v1",
    key_env="RUNWAYML_API_SECRET",
    auth=bearer,
    headers={"x-runway-version": "2024-11-06"},
    error_message=tasks.error_message,
    models=(*videos.MODELS, *images.MODELS, *sounds.MODELS),
)
