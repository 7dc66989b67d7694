"""Describe models as the model list shows them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.models import model_schema
from penstock.providers.live import FoundModel
from penstock.providers.spec import Model, Price, Source, announced_prices, prices_in_force
from penstock.upstream.candidate import Candidate
from penstock.values import EDIT_VIDEO, EXTEND_VIDEO

MODES = {
    "image": ("text-to-image",),
    "edit": ("image-edit",),
    "upscale": ("upscale",),
    "video": ("text-to-video",),
    "chat": ("chat",),
    "speech": ("text-to-speech",),
    "transcription": ("transcription",),
    "translation": ("translation",),
    "sound": ("text-to-sound",),
}
# What a model does with each kind of input, by its name in provider tables.
_VIDEO_MODES = {
    "input_reference": "image-to-video",
    EDIT_VIDEO: "video-to-video",
    EXTEND_VIDEO: "video-extension",
}
MODALITIES = {
    "image": "image",
    "edit": "image",
    "upscale": "image",
    "video": "video",
    "chat": "text",
    "speech": "speech",
    "transcription": "text",
    "translation": "text",
    "sound": "audio",
}


def describe(candidates: Sequence[Candidate], today: str, schema: bool = False) -> dict[str, Any]:
    """Candidates of one model as the model list shows it: with the prices of today, and after them the announced ones.

    With `schema` also its parameters as a JSON Schema.
    """
    first = candidates[0]
    described = {
        "id": first.model.id,
        "object": "model",
        "created": first.model.created,
        "owned_by": first.model.id.split("/")[0] if "/" in first.model.id else first.provider.slug,
        "name": first.model.name or first.model.id,
        "description": first.model.description,
        "shutdown_date": shutdown_date([candidate.model for candidate in candidates]),
        "modality": MODALITIES[first.model.op.task],
        "modes": list(dict.fromkeys(mode for candidate in candidates for mode in modes(candidate.model))),
        "providers": list(dict.fromkeys(candidate.provider.slug for candidate in candidates)),
        "pricing": [
            {"provider": candidate.provider.slug, "task": candidate.model.op.task, **pricing(price)}
            for candidate in candidates
            for prices in (prices_in_force, announced_prices)
            for price in shown_prices(prices(candidate.model.prices, today))
        ],
    }
    if schema:
        described["schema"] = model_schema.schema([candidate.model.op for candidate in candidates])
    return described


def describe_found(slug: str, found: FoundModel) -> dict[str, Any]:
    """A model that a search in a provider's own catalogue found; its price and its schema come with retrieving it."""
    made = [kind for kind in ("video", "image") if found.category.endswith(kind)]
    return {
        "id": f"{slug}/{found.upstream}",
        "object": "model",
        "created": found.created,
        "owned_by": found.upstream.partition("/")[0],
        "name": found.name or found.upstream,
        "description": found.description,
        "shutdown_date": None,
        "modality": made[0] if made else None,
        "modes": [found.category] if found.category else [],
        "providers": [slug],
        "pricing": [],
    }


def shutdown_date(models: Sequence[Model]) -> str | None:
    """The day from which on nobody serves a model; None if one of its providers has announced no such day."""
    dates = [model.shutdown_date for model in models]
    return max(dates) if all(dates) else None


def modes(model: Model) -> tuple[str, ...]:
    """What a model does, as the model list names it."""
    if model.op.task != "video":
        own: tuple[str, ...] = model.op.settings.get("modes", ())
        return own or MODES[model.op.task]
    rows = {mode: model.op.param(name) for name, mode in _VIDEO_MODES.items()}
    taken = {mode: row for mode, row in rows.items() if row is not None and row.handling != "refused"}
    needed = tuple(mode for mode, row in taken.items() if row.required)
    return needed or ("text-to-video", *taken)


def shown_prices(prices: tuple[Price, ...]) -> tuple[Price, ...]:
    """The price rows that say something: one, if all of them differ only in how much is held."""
    charged = [
        replace(price, when={}, max_tokens=0, ceiling="1", least_usd="0", least_second_usd="0") for price in prices
    ]
    return prices[-1:] if all(price == charged[-1] for price in charged) else prices


def pricing(price: Price) -> dict[str, Any]:
    """A price as the model list shows it; fields without meaning for it are left out."""
    shown: dict[str, Any] = {"unit": price.unit, "usd": price.usd}
    shown.update(
        {name: usd for name in ("input_usd", "each_usd", "prompt_usd") if (usd := getattr(price, name)) != "0"}
    )
    shown.update({name: dict(found) for name in ("when", "other_usd") if (found := getattr(price, name))})
    if price.above:
        shown["above"] = price.above
    if price.from_date:
        shown["from"] = price.from_date
    return {**shown, **_source(price)}


def _source(price: Price) -> dict[str, Any]:
    """Where the price was found; the date is null where it is the operator's own or is asked for when used."""
    source = price.source or Source("")
    return {"source": source.name, "as_of": source.as_of or None, "second_hand": source.is_second_hand}
