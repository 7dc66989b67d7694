"""Gemini image models on Vertex AI: the messages of the Gemini API, at another path and with other shutdown dates.

They are served from `locations/global`.
"""

from dataclasses import replace

from penstock.providers import gemini_images
from penstock.providers.spec import Model

SHUTDOWN_DATES = {
    "gemini-2.5-flash-image": "2027-03-15",
    "gemini-3-pro-image": "2027-05-28",
    "gemini-3.1-flash-image": "2027-05-28",
    "gemini-3.1-flash-lite-image": "2027-06-28",
}


def on_vertex(model: Model) -> Model:
    """A model of the Gemini API as Vertex AI serves it, of low priority: a plain key is simpler to have."""
    return replace(
        model,
        op=replace(model.op, send="POST /publishers/google/models/{model}:generateContent"),
        priority=10,
        shutdown_date=SHUTDOWN_DATES.get(model.upstream, ""),
    )


MODELS = tuple(on_vertex(model) for model in gemini_images.MODELS)
