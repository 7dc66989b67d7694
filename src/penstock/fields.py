"""The fields of each endpoint, and the check of a value against its field."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import msgspec

from penstock.errors import InvalidRequest, quoted
from penstock.imaging.formats import ALL_FORMATS
from penstock.long_bodies.buffers import Buffer
from penstock.sound.formats import DEFAULT_RATE, SAMPLE_RATES, SOUND_FORMATS
from penstock.values import IMAGE_FORMS, SHORT_SIDES

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


def field_table(*rows: Field) -> Table:
    return {row.name: row for row in rows}


def _fields_of_type(kind: str) -> Callable[..., Field]:
    """A function that makes fields of one type, from a name, a description and the limits."""
    return lambda name, about, **limits: Field(name=name, types=(kind,), about=about, **limits)


text_field = _fields_of_type("string")
integer_field = _fields_of_type("integer")
number_field = _fields_of_type("number")
flag_field = _fields_of_type("boolean")
object_field = _fields_of_type("object")
array_field = _fields_of_type("array")

AUTO = "auto"
_THINKING = ("off", "on", "minimal", "high")
_QUALITIES = ("standard", "hd", "auto", "low", "medium", "high", "xhigh", "max")

# Lists return the texts of up to a hundred requests, so every text has a limit; most models have a lower one.
PROMPT_LENGTH_MAX = 32_000
SPEECH_LENGTH_MAX = 100_000  # about two hours
_SHAPE_LENGTH_MAX = 64

_MODEL = text_field("model", "Model identifier.", required=True, max_length=256)
_SESSION = text_field("session_id", "Groups requests in the records.", max_length=256)
_LABELS = object_field("labels", "Declared names with your values, by which costs are grouped; see Labels.")
_RECORDS = (
    text_field("user", "Identifier of your end user.", handling="passthrough", max_length=512),
    _SESSION,
    _LABELS,
)
_IDEMPOTENCY_KEY = text_field(
    "idempotency_key", "A call that is sent again with its key is not made or charged again.", max_length=256
)
_PROVIDER = object_field(
    "provider",
    "Which providers are tried, in which order and at what price.",
    has_parts=True,
)
_ASYNCHRONOUS = (
    text_field("webhook_url", "HTTPS URL that gets an event when an asynchronous request ends.", max_length=2048),
    text_field("media_retention", "How long produced media is kept, such as `12h` or `7d`.", max_length=16),
)
_PROVENANCE = Field(
    name="provenance",
    types=("string", "object"),
    about="What becomes of Content Credentials: `off`, `keep` or `sign`, or `{mode, required, include}`.",
    has_parts=True,
)
_FRAME = (
    text_field(
        "aspect_ratio",
        "Proportion such as `16:9`, when `size` gives no pixels.",
        max_length=_SHAPE_LENGTH_MAX,
        handling="converted",
    ),
    text_field(
        "resolution", "How large, when `size` gives no pixels.", one_of=tuple(SHORT_SIDES), handling="converted"
    ),
)
_OUTPUT = (
    text_field("response_format", "How images are returned.", one_of=IMAGE_FORMS, default="url", handling="emulated"),
    text_field("output_format", "File format of the images.", one_of=ALL_FORMATS, default="png", handling="emulated"),
    integer_field(
        "output_compression", "Quality of jpeg, webp, avif.", low=1, high=100, default=100, handling="emulated"
    ),
)
_STREAM = (
    flag_field("stream", "Respond with server-sent events; the images are in base64."),
    integer_field("partial_images", "Streams of one image: how many unfinished ones at most.", low=0, high=3),
)
_MODEL_EFFORT = (
    text_field("thinking", "How much the model thinks.", one_of=_THINKING, handling="converted"),
    text_field("thinking_level", "Another name of `thinking`.", one_of=_THINKING, alias_of="thinking"),
    text_field(
        "prompt_enhancement", "Let the provider rewrite the prompt.", one_of=("on", "off"), handling="converted"
    ),
)

IMAGE = field_table(
    text_field("prompt", "Description of the image.", required=True, max_length=PROMPT_LENGTH_MAX, handling="renamed"),
    _MODEL,
    integer_field("n", "How many images.", low=1, high=10, default=1, handling="emulated"),
    text_field(
        "size",
        "`WIDTHxHEIGHT`, or a proportion such as `16:9`.",
        default="1024x1024",
        max_length=_SHAPE_LENGTH_MAX,
        handling="converted",
    ),
    *_FRAME,
    text_field("quality", "Quality of the image.", one_of=_QUALITIES, default="standard", handling="passthrough"),
    text_field("style", "Style of the image.", one_of=("vivid", "natural"), default="vivid", handling="passthrough"),
    *_OUTPUT,
    *_STREAM,
    *_MODEL_EFFORT,
    *_RECORDS,
    *_ASYNCHRONOUS,
    text_field("idempotency_key", "A repeated key returns the first images, and costs nothing.", max_length=256),
    _PROVIDER,
    _PROVENANCE,
)

EDIT = field_table(
    Field(
        name="image",
        types=("file", "array"),
        about="PNG, WebP or JPEG; repeat as `image[]`; in JSON a data URI or an HTTPS URL.",
        required=True,
        handling="renamed",
    ),
    text_field(
        "prompt", "What to change; not needed by upscale models.", max_length=PROMPT_LENGTH_MAX, handling="renamed"
    ),
    _MODEL,
    Field(
        name="mask",
        types=("file", "string", "object"),
        about="PNG of the image's dimensions; where it is fully transparent, the image is edited.",
        handling="passthrough",
    ),
    integer_field("n", "How many images.", low=1, high=10, default=1, handling="emulated"),
    text_field(
        "size",
        "As for generation; `auto` is the first image's size.",
        default="1024x1024",
        max_length=_SHAPE_LENGTH_MAX,
        handling="converted",
    ),
    *_FRAME,
    text_field("quality", "Quality of the image.", one_of=_QUALITIES, default="auto", handling="passthrough"),
    *_OUTPUT,
    *_STREAM,
    number_field(
        "scale_factor", "Upscale models: multiplies each dimension.", low=0, high=1_000_000, handling="renamed"
    ),
    *_MODEL_EFFORT,
    *_RECORDS,
    *_ASYNCHRONOUS,
    text_field("idempotency_key", "A repeated key returns the first images, and costs nothing.", max_length=256),
    _PROVIDER,
    _PROVENANCE,
)

VIDEO = field_table(
    text_field(
        "prompt",
        "Description of the video; models that upscale an input video need none.",
        required=True,
        max_length=PROMPT_LENGTH_MAX,
        handling="renamed",
    ),
    _MODEL,
    Field(name="seconds", types=("string", "number"), about="Length of the video in seconds.", handling="converted"),
    Field(name="duration", types=("string", "number"), about="Another name of `seconds`.", alias_of="seconds"),
    text_field(
        "size", "`WIDTHxHEIGHT`, or a proportion such as `16:9`.", max_length=_SHAPE_LENGTH_MAX, handling="converted"
    ),
    integer_field("n", "How many videos.", low=1, high=4, default=1, handling="emulated"),
    *_FRAME,
    Field(
        name="input_reference",
        types=("object", "array", "string", "file"),
        about="Images to begin with or to refer to, `{image_url}`, or a video to change or to extend, `{video_url}`; "
        "each perhaps with a `role`; or files in a form.",
        handling="renamed",
    ),
    text_field("negative_prompt", "What to avoid.", max_length=5000, handling="renamed"),
    number_field(
        "scale_factor", "Models that upscale videos: multiplies each side.", low=0, high=100, handling="renamed"
    ),
    flag_field("generate_audio", "Whether the video has sound.", handling="renamed"),
    *_ASYNCHRONOUS,
    text_field("idempotency_key", "A repeated key returns the first video.", max_length=256),
    object_field("metadata", "Your own pairs of strings, stored with the video."),
    *_RECORDS,
    _PROVIDER,
    _PROVENANCE,
)

CHAT = field_table(
    _MODEL,
    array_field("messages", "The conversation.", required=True),
    flag_field("stream", "Respond with server-sent events.", default=False),
    number_field("temperature", "Randomness.", low=0, high=2, default=1),
    integer_field("max_tokens", "Maximum number of output tokens.", low=1),
    number_field("top_p", "Nucleus sampling.", low=0, high=1, default=1),
    number_field("frequency_penalty", "Positive values reduce repetition.", low=-2, high=2, default=0),
    number_field("presence_penalty", "Positive values favour new topics.", low=-2, high=2, default=0),
    Field(name="stop", types=("string", "array"), about="Up to 4 sequences that end the response."),
    array_field("tools", "Functions the model may call."),
    Field(name="tool_choice", types=("string", "object"), about="`none`, `auto`, `required` or one function."),
    object_field("response_format", "`{type: json_object}` asks for JSON."),
    integer_field("seed", "For repeatable responses, where supported."),
    text_field("user", "Identifier of your end user.", max_length=512),
    flag_field("logprobs", "Return log probabilities.", default=False),
    integer_field("top_logprobs", "Alternatives per token; needs `logprobs`.", low=0, high=20),
    object_field("stream_options", "`include_usage` adds a last chunk with usage."),
    _IDEMPOTENCY_KEY,
    _SESSION,
    _LABELS,
    _PROVIDER,
)

RESPONSES = field_table(
    _MODEL,
    Field(name="input", types=("string", "array"), about="The conversation: a text, or items.", required=True),
    text_field("instructions", "What the model is told before the conversation."),
    flag_field("stream", "Respond with server-sent events.", default=False),
    number_field("temperature", "Randomness.", low=0, high=2, default=1),
    number_field("top_p", "Nucleus sampling.", low=0, high=1, default=1),
    integer_field("max_output_tokens", "Maximum number of output tokens.", low=1),
    array_field(
        "tools",
        "Functions, custom tools and `image_generation`.",
    ),
    Field(name="tool_choice", types=("string", "object"), about="`none`, `auto`, `required` or one tool."),
    flag_field("parallel_tool_calls", "Whether several tools may be called at once."),
    object_field("text", "`format`: `text`, `json_object` or `json_schema`."),
    object_field("reasoning", "`effort` is passed on to models that think."),
    array_field("include", "`message.output_text.logprobs` or `reasoning.encrypted_content`."),
    integer_field("top_logprobs", "Alternatives per token, with `include`.", low=0, high=20),
    object_field("metadata", "Up to 16 pairs of strings, returned with the response."),
    flag_field("store", "Accepted; nothing is stored."),
    text_field("user", "Identifier of your end user.", max_length=512),
    _IDEMPOTENCY_KEY,
    _SESSION,
    _LABELS,
    _PROVIDER,
)

SPEECH = field_table(
    text_field("input", "The text to speak.", required=True, max_length=SPEECH_LENGTH_MAX, handling="renamed"),
    _MODEL,
    Field(
        name="voice",
        types=("string", "object"),
        about="One of OpenAI's voices, on every model; or a voice of the model, by its name or as `{id}`.",
        handling="converted",
    ),
    text_field("instructions", "How to speak, for models that can be told.", max_length=4096, handling="converted"),
    text_field("response_format", "Format of the sound.", one_of=SOUND_FORMATS, default="mp3", handling="emulated"),
    number_field("speed", "How fast, at the same pitch.", low=0.25, high=4, default=1, handling="emulated"),
    text_field(
        "stream_format",
        "`sse`: the sound comes in server-sent events, in base64.",
        one_of=("audio", "sse"),
        default="audio",
        handling="emulated",
    ),
    text_field("language", "Language of the text, such as `en` or `pt-BR`.", max_length=35, handling="converted"),
    integer_field(
        "sample_rate",
        "Samples a second of `wav`, `pcm` and `flac`.",
        one_of=SAMPLE_RATES,
        default=DEFAULT_RATE,
        handling="emulated",
    ),
    *_ASYNCHRONOUS,
    text_field("idempotency_key", "A repeated key returns the first sound, and costs nothing.", max_length=256),
    object_field("metadata", "Your own pairs of strings, stored with a sound that is kept."),
    *_RECORDS,
    _PROVIDER,
)

TABLES: Mapping[str, Table] = {
    "image": IMAGE,
    "edit": EDIT,
    "upscale": EDIT,
    "video": VIDEO,
    "chat": CHAT,
    "speech": SPEECH,
}

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
        raise InvalidRequest(f"`{row.name}` must be one of {quoted(row.one_of)}.", param=row.name)
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
