"""Any endpoint of fal: its schema and its price come from fal's own catalogue."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

from penstock.json_schema import read_schema
from penstock.providers.convert import data_uri
from penstock.providers.derive.ceilings import with_ceilings, with_least
from penstock.providers.derive.draft import is_text
from penstock.providers.derive.factors import without_factors
from penstock.providers.derive.inputs import mask_colour
from penstock.providers.derive.lengths import without_frame_counts, without_frame_rates
from penstock.providers.derive.shapes import without_sizes
from penstock.providers.derive.sounds import modes
from penstock.providers.derive.table import tables
from penstock.providers.fal import units
from penstock.providers.fal.queue import FILES, model, read_job
from penstock.providers.live import FoundModel, LiveModel, Underivable
from penstock.providers.spec import Document, LiveCatalogue, Model, Param, Price, Task

SOUNDS = ("to-audio", "to-speech", "to-music")  # how categories of models that make sounds end
SOUND_FILES = ("audio", "audio_file", "audio_url", "audios")


def documents(name: str) -> Mapping[str, Document]:
    endpoint = quote(name, safe="")
    return {
        "model": Document(f"/models?endpoint_id={endpoint}&expand=openapi-3.0"),
        "price": Document(f"/models/pricing?endpoint_id={endpoint}", is_needed=False),
    }


def read(name: str, found: Mapping[str, Any]) -> LiveModel:
    listed = found["model"]["models"]
    if not listed:
        raise Underivable("fal has no such endpoint")
    metadata = listed[0].get("metadata") or {}
    openapi = listed[0]["openapi"]
    schemas = openapi["components"]["schemas"]
    return LiveModel(
        name=metadata.get("display_name") or "",
        description=(metadata.get("description") or "")[:500],
        category=metadata.get("category") or "",
        input=read_schema(_input(openapi), schemas),
        output=read_schema(_output(openapi), schemas),
        prices=tuple((found.get("price") or {}).get("prices") or ()),
    )


def _input(openapi: Mapping[str, Any]) -> Any:
    posts = [path["post"] for path in openapi["paths"].values() if "requestBody" in path.get("post", {})]
    return posts[0]["requestBody"]["content"]["application/json"]["schema"]


def _output(openapi: Mapping[str, Any]) -> Any:
    results = [path["get"] for address, path in openapi["paths"].items() if address.endswith("/requests/{request_id}")]
    return results[0]["responses"]["200"]["content"]["application/json"]["schema"]


def models(name: str, live: LiveModel) -> tuple[Model, ...]:
    makes, fields = _outputs(live)
    settings = modes(f"{name} {live.category}") if makes == "sound" else {"mask": mask_colour(live.input)}
    made = [
        model(
            f"fal/{name}",
            name,
            task,
            _without_unpriced(rows, prices(live, task)),
            with_least(with_ceilings(live.input, rows, prices(live, task)), is_video=task == "video"),
            read=partial(read_job, fields=fields),
            takes_extras=False,
            settings=settings,
            poll_seconds=5.0 if task == "video" else 1.0,
        )
        for task, rows in tables(name, live, makes, data_uri).items()
    ]
    return tuple(replace(each, name=live.name, description=live.description) for each in made)


def _without_unpriced(rows: tuple[Param, ...], prices: tuple[Price, ...]) -> tuple[Param, ...]:
    """The rows without those that change in a way that nobody can tell beforehand what a call costs."""
    units = {price.unit for price in prices}
    if "second" in units:
        return without_frame_counts(rows)
    if "video_megapixel" in units:
        rows = without_frame_rates(without_frame_counts(rows))
    return without_sizes(without_factors(rows)) if units & {"started_megapixel", "video_megapixel"} else rows


def _outputs(live: LiveModel) -> tuple[str, tuple[str, ...]]:
    """Whether a model makes images, videos or sounds, and the fields of its result that have them.

    Of some endpoints fal does not describe the result; there the category says what it makes.
    """
    properties = live.output.get("properties") or {}
    for makes in ("video", "image", "audio"):
        named = [f"{makes}s", makes]
        others = [name for name, schema in properties.items() if makes in name and name not in named]
        fields = tuple(name for name in (*named, *others) if name in properties and _is_file(name, properties[name]))
        if fields:
            return "sound" if makes == "audio" else makes, fields
    for makes in ("video", "image") if not properties else ():
        if live.category.endswith(f"-to-{makes}"):
            return makes, FILES
    if not properties and live.category.endswith(SOUNDS):
        return "sound", SOUND_FILES
    raise Underivable(f"it makes neither images nor videos nor sounds, but {', '.join(properties) or 'nothing'}")


def _is_file(name: str, schema: Mapping[str, Any]) -> bool:
    """Whether a field of a result has files: objects with a URL, plain URLs, or what nothing describes."""
    item = schema.get("items") or schema
    choices = item.get("anyOf") or (item,)
    is_url = name.removesuffix("s").endswith("_url") and "thumbnail" not in name and is_text(item)
    is_undescribed = name in (*FILES, *SOUND_FILES) and not item
    return is_url or is_undescribed or any("url" in (choice.get("properties") or {}) for choice in choices)


def prices(live: LiveModel, task: Task) -> tuple[Price, ...]:
    """The unit price of an endpoint; empty if fal has none."""
    found = (units.price(row, task) for row in live.prices)
    return tuple(price for price in found if price)[:1]


def search(words: str) -> Mapping[str, Document]:
    return {"models": Document(f"/models?limit=50&status=active&q={quote(words, safe='')}")}


def read_found(found: Mapping[str, Any], words: str) -> tuple[FoundModel, ...]:
    return tuple(
        FoundModel(
            upstream=row["endpoint_id"],
            name=row["metadata"].get("display_name") or "",
            description=(row["metadata"].get("description") or "")[:500],
            category=row["metadata"].get("category") or "",
        )
        for row in found["models"]["models"]
        if str(row["metadata"].get("category")).endswith(("image", "video", *SOUNDS))
    )


CATALOGUE = LiveCatalogue(
    base_url="https://api.fal.ai/v1",
    names=re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*){1,7}", re.ASCII),
    documents=documents,
    read=read,
    models=models,
    search=search,
    read_found=read_found,
)
