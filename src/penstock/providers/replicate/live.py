"""Any public model of Replicate: its schema comes from Replicate's own catalogue, which has no prices."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from penstock.json_schema import read_schema
from penstock.providers.derive.inputs import mask_colour
from penstock.providers.derive.sounds import modes
from penstock.providers.derive.table import tables
from penstock.providers.live import FoundModel, LiveModel, Underivable
from penstock.providers.replicate.predictions import model, output_urls, uploaded_url
from penstock.providers.spec import Document, LiveCatalogue, Model, Price, Source

# Community models are billed by the second of their machine. Which one it is the catalogue does not say, so this is the
# dearest with one graphics card; official models have prices of their own, which it does not say either.
COMPUTE_SECOND = Price(
    unit="compute_second",
    usd="0.001525",
    max_seconds=600,
    is_guess=True,
    source=Source("replicate.com/pricing for a machine with one H100, as a stored copy of the page says", "2026-11-18"),
)
VIDEO_FILE = re.compile(r"\.(mp4|webm|mov|mkv)(\?|$)", re.IGNORECASE)
IMAGE_FILE = re.compile(r"\.(png|jpe?g|webp|gif|avif|svg)(\?|$)", re.IGNORECASE)
SOUND_FILE = re.compile(r"\.(mp3|wav|flac|ogg|opus|m4a|aac)(\?|$)", re.IGNORECASE)
SOUND_WORD = re.compile(r"text.?to.?speech|\btts\b|\bmusic|sound effect", re.IGNORECASE)
VIDEO_WORD = re.compile(r"video|\bfilm|animat|lip.?sync", re.IGNORECASE)
VIDEO_FIELDS = frozenset({"fps", "num_frames", "frames_per_second", "video_length", "video", "video_url", "duration"})


def documents(name: str) -> Mapping[str, Document]:
    """What to GET: the model and, if the name has one after a colon, the version of it."""
    plain, _, version = name.partition(":")
    found = {"model": Document(f"/models/{plain}")}
    return {**found, "version": Document(f"/models/{plain}/versions/{version}")} if version else found


def read(name: str, found: Mapping[str, Any]) -> LiveModel:
    listed = found["model"]
    version = found.get("version") or listed.get("latest_version")
    if version is None:
        raise Underivable("it has no public version")
    schemas = version["openapi_schema"]["components"]["schemas"]
    is_called_by_name = listed.get("is_official") and "version" not in found
    return LiveModel(
        name=listed["name"],
        description=(listed.get("description") or "")[:500],
        input=read_schema(schemas["Input"], schemas),
        output=read_schema(schemas["Output"], schemas),
        makes=_made(listed.get("default_example")),
        version="" if is_called_by_name else version["id"],
    )


def _made(example: Any) -> str:
    """What a model makes, by the file of its example: `video`, `image`, `sound` or `other`; empty without one."""
    output = example.get("output") if isinstance(example, Mapping) else None
    urls = output_urls(output)
    url = urls[0] if urls else ""
    if VIDEO_FILE.search(url):
        return "video"
    if SOUND_FILE.search(url):
        return "sound"
    return "image" if IMAGE_FILE.search(url) else "other" if url else ""


def models(name: str, live: LiveModel) -> tuple[Model, ...]:
    if not _has_files(live.output) or live.makes == "other":
        raise Underivable("it makes neither images nor videos nor sounds")
    makes = live.makes or _guess(live)
    if makes == "sound" and live.output.get("properties"):
        raise Underivable("it makes more than a sound")
    found = tables(name, live, makes, uploaded_url)
    prices = (COMPUTE_SECOND,) if live.version else ()
    made = [model(f"replicate/{name}", name, task, rows, *prices) for task, rows in found.items()]
    return tuple(_at_version(each, live) for each in made)


def _has_files(schema: Mapping[str, Any]) -> bool:
    """Whether an output is a URL, or has URLs in a list or an object."""
    parts = [schema, *(schema.get("anyOf") or ()), *(schema.get("properties") or {}).values()]
    return any(part.get("format") == "uri" or (part.get("items") or {}).get("format") == "uri" for part in parts)


def _guess(live: LiveModel) -> str:
    """What a model without an example makes, by its words and its fields."""
    fields = live.input.get("properties") or {}
    if SOUND_WORD.search(live.description) and not VIDEO_WORD.search(live.description):
        return "sound"
    return "video" if VIDEO_WORD.search(live.description) or VIDEO_FIELDS & fields.keys() else "image"


def _at_version(found: Model, live: LiveModel) -> Model:
    """The model with what Replicate says about it; it is called by its version, unless Replicate calls it official."""
    version = live.version
    is_sound = found.op.task == "sound"
    settings = modes(f"{live.name} {live.description}") if is_sound else {"mask": mask_colour(live.input)}
    op = replace(found.op, takes_extras=False, settings=settings)
    if not version:
        return replace(found, op=op, name=live.name, description=live.description)

    def with_version(fields: dict[str, Any]) -> dict[str, Any]:
        return {"version": version, "input": fields}

    op = replace(op, send="POST /predictions", model_field=None, adjust_body=with_version)
    return replace(found, op=op, name=live.name, description=live.description)


def search(words: str) -> Mapping[str, Document]:
    return {"found": Document(f"/search?limit=50&query={quote(words, safe='')}")}


def read_found(found: Mapping[str, Any], words: str) -> tuple[FoundModel, ...]:
    return tuple(
        FoundModel(
            upstream=f"{row['model']['owner']}/{row['model']['name']}",
            name=row["model"]["name"],
            description=(row["model"].get("description") or "")[:500],
        )
        for row in found["found"]["models"]
    )


CATALOGUE = LiveCatalogue(
    names=re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(:[0-9a-f]{40,64})?", re.ASCII),
    documents=documents,
    read=read,
    models=models,
    search=search,
    read_found=read_found,
)
