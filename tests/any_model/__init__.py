"""Stored schemas of real models, and the tables that are made of them, as lines of text.

.venv/bin/python -m tests.any_model    # writes tables.txt anew; read what changed
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from penstock.providers.fal import live as fal
from penstock.providers.live import Underivable
from penstock.providers.replicate import live as replicate
from penstock.providers.spec import Model, Param
from penstock.values import INPUT_VIDEOS, Frame, InputFile
from tests.any_model.catalogue import openapi

FOLDER = Path(__file__).parent
TABLES = FOLDER / "tables.txt"
FAL = json.loads((FOLDER / "fal.json").read_text())
REPLICATE = json.loads((FOLDER / "replicate.json").read_text())

FRAMES = (Frame(1024, 1024), Frame(1280, 720), Frame(9, 16, exact=False, resolution="1080p"))
IMAGES = [InputFile(b"x", "image/png", 8, 8, uploaded_name=f"https://x.test/{number}") for number in (1, 2)]
ADDED = ("ignored", "refused")  # rows that tell what a model does not take
EMULATED = ("response_format", "output_format", "output_compression")  # the gateway does these for every model


def models() -> Iterator[tuple[str, Sequence[Model] | str]]:
    """The name of each stored model, and the models that are made of it or the reason why there are none."""
    for name, described in FAL["endpoints"].items():
        document = openapi(name, described["input"], described["output"], FAL["schemas"])
        yield f"fal/{name}", _made(fal, name, {"model": {"models": [{"metadata": {}, "openapi": document}]}})
    for name, described in REPLICATE["models"].items():
        yield f"replicate/{name}", _made(replicate, name, {"model": described})


def _made(module: Any, name: str, documents: dict[str, Any]) -> Sequence[Model] | str:
    try:
        found: Sequence[Model] = module.models(name, module.read(name, documents))
    except Underivable as problem:
        return str(problem)
    return found


def lines() -> Iterator[str]:
    """All tables: a line for each model and task, and one for each parameter that it takes."""
    for name, found in models():
        if isinstance(found, str):
            yield f"{name}: not offered, {found}"
        for model in found if not isinstance(found, str) else ():
            yield f"{name}: {model.op.task}"
            yield from (
                f"    {_line(row)}" for row in model.op.params if row.handling not in ADDED and row.name not in EMULATED
            )


def _line(row: Param) -> str:
    if row.handling == "fixed":
        return f"always {row.to[0]} = {row.value!r}"
    parts = [row.name, *([f"-> {', '.join(row.to)}"] if row.to != (row.name,) and row.to else [])]
    limits = {
        "required": row.required,
        "one of": row.one_of and list(row.one_of),
        "from": row.low,
        "to": row.high,
        "images": row.max_items,
        "at least": row.min_items,
        "characters": row.max_length,
        "default": row.default,
    }
    parts += [name if value is True else f"{name} {value}" for name, value in limits.items() if value]
    return "; ".join([" ".join(parts), *_limits(row), *_examples(row)])


def _limits(row: Param) -> list[str]:
    """What the schema of a field that is only passed on says about it."""
    if row.schema is None:
        return []
    shown = {key: value for key, value in row.schema.items() if key not in ("title", "description", "properties")}
    return [json.dumps(shown, ensure_ascii=False)[:160]]


def _examples(row: Param) -> list[str]:
    if row.convert is None:
        return []
    if row.name == "frame":
        return [
            f"{frame.size}{f' {frame.resolution}' if frame.resolution else ''} = {row.convert(frame)}"
            for frame in FRAMES
        ]
    if row.name == "seconds":
        return [f"{seconds} s = {row.convert(seconds)}" for seconds in (1, 5, 7.5)]
    if row.name in INPUT_VIDEOS:
        return [f"one = {row.convert(IMAGES[:1])}".replace("data:image/png;base64,", "")]
    if row.name in ("images", "input_reference"):
        return [f"two = {row.convert(IMAGES[: row.max_items or 2])}".replace("data:image/png;base64,", "")]
    return []
