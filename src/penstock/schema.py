"""Canonical requests and results, field by field as in the interface."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from penstock.imaging.formats import OUTPUT_FORMATS
from penstock.values import ZERO, Frame, Nanos

# -------------------------------------------------------------------------------------------------------------- fields


class UploadedFile(msgspec.Struct, frozen=True):
    """A file as it came in over HTTP."""

    data: bytes
    filename: str = ""
    content_type: str = ""


# What the decoders make of each; true and false are no numbers here.
_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "file": (UploadedFile,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One row of an endpoint's parameter table: what a caller may send, before any model has its say."""

    name: str
    types: tuple[str, ...]
    about: str
    required: bool = False
    default: Any = None
    low: float | None = None
    high: float | None = None
    one_of: tuple[Any, ...] = ()
    max_length: int | None = None
    handling: str | None = None
    same_as: str | None = None  # another name of this field
    accepts: frozenset[type] = field(init=False, repr=False)  # Python's names for `types`

    def __post_init__(self) -> None:
        object.__setattr__(self, "accepts", frozenset(one for kind in self.types for one in _PYTHON_TYPES[kind]))


Table = Mapping[str, Field]


def _table(*rows: Field) -> Table:
    return {row.name: row for row in rows}


def _typed(kind: str) -> Callable[..., Field]:
    return lambda name, about, **rest: Field(name=name, types=(kind,), about=about, **rest)


_text, _whole, _number = _typed("string"), _typed("integer"), _typed("number")
AUTO = "auto"
_THINKING = ("off", "on", "minimal", "high")
_QUALITIES = ("standard", "hd", "auto", "low", "medium", "high")

_MODEL = _text("model", "Model identifier.", required=True, max_length=256)
_KEEPING = (
    _text("user", "Identifier of your end user.", handling="passthrough", max_length=512),
    _text("session_id", "Groups requests in the records.", max_length=256),
)
_LATER = (
    _text("webhook_url", "Told when an asynchronous request ends.", max_length=2048),
    _text("media_retention", "How long produced media is kept, such as `12h` or `7d`."),
)
_SHAPE = (
    _text("aspect_ratio", "Proportion such as `16:9`, when `size` gives no pixels.", handling="converted"),
    _text("resolution", "Short side, when `size` gives no pixels.", one_of=("720p", "1080p"), handling="converted"),
)
_FINISH = (
    _text("response_format", "How images come back.", one_of=("url", "b64_json"), default="url", handling="emulated"),
    _text("output_format", "File format.", one_of=OUTPUT_FORMATS, default="png", handling="emulated"),
    _whole("output_compression", "Quality of jpeg, webp and avif.", low=1, high=100, default=100, handling="emulated"),
)
_MIND = (
    _text("thinking", "How hard the model thinks.", one_of=_THINKING, handling="converted"),
    _text("thinking_level", "Another name of `thinking`.", one_of=_THINKING, same_as="thinking"),
    _text("prompt_enhancement", "Let the provider rewrite the prompt.", one_of=("on", "off"), handling="converted"),
)

IMAGE = _table(
    _text("prompt", "What to make, in words.", required=True, handling="renamed"),
    _MODEL,
    _whole("n", "How many images.", low=1, high=10, default=1, handling="emulated"),
    _text("size", "`WIDTHxHEIGHT`, or a proportion such as `16:9`.", default="1024x1024", handling="converted"),
    *_SHAPE,
    _text("quality", "Effort.", one_of=_QUALITIES, default="standard", handling="passthrough"),
    _text("style", "Manner.", one_of=("vivid", "natural"), default="vivid", handling="passthrough"),
    *_FINISH,
    *_MIND,
    *_KEEPING,
    *_LATER,
)

EDIT = _table(
    Field(
        name="image",
        types=("file", "array"),
        about="PNG, WebP or JPEG; repeat as `image[]`; in JSON a data URI or an HTTPS URL.",
        required=True,
        handling="renamed",
    ),
    _text("prompt", "What to change; not needed by upscale models.", handling="renamed"),
    _MODEL,
    Field(
        name="mask",
        types=("file", "string", "object"),
        about="PNG of the image's dimensions; where it is fully transparent, the image is edited.",
        handling="passthrough",
    ),
    _whole("n", "How many images.", low=1, high=10, default=1, handling="emulated"),
    _text("size", "As for generation; `auto` is the first image's own.", default="1024x1024", handling="converted"),
    *_SHAPE,
    _text("quality", "Effort.", one_of=_QUALITIES, default="auto", handling="passthrough"),
    *_FINISH,
    _number("scale_factor", "Upscale models: multiplies each dimension.", low=1, high=16, handling="renamed"),
    *_MIND,
    *_KEEPING,
    *_LATER,
)

VIDEO = _table(
    _text("prompt", "What to show, in words.", required=True, handling="renamed"),
    _MODEL,
    Field(name="seconds", types=("string", "number"), about="Duration.", handling="converted"),
    Field(name="duration", types=("string", "number"), about="Another name of `seconds`.", same_as="seconds"),
    _text("size", "`WIDTHxHEIGHT`, or a proportion such as `16:9`.", handling="converted"),
    _whole("n", "How many videos.", low=1, high=4, default=1, handling="emulated"),
    *_SHAPE,
    Field(
        name="input_reference",
        types=("object", "array", "string", "file"),
        about="Reference images: `{image_url}` with an HTTPS URL or data URI, or files in a form.",
        handling="renamed",
    ),
    _text("negative_prompt", "What to avoid.", max_length=5000, handling="renamed"),
    *_LATER,
    _text("idempotency_key", "Repeating it returns the first video.", max_length=256),
    Field(name="metadata", types=("object",), about="Your own string-to-string pairs, kept with the video."),
    *_KEEPING,
)

CHAT = _table(
    _MODEL,
    Field(name="messages", types=("array",), about="The conversation.", required=True),
    Field(name="stream", types=("boolean",), about="Answer as server-sent events.", default=False),
    _number("temperature", "Randomness.", low=0, high=2, default=1),
    _whole("max_tokens", "Most tokens to write.", low=1),
    _number("top_p", "Nucleus sampling.", low=0, high=1, default=1),
    _number("frequency_penalty", "Against repetition.", low=-2, high=2, default=0),
    _number("presence_penalty", "Towards new topics.", low=-2, high=2, default=0),
    Field(name="stop", types=("string", "array"), about="Up to 4 sequences that end the answer."),
    Field(name="tools", types=("array",), about="Functions the model may call."),
    Field(name="tool_choice", types=("string", "object"), about="`none`, `auto`, `required` or one function."),
    Field(name="response_format", types=("object",), about="`{type: json_object}` asks for JSON."),
    _whole("seed", "For repeatable answers, where supported."),
    _text("user", "Identifier of your end user.", max_length=512),
    Field(name="logprobs", types=("boolean",), about="Return log probabilities.", default=False),
    _whole("top_logprobs", "Alternatives per token; needs `logprobs`.", low=0, high=20),
    Field(name="stream_options", types=("object",), about="`include_usage` adds a last chunk with usage."),
    _text("session_id", "Groups requests in the records.", max_length=256),
)

TABLES: Mapping[str, Table] = {"image": IMAGE, "edit": EDIT, "upscale": EDIT, "video": VIDEO, "chat": CHAT}
SLOT_MS = 600_000  # usage is counted in slots of ten minutes
MODALITY = {"image": "image", "edit": "image", "upscale": "image", "video": "video"}

# --------------------------------------------------------------------------------------------------------------- calls


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling: an active key and its organization."""

    org_id: str
    key_id: str
    scopes: frozenset[str] = frozenset()
    prepaid: bool = True
    requests_per_minute: int | None = None
    concurrent_requests: int | None = None
    nanos_per_day: int | None = None
    replay_mode: str | None = None

    @property
    def is_limited(self) -> bool:
        return (self.requests_per_minute, self.concurrent_requests, self.nanos_per_day) != (None, None, None)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP call by a caller: read and authenticated, its fields not yet checked."""

    id: str
    caller: Caller
    endpoint: str
    at_ms: int
    started: float  # monotonic
    method: str = "POST"
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    query: Mapping[str, str] = msgspec.field(default_factory=dict)
    path: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes = b""
    json: Any = None  # the decoded body; an object
    is_form: bool = False
    form: tuple[tuple[str, str | UploadedFile], ...] = ()
    size_bytes: int = 0
    base_url: str = ""

    @property
    def dry_run(self) -> bool:
        return self.query.get("dryRun", "").lower() in ("true", "1")


# ------------------------------------------------------------------------------------------------------------ requests


class Input(msgspec.Struct, frozen=True):
    """An input image in the storage, kept until the request has ended."""

    role: Literal["image", "mask", "reference"]
    media_id: str
    content_type: str
    width: int
    height: int
    size_bytes: int


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call asks for, in one form for every provider."""

    task: str
    model: str
    values: dict[str, Any]  # the caller's values under the interface's names, checked
    extras: dict[str, Any] = {}  # fields that the interface does not name; passed on to the provider
    inputs: tuple[Input, ...] = ()
    metadata: dict[str, str] = {}

    @property
    def n(self) -> int:
        return int(self.values.get("n", 1))

    @property
    def frame(self) -> Frame | None:
        """The shape that `size`, `aspect_ratio` and `resolution` ask for. Pixels override proportions; `auto` is the
        shape of the first input image.
        """
        size, ratio = self.values.get("size"), self.values.get("aspect_ratio")
        resolution = self.values.get("resolution")
        if size == AUTO:
            image = next((item for item in self.inputs if item.role == "image"), None)
            if image and not ratio and self.task == "edit":
                return Frame(image.width, image.height, exact=not resolution, resolution=resolution)
            size = None
        if size and "x" in size:
            return Frame.parse(size)
        shape = size or ratio
        if shape or resolution:
            proportion = Frame.parse(shape or ("16:9" if self.task == "video" else "1:1"))
            return Frame(proportion.width, proportion.height, exact=False, resolution=resolution)
        default = TABLES[self.task]["size"].default if "size" in TABLES[self.task] else None
        return Frame.parse(default) if default and self.task != "upscale" else None

    @property
    def seconds(self) -> float | None:
        return self.values.get("seconds")


# -------------------------------------------------------------------------------------------------------------- quotes


class Component(msgspec.Struct, frozen=True):
    """One line of a price."""

    type: Literal["output", "input"]
    metric: str
    quantity: float
    billable_quantity: float
    unit_usd: str
    total: Nanos


class Quote(msgspec.Struct, frozen=True):
    """What a request may cost at most, at the prices of this moment."""

    components: tuple[Component, ...]
    total: Nanos = ZERO


# ----------------------------------------------------------------------------------------------------------- generation


class Fingerprint(msgspec.Struct, frozen=True):
    """What a call is recognised by when a recording of it is looked for."""

    kind: str
    model: str
    values: dict[str, Any]
    standard: bytes
    strict: bytes
    by: Literal["standard", "strict"] = "standard"  # which of the two digests decides that two calls are alike

    @property
    def digest(self) -> bytes:
        return self.strict if self.by == "strict" else self.standard


class PlannedCandidate(msgspec.Struct, frozen=True):
    """A candidate of an accepted request, with its prices at acceptance."""

    provider: str
    model: str  # public id
    upstream: str  # the provider's own id
    prices: tuple[dict[str, Any], ...] = ()
    hold: Nanos = ZERO
    send: str = ""  # which endpoint of the provider serves it, if the provider has several for one model


class Output(msgspec.Struct, frozen=True, omit_defaults=True):
    """A produced file in the gateway's storage."""

    media_id: str
    content_type: str
    size_bytes: int
    width: int | None = None
    height: int | None = None
    revised_prompt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOutput:
    """An output that is in the storage and has no media row yet."""

    output: Output
    sha256: bytes
    data: bytes | None = field(default=None, repr=False)  # the file's bytes, for a response in base64
    base64: str | None = field(default=None, repr=False)  # instead of them, the base64 that the provider sent


class AttemptSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `metadata.attempts`."""

    provider: str
    model: str
    outcome: str
    message: str | None = None


class GenerationResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a completed generation: its outputs, who made them and the cost."""

    provider: str
    provider_name: str
    executed_model: str
    cost: Nanos
    outputs: tuple[Output, ...]
    upstream_id: str | None = None
    seconds: float | None = None
    attempts: tuple[AttemptSummary, ...] = ()
    origin: str = "live"  # or recorded, replayed, mocked
    recording_id: str | None = None


# ------------------------------------------------------------------------------------------------------------- answers


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What goes back over HTTP: a JSON value, ready bytes, or bytes as they come."""

    status: int = 200
    json: Any = None
    body: bytes | None = None
    chunks: AsyncIterator[bytes] | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    media_type: str = "application/json"
