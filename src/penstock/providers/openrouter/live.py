"""Any image or video model of OpenRouter: what it can do and at most costs comes from OpenRouter's own lists."""

import re
from collections.abc import Mapping
from typing import Any

from penstock.providers.convert import each_image
from penstock.providers.derive.table import tables
from penstock.providers.live import FoundModel, LiveModel, Underivable
from penstock.providers.openrouter.images import read_images
from penstock.providers.openrouter.live_prices import image_prices, video_prices
from penstock.providers.openrouter.media import image_object
from penstock.providers.openrouter.videos import frames_or_references, video_operation
from penstock.providers.spec import (
    Document,
    LiveCatalogue,
    Model,
    Operation,
    Param,
    Task,
    converted,
    passthrough,
)

LISTS = {"images": Document("/images/models"), "videos": Document("/videos/models")}


def documents(name: str) -> Mapping[str, Document]:
    return {**LISTS, "endpoints": Document(f"/images/models/{name}/endpoints", is_needed=False)}


def read(name: str, found: Mapping[str, Any]) -> LiveModel:
    for makes in ("images", "videos"):
        for row in found[makes]["data"]:
            if row["id"] == name:
                return _image(row, found.get("endpoints")) if makes == "images" else _video(row)
    raise Underivable("OpenRouter lists it neither with the image models nor with the video models")


# -------------------------------------------------------------------------------------------------------------- images


def _image(row: Mapping[str, Any], endpoints: Mapping[str, Any] | None) -> LiveModel:
    properties = {"prompt": {"type": "string"}}
    properties |= {name: _schema(name, able) for name, able in row["supported_parameters"].items()}
    if "input_references" not in properties and "image" in (row.get("architecture") or {}).get("input_modalities", ()):
        properties["input_references"] = _schema("input_references", {})
    return LiveModel(
        name=row.get("name") or "",
        description=(row.get("description") or "")[:500],
        makes="image",
        input={"type": "object", "properties": properties, "required": ["prompt"]},
        prices=tuple(line for each in (endpoints or {}).get("endpoints", ()) for line in each["pricing"]),
    )


def _schema(name: str, able: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter's descriptor as a JSON Schema."""
    if name == "input_references":
        return {"type": "array", "items": {"type": "string"}, "maxItems": able.get("max") or 16}
    if able.get("type") == "enum":
        return {"type": "string", "enum": list(able["values"])}
    if able.get("type") == "range":
        return {
            "type": "integer" if name in ("n", "seed") else "number",
            "minimum": able["min"],
            "maximum": able["max"],
        }
    return {"type": "integer" if name == "seed" else "boolean"}


# -------------------------------------------------------------------------------------------------------------- videos


def _video(row: Mapping[str, Any]) -> LiveModel:
    if not row.get("supported_durations"):
        raise Underivable("it makes no videos of its own, but changes others")
    listed = {
        "duration": row["supported_durations"],
        "aspect_ratio": row.get("supported_aspect_ratios"),
        "resolution": row.get("supported_resolutions"),
    }
    properties: dict[str, Any] = {"prompt": {"type": "string"}}
    properties |= {name: {"enum": list(values)} for name, values in listed.items() if values}
    properties |= {"generate_audio": {"type": "boolean"}} if row.get("generate_audio") else {}
    properties |= {"seed": {"type": "integer"}} if row.get("seed") else {}
    return LiveModel(
        name=row.get("name") or "",
        description=(row.get("description") or "")[:500],
        makes="video",
        input={"type": "object", "properties": properties},
        abilities={"frames": len(row.get("supported_frame_images") or ())},
        prices=tuple({"sku": sku, "value": value} for sku, value in (row.get("pricing_skus") or {}).items()),
    )


# -------------------------------------------------------------------------------------------------------------- models


def models(name: str, live: LiveModel) -> tuple[Model, ...]:
    prices = image_prices(live) if live.makes == "image" else video_prices(live)
    return tuple(
        Model(
            id=f"openrouter/{name}",
            upstream=name,
            op=_operation(task, rows, live),
            prices=prices,
            name=live.name,
            description=live.description,
        )
        for task, rows in tables(name, live, live.makes, image_object).items()
    )


def _operation(task: Task, rows: tuple[Param, ...], live: LiveModel) -> Operation:
    rows = tuple(passthrough("user") if row.name == "user" else row for row in rows)
    if task != "video":
        return Operation(task=task, send="POST /images", read=read_images, params=rows, takes_extras=False)
    frames = live.abilities.get("frames", 0)
    if frames:
        fields = ("frame_images", "input_references")
        images = converted("input_reference", to=fields, convert=frames_or_references, max_items=frames, frames=frames)
    else:
        images = converted("input_reference", to="input_references", convert=each_image(image_object), frames=0)
    rows = tuple(images if row.name == "input_reference" else row for row in rows)
    return video_operation(rows, takes_extras=False)


# -------------------------------------------------------------------------------------------------------------- search


def read_found(found: Mapping[str, Any], words: str) -> tuple[FoundModel, ...]:
    wanted = words.lower().split()
    return tuple(
        FoundModel(
            upstream=row["id"],
            name=row.get("name") or "",
            description=(row.get("description") or "")[:500],
            category=makes.removesuffix("s"),
            created=int(row.get("created") or 0),
        )
        for makes in LISTS
        for row in found[makes]["data"]
        if all(word in f"{row['id']} {row.get('name')}".lower() for word in wanted)
    )


CATALOGUE = LiveCatalogue(
    names=re.compile(r"[A-Za-z0-9~][\w.-]*/[A-Za-z0-9][\w.:-]*", re.ASCII),
    documents=documents,
    read=read,
    models=models,
    search=lambda words: LISTS,
    read_found=read_found,
)
