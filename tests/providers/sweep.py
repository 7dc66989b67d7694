"""Every kind of request that a provider's tables can send: each number of input files, shape, duration and value."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import msgspec

from penstock.errors import InvalidRequest
from penstock.fields import PROMPT_LENGTH_MAX, TABLES
from penstock.generation_jobs.parts import part_sizes
from penstock.providers.spec import Model, Param, Provider, Upload
from penstock.schema import Input, Request
from penstock.upstream import checks, translate
from penstock.values import INPUT_VIDEOS, InputFile

IMAGE = InputFile(b"image data", "image/png", 720, 1280, uploaded_name="17")
VIDEO = InputFile(b"video data", "video/mp4", 720, 1280, seconds=5.0, frames=120, url="https://gateway.test/m/1")
# Roles by the names in the tables.
INPUTS = {"images": "image", "mask": "mask", "input_reference": "reference", **{role: role for role in INPUT_VIDEOS}}
SIZES = "120x60 512x512 1024x1024 1792x1024 1024x1792 1280x720 1920x1080 2048x2048 3840x2160 4096x4096".split()
RATIOS = "1:1 16:9 9:16 4:3 3:2 21:9 4:1".split()
SHAPES: tuple[dict[str, Any], ...] = (
    {},
    *({"size": size} for size in (*SIZES, *RATIOS)),
    {"aspect_ratio": "9:16", "resolution": "1080p"},
    {"resolution": "720p"},
)
SECONDS = (1, 5, 8, 10)
PRODUCT_FIELDS = {"size", "aspect_ratio", "resolution", "seconds", "quality"}
TEXT = "a fox in the snow"
MOST_INPUTS = 16
LEAST, MOST = -(2**63), 2**63 - 1  # what a caller may write where nothing limits a number


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as a provider would get it."""

    provider: Provider
    model: Model
    values: Mapping[str, Any]  # what the caller asked for
    images: Mapping[str, int]
    body: dict[str, Any]

    @property
    def path(self) -> str:
        base = urlsplit(self.provider.base_url).path.rstrip("/")
        return base + self.model.op.send.split(" ", 1)[1].replace("{model}", self.model.upstream)

    def __str__(self) -> str:
        asked = ", ".join(f"{name}={value}" for name, value in {**self.values, **self.images}.items())
        return f"{self.provider.slug} {self.model.id} ({self.model.op.task}; {asked})"


def requests(provider: Provider, model: Model) -> Iterator[Sent]:
    """The requests of a model that differ from each other, without those that the gateway refuses."""
    seen: set[bytes] = set()
    for images in image_counts(model):
        for values in all_values(model):
            try:
                fields = body(model, values, images)
            except InvalidRequest:
                continue
            encoded = msgspec.json.encode(fields)
            if encoded not in seen:
                seen.add(encoded)
                yield Sent(provider, model, values, images, fields)


def request(model: Model, values: Mapping[str, Any], images: Mapping[str, int]) -> Request:
    """The request with these values and so many input files of each kind, completed for the model."""
    standard = {name: value for name, value in values.items() if name in TABLES[model.op.task]}
    written = Request(
        task=model.op.task,
        model=model.id,
        values=standard,
        extras={name: value for name, value in values.items() if name not in standard},
        inputs=tuple(
            Input(
                INPUTS[name], "", file.content_type, file.width, file.height, len(file.data), file.seconds, file.frames
            )
            for name, count in images.items()
            for file in [_file(name)] * count
        ),
    )
    return translate.with_defaults(written, model)


def body(model: Model, values: Mapping[str, Any], images: Mapping[str, int]) -> dict[str, Any]:
    """The body of such a request. Raises InvalidRequest, as the gateway would."""
    complete = request(model, values, images)
    checks.check(model, complete)
    checks.check_inputs(model, images)
    count = part_sizes(complete.n, model.op.native_n)[0]
    loaded = {name: [_file(name)] * count for name, count in images.items() if count}
    fields = translate.provider_body(model, translate.table_values(complete, count, loaded), complete.extras)
    return {name: _plain(value) for name, value in fields.items()}


def _file(name: str) -> InputFile:
    return VIDEO if name in INPUT_VIDEOS else IMAGE


def _plain(value: Any) -> Any:
    """The value as JSON has it; files of a form and bytes become texts."""
    if isinstance(value, Upload | bytes):
        return "file"
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


# -------------------------------------------------------------------------------------------------------------- values


def image_counts(model: Model) -> Iterator[dict[str, int]]:
    """The fewest, one, two and the most input images of each kind that the model takes, or the interface does."""
    rows = [(name, row) for name in INPUTS if (row := model.op.param(name)) and row.handling != "refused"]
    counts = [
        sorted({0, max(1, row.min_items), 2, row.max_items or MOST_INPUTS} if name != "mask" else {0, 1})
        for name, row in rows
    ]
    for combination in product(*counts):
        yield dict(zip((name for name, _ in rows), combination, strict=True))


def all_values(model: Model) -> Iterator[dict[str, Any]]:
    op = model.op
    prompt = {"prompt": TEXT} if op.task != "upscale" else {}
    seconds, quality = op.param("seconds"), op.param("quality")
    shapes = SHAPES if (frame := op.param("frame")) and frame.to else SHAPES[:1]
    lengths = {*SECONDS, seconds.high or SECONDS[-1]} if seconds else ()
    qualities = TABLES[op.task]["quality"].one_of if quality and quality.to else ()
    durations: list[dict[str, Any]] = [{}, *({"seconds": length} for length in lengths)]
    for shape, duration, effort in product(shapes, durations, [{}, *({"quality": name} for name in qualities)]):
        yield {**prompt, **shape, **duration, **effort}
    for row in op.params:
        for value in _row_values(op.task, row):
            yield {**prompt, row.name: value}


def _row_values(task: str, row: Param) -> Iterator[Any]:
    """Values of one field: each of its choices, or the ends of its range. Where the row has no limit, they are those of
    the interface, so that a description that has one shows that it is missing.
    """
    if row.handling in ("fixed", "ignored", "refused") or row.name in (*INPUTS, "frame", *PRODUCT_FIELDS):
        return
    field = TABLES[task].get(row.name)
    if choices := row.one_of or (field.one_of if field else ()):
        yield from choices
    elif row.name == "n":
        yield from range(1, int(row.high or 1) + 1)
    elif row.low is not None or row.high is not None or row.name == "seed":
        least = field.low if field and field.low is not None else LEAST
        most = field.high if field and field.high is not None else MOST
        yield from {row.low if row.low is not None else least, row.high if row.high is not None else most}
    elif row.max_length is not None:
        yield "x" * row.max_length
    elif field is None or "string" in field.types:
        yield TEXT
        yield "x" * (field.max_length or PROMPT_LENGTH_MAX if field else len(TEXT))
