"""The fields of each endpoint, and the check of a value against its field."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import msgspec

from penstock.errors import InvalidRequest
from penstock.imaging.formats import ALL_FORMATS
from penstock.long_bodies.buffers import Buffer
from penstock.values import SHORT_SIDES

# -------------------------------------------------------------------------------------------------------------- fields


class UploadedFile(msgspec.Struct, frozen=True):
    """A file that a caller sent in a form."""

    data: Buffer
    filename: str = ""
    content_type: str = ""


# The Python types of decoded values. A boolean does not count as a number.
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
    """One field of an endpoint and its limits; a model may have narrower ones."""

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
    alias_of: str | None = None  # the field for which this is another name
    has_parts: bool = False  # an object whose parts are values and lists, also in the brackets of a form
    python_types: frozenset[type] = field(init=False, repr=False)  # of decoded values

    def __post_init__(self) -> None:
        python_types = frozenset(kind for name in self.types for kind in _PYTHON_TYPES[name])
        object.__setattr__(self, "python_types", python_types)

    @property
    def takes_integers_only(self) -> bool:
        return "integer" in self.types and "number" not in self.types


Table = Mapping[str, Field]


def _table(*rows: Field) -> Table:
    return {row.name: row for row in rows}


def _typed(kind: str) -> Callable[..., Field]:
    return lambda name, about, **rest: Field(name=name, types=(kind,), about=about, **rest)


_text = _typed("string")
_integer = _typed("integer")
_number = _typed("number")

AUTO = "auto"
_THINKING = ("off", "on", "minimal", "high")
_QUALITIES = ("standard", "hd", "auto", "low", "medium", "high", "xhigh", "max")

# Lists return the texts of up to a hundred requests, so every text has a limit; most models have a lower one.
PROMPT_LENGTH_MAX = 32_000
_SHAPE_LENGTH_MAX = 64

_MODEL = _text("model", "Model identifier.", required=True, max_length=256)
_RECORDS = (
    _text("user", "Identifier of your end user.", handling="passthrough", max_length=512),
    _text("session_id", "Groups requests in the records.", max_length=256),
)
_PROVIDER = Field(
    name="provider",
    types=("object",),
    about="Which providers are tried, in which order and at what price.",
    has_parts=True,
)
_ASYNCHRONOUS = (
    _text("webhook_url", "HTTPS URL that gets an event when an asynchronous request ends.", max_length=2048),
    _text("media_retention", "How long produced media is kept, such as `12h` or `7d`.", max_length=16),
)
_FRAME = (
    _text(
        "aspect_ratio",
        "Proportion such as `16:9`, when `size` gives no pixels.",
        max_length=_SHAPE_LENGTH_MAX,
        handling="converted",
    ),
    _text("resolution", "How large, when `size` gives no pixels.", one_of=tuple(SHORT_SIDES), handling="converted"),
)
_OUTPUT = (
    _text(
        "response_format", "How images are returned.", one_of=("url", "b64_json"), default="url", handling="emulated"
    ),
    _text("output_format", "File format of the images.", one_of=ALL_FORMATS, default="png", handling="emulated"),
    _integer("output_compression", "Quality of jpeg, webp, avif.", low=1, high=100, default=100, handling="emulated"),
)
_STREAM = (
    Field(name="stream", types=("boolean",), about="Respond with server-sent events; the images are in base64."),
    _integer("partial_images", "Streams of one image: how many unfinished ones at most.", low=0, high=3),
)
_MODEL_EFFORT = (
    _text("thinking", "How much the model thinks.", one_of=_THINKING, handling="converted"),
    _text("thinking_level", "Another name of `thinking`.", one_of=_THINKING, alias_of="thinking"),
    _text("prompt_enhancement", "Let the provider rewrite the prompt.", one_of=("on", "off"), handling="converted"),
)

IMAGE = _table(
    _text("prompt", "Description of the image.", required=True, max_length=PROMPT_LENGTH_MAX, handling="renamed"),
    _MODEL,
    _integer("n", "How many images.", low=1, high=10, default=1, handling="emulated"),
    _text(
        "size",
        "`WIDTHxHEIGHT`, or a proportion such as `16:9`.",
        default="1024x1024",
        max_length=_SHAPE_LENGTH_MAX,
        handling="converted",
    ),
    *_FRAME,
    _text("quality", "Quality of the image.", one_of=_QUALITIES, default="standard", handling="passthrough"),
    _text("style", "Style of the image.", one_of=("vivid", "natural"), default="vivid", handling="passthrough"),
    *_OUTPUT,
    *_STREAM,
    *_MODEL_EFFORT,
    *_RECORDS,
    *_ASYNCHRONOUS,
    _PROVIDER,
)

EDIT = _table(
    Field(
        name="image",
        types=("file", "array"),
        about="PNG, WebP or JPEG; repeat as `image[]`; in JSON a data URI or an HTTPS URL.",
        required=True,
        handling="renamed",
    ),
    _text("prompt", "What to change; not needed by upscale models.", max_length=PROMPT_LENGTH_MAX, handling="renamed"),
    _MODEL,
    Field(
        name="mask",
        types=("file", "string", "object"),
        about="PNG of the image's dimensions; where it is fully transparent, the image is edited.",
        handling="passthrough",
    ),
    _integer("n", "How many images.", low=1, high=10, default=1, handling="emulated"),
    _text(
        "size",
        "As for generation; `auto` is the first image's size.",
        default="1024x1024",
        max_length=_SHAPE_LENGTH_MAX,
        handling="converted",
    ),
    *_FRAME,
    _text("quality", "Quality of the image.", one_of=_QUALITIES, default="auto", handling="passthrough"),
    *_OUTPUT,
    *_STREAM,
    _number("scale_factor", "Upscale models: multiplies each dimension.", low=0, high=1_000_000, handling="renamed"),
    *_MODEL_EFFORT,
    *_RECORDS,
    *_ASYNCHRONOUS,
    _PROVIDER,
)

VIDEO = _table(
    _text(
        "prompt",
        "Description of the video; models that upscale an input video need none.",
        required=True,
        max_length=PROMPT_LENGTH_MAX,
        handling="renamed",
    ),
    _MODEL,
    Field(name="seconds", types=("string", "number"), about="Length of the video in seconds.", handling="converted"),
    Field(name="duration", types=("string", "number"), about="Another name of `seconds`.", alias_of="seconds"),
    _text(
        "size", "`WIDTHxHEIGHT`, or a proportion such as `16:9`.", max_length=_SHAPE_LENGTH_MAX, handling="converted"
    ),
    _integer("n", "How many videos.", low=1, high=4, default=1, handling="emulated"),
    *_FRAME,
    Field(
        name="input_reference",
        types=("object", "array", "string", "file"),
        about="Images to begin with or to refer to, `{image_url}`, or a video to change or to extend, `{video_url}`; "
        "each perhaps with a `role`; or files in a form.",
        handling="renamed",
    ),
    _text("negative_prompt", "What to avoid.", max_length=5000, handling="renamed"),
    _number("scale_factor", "Models that upscale videos: multiplies each side.", low=0, high=100, handling="renamed"),
    Field(name="generate_audio", types=("boolean",), about="Whether the video has sound.", handling="renamed"),
    *_ASYNCHRONOUS,
    _text("idempotency_key", "A repeated key returns the first video.", max_length=256),
    Field(name="metadata", types=("object",), about="Your own pairs of strings, stored with the video."),
    *_RECORDS,
    _PROVIDER,
)

CHAT = _table(
    _MODEL,
    Field(name="messages", types=("array",), about="The conversation.", required=True),
    Field(name="stream", types=("boolean",), about="Respond with server-sent events.", default=False),
    _number("temperature", "Randomness.", low=0, high=2, default=1),
    _integer("max_tokens", "Maximum number of output tokens.", low=1),
    _number("top_p", "Nucleus sampling.", low=0, high=1, default=1),
    _number("frequency_penalty", "Positive values reduce repetition.", low=-2, high=2, default=0),
    _number("presence_penalty", "Positive values favour new topics.", low=-2, high=2, default=0),
    Field(name="stop", types=("string", "array"), about="Up to 4 sequences that end the response."),
    Field(name="tools", types=("array",), about="Functions the model may call."),
    Field(name="tool_choice", types=("string", "object"), about="`none`, `auto`, `required` or one function."),
    Field(name="response_format", types=("object",), about="`{type: json_object}` asks for JSON."),
    _integer("seed", "For repeatable responses, where supported."),
    _text("user", "Identifier of your end user.", max_length=512),
    Field(name="logprobs", types=("boolean",), about="Return log probabilities.", default=False),
    _integer("top_logprobs", "Alternatives per token; needs `logprobs`.", low=0, high=20),
    Field(name="stream_options", types=("object",), about="`include_usage` adds a last chunk with usage."),
    _text("session_id", "Groups requests in the records.", max_length=256),
    _PROVIDER,
)

RESPONSES = _table(
    _MODEL,
    Field(name="input", types=("string", "array"), about="The conversation: a text, or items.", required=True),
    _text("instructions", "What the model is told before the conversation."),
    Field(name="stream", types=("boolean",), about="Respond with server-sent events.", default=False),
    _number("temperature", "Randomness.", low=0, high=2, default=1),
    _number("top_p", "Nucleus sampling.", low=0, high=1, default=1),
    _integer("max_output_tokens", "Maximum number of output tokens.", low=1),
    Field(
        name="tools",
        types=("array",),
        about="Functions, custom tools and `image_generation`.",
    ),
    Field(name="tool_choice", types=("string", "object"), about="`none`, `auto`, `required` or one tool."),
    Field(name="parallel_tool_calls", types=("boolean",), about="Whether several tools may be called at once."),
    Field(name="text", types=("object",), about="`format`: `text`, `json_object` or `json_schema`."),
    Field(name="reasoning", types=("object",), about="`effort` is passed on to models that think."),
    Field(name="include", types=("array",), about="`message.output_text.logprobs` or `reasoning.encrypted_content`."),
    _integer("top_logprobs", "Alternatives per token, with `include`.", low=0, high=20),
    Field(name="metadata", types=("object",), about="Up to 16 pairs of strings, returned with the response."),
    Field(name="store", types=("boolean",), about="Accepted; nothing is stored."),
    _text("user", "Identifier of your end user.", max_length=512),
    _text("session_id", "Groups requests in the records.", max_length=256),
    _PROVIDER,
)

TABLES: Mapping[str, Table] = {"image": IMAGE, "edit": EDIT, "upscale": EDIT, "video": VIDEO, "chat": CHAT}

# --------------------------------------------------------------------------------------------------------------- checks

_ARTICLES = {"integer": "an integer", "object": "an object", "array": "an array"}


def check_field(row: Field, value: Any) -> Any:
    """Return the value; raise InvalidRequest, with a message that says what is allowed, if it does not fit the field.

    A whole number that was written as `2.0` is returned as an integer where the field takes no other number.
    """
    kind = type(value)
    if kind is float and value.is_integer() and row.takes_integers_only:
        value = int(value)
        kind = int
    if kind not in row.python_types:
        types = " or ".join(_ARTICLES.get(name, f"a {name}") for name in row.types)
        raise InvalidRequest(f"`{row.name}` must be {types}.", param=row.name)
    if row.one_of and value not in row.one_of:
        allowed = ", ".join(f"`{choice}`" for choice in row.one_of)
        raise InvalidRequest(f"`{row.name}` must be one of {allowed}.", param=row.name)
    if kind is str:
        _check_text(row, value)
    elif (kind is int or kind is float) and (row.low is not None or row.high is not None):
        _check_range(row, value)
    return value


def _check_text(row: Field, value: str) -> None:
    if row.max_length is not None and len(value) > row.max_length:
        raise InvalidRequest(f"`{row.name}` may have at most {row.max_length} characters.", param=row.name)
    if not value.strip() and (row.required or row.name in ("idempotency_key", "webhook_url", "size", "seconds")):
        raise InvalidRequest(f"`{row.name}` must not be empty.", param=row.name)


def _check_range(row: Field, value: float) -> None:
    too_low = row.low is not None and value < row.low
    too_high = row.high is not None and value > row.high
    if too_low or too_high or not value < inf:  # NaN is not, either
        if row.high is None:
            raise InvalidRequest(f"`{row.name}` must be at least {number_text(row.low)}.", param=row.name)
        limits = f"from {number_text(row.low)} to {number_text(row.high)}"
        raise InvalidRequest(f"`{row.name}` must be {limits}.", param=row.name)


def number_text(number: float | None) -> str:
    """A number as people write it: `0.5`, `4294967295`."""
    return str(int(number)) if number is not None and number == int(number) else str(number)
