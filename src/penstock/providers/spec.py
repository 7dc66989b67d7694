"""The vocabulary for provider files: parameters, operations, prices, models and the provider itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from re import Pattern
from typing import Any, Literal

from penstock.imaging.child import ChildTask as ChildTask
from penstock.imaging.formats import OUTPUT_FORMATS
from penstock.imaging.workers import WorkFailed as WorkFailed
from penstock.providers.batches import ChatBatches
from penstock.providers.convert import allowed_seconds, both, closest, closest_resolution, or_of_input
from penstock.providers.exchange import FailureKind as FailureKind
from penstock.providers.exchange import File as File
from penstock.providers.exchange import HttpRequest as HttpRequest
from penstock.providers.exchange import NotSigned as NotSigned
from penstock.providers.exchange import Reply as Reply
from penstock.providers.exchange import Result as Result
from penstock.providers.exchange import Status as Status
from penstock.providers.exchange import Upload as Upload
from penstock.providers.inside import LocalServer as LocalServer
from penstock.providers.inside import LocalService as LocalService
from penstock.providers.inside import LocalTools as LocalTools
from penstock.providers.inside import RunTask as RunTask
from penstock.providers.inside import StreamTask as StreamTask
from penstock.providers.live import FoundModel, LiveModel
from penstock.providers.prices import COMFY as COMFY
from penstock.providers.prices import LITELLM as LITELLM
from penstock.providers.prices import OWN_HARDWARE as OWN_HARDWARE
from penstock.providers.prices import Price as Price
from penstock.providers.prices import Source as Source
from penstock.providers.prices import Unit as Unit
from penstock.providers.prices import announced_prices as announced_prices
from penstock.providers.prices import price_list as price_list
from penstock.providers.prices import prices_in_force as prices_in_force
from penstock.providers.speech import Speech as Speech
from penstock.providers.transcription import Transcription as Transcription
from penstock.sound.formats import FILE_FORMATS
from penstock.values import InputFile as InputFile
from penstock.values import OrgId as OrgId

Task = Literal["image", "edit", "upscale", "video", "chat", "speech", "sound", "transcription", "translation"]
Handling = Literal["passthrough", "renamed", "converted", "emulated", "ignored", "refused", "fixed"]

# ---------------------------------------------------------------------------------------------------------- parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One row of a parameter table: what happens to one field of the caller's request."""

    name: str
    handling: Handling
    to: tuple[str, ...] = ()  # the provider's fields; a dot separates nested names; empty: not sent
    convert: Callable[[Any], Any] | None = None
    one_of: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    max_length: int | None = None  # characters in a text
    counts_utf16: bool = False  # characters are counted as JavaScript does: those outside the basic plane are two
    required: bool = False
    max_items: int | None = None  # items in a list
    min_items: int = 0  # images that the model needs, where one is not enough
    max_bytes: int | None = None  # of one input; the gateway makes a larger image smaller and refuses a larger video
    min_seconds: float = 0.0  # of an input video; a shorter one is refused
    max_seconds: float | None = None  # of an input video; a longer one is refused
    by_url: bool = False  # an input video is sent as a URL of the gateway, which the provider fetches
    frames: int = 2  # so many images at most are frames that a video begins and ends with; more are references
    needs_role: bool = False  # takes only images whose role the caller has stated
    value: Any = None  # for `fixed`
    schema: Mapping[str, Any] | None = None  # JSON Schema of the value, where the provider's catalogue has one
    default: Any = None  # what the model uses when the field is absent; shown in a new video's response


def passthrough(name: str, **limits: Any) -> Param:
    """A field that is sent unchanged, under the same name."""
    return Param(name=name, handling="passthrough", to=(name,), **limits)


def renamed(name: str, to: str, **limits: Any) -> Param:
    """A field that is sent unchanged, under the provider's name for it."""
    return Param(name=name, handling="renamed", to=(to,), **limits)


def converted(name: str, to: str | tuple[str, ...], convert: Callable[[Any], Any], **limits: Any) -> Param:
    """A field that is sent in the provider's format.

    `convert` returns one value for one name, or a tuple with a value for each name in `to`. None is not sent.
    """
    return Param(name=name, handling="converted", to=(to,) if isinstance(to, str) else to, convert=convert, **limits)


def emulated(name: str, to: str | None = None, **limits: Any) -> Param:
    """A field that the gateway implements. With `to` it is also sent to the provider, up to the limit `high`."""
    return Param(name=name, handling="emulated", to=(to,) if to else (), **limits)


def ignored(*names: str) -> tuple[Param, ...]:
    """Fields that callers may send and that are not passed on, because the provider would reject them."""
    return tuple(Param(name=name, handling="ignored") for name in names)


def refused(*names: str) -> tuple[Param, ...]:
    """Fields that are answered with status 400, because without them the result would not be what was asked for."""
    return tuple(Param(name=name, handling="refused") for name in names)


def fixed(to: str, value: Any) -> Param:
    """A field of the provider that is always sent with this value."""
    return Param(name="", handling="fixed", to=(to,), value=value)


def duration(*choices: float, to: str = "duration", convert: Callable[[float], Any] = round, default: float) -> Param:
    """The row for `seconds`: the durations that a video model can make. A longer one is refused."""
    return converted("seconds", to, allowed_seconds(*choices, convert=convert), default=default, high=max(choices))


def frame(
    ratios: str = "",
    *resolutions: str,
    to: tuple[str, ...] = ("aspect_ratio", "resolution"),
    by_input: str | None = "",
) -> Param:
    """The row for `size`, `aspect_ratio` and `resolution`: the aspect ratios and resolutions that a model can make.

    The first of each is the model's default. Without ratios only the resolution is sent, without resolutions only the
    ratio. Without both the field is ignored: the model uses the frame of the input image. Where the caller
    wrote no shape, `by_input` is the provider's word for that of the input image, or None if it takes that by itself.
    """
    choices = ratios.split()
    default = choices[0] if choices else "16:9"
    nearest = closest(*choices or ["16:9"])
    ratio = nearest if by_input == "" else or_of_input(nearest, by_input)
    resolution = closest_resolution(*resolutions, default=resolutions[0] if resolutions else None)
    if choices and resolutions:
        return converted("frame", to, both(ratio, resolution), default=default)
    if choices:
        return converted("frame", to[0], ratio, default=default)
    if resolutions:
        return converted("frame", to[-1], resolution, default=default)
    return Param(name="frame", handling="ignored", default=default)


def input_video(role: str, to: str | tuple[str, ...], convert: Callable[[InputFile], Any], **limits: Any) -> Param:
    """The row for the one video that a model changes or extends; `role` says which. It needs one, unless told."""
    return converted(role, to, lambda videos: convert(videos[0]), **{"required": True, "max_items": 1, **limits})


# The row for `generate_audio` of models whose videos always have sound, and of those whose videos never have any.
ALWAYS_SOUND = Param(name="generate_audio", handling="emulated", one_of=(True,))
NEVER_SOUND = Param(name="generate_audio", handling="emulated", one_of=(False,))

# The rows for a sound that begins again where it ends, of models that cannot make it fit; and for `output_format` of
# models that make MP3, of which the gateway makes the other formats.
NEVER_LOOP = Param(name="loop", handling="emulated", one_of=(False,))
ANY_SOUND_FORMAT = Param(name="output_format", handling="emulated", one_of=FILE_FORMATS, default="mp3")

# The row for `output_format` of models that make pixels, which the gateway can write in any of these formats.
RASTER = Param(name="output_format", handling="emulated", one_of=OUTPUT_FORMATS)

_EMULATED = ("n", "response_format", "output_format", "output_compression")
_EMULATED_SPEECH = ("response_format", "speed", "stream_format", "sample_rate")
_EMULATED_TRANSCRIPTION = ("response_format", "stream", "timestamp_granularities", "original")
_SPEAKERS = ("known_speaker_names", "known_speaker_references")
_REFUSED = ("mask", "negative_prompt", "input_reference", "generate_audio", "lyrics", "reference_audio", *_SPEAKERS)
_IGNORED_TRANSCRIPTION = tuple("language languages prompt keywords temperature chunking_strategy user".split())
_IGNORED_SOUND = ("seconds", "instrumental", "seed", "language", "user")
_IGNORED = ("frame", "quality", "thinking", "prompt_enhancement", "user")
_STANDARD_FIELDS: Mapping[Task, tuple[str, ...]] = {
    "image": (*_EMULATED, *_IGNORED, "style"),
    "edit": (*_EMULATED, *_IGNORED, "mask", "scale_factor"),
    "upscale": (*_EMULATED, *_IGNORED, "mask", "prompt"),
    "video": ("n", "frame", "negative_prompt", "input_reference", "generate_audio", "user", "scale_factor"),
    "speech": (*_EMULATED_SPEECH, "instructions", "language", "reference_audio", "user"),
    "transcription": (*_EMULATED_TRANSCRIPTION, *_IGNORED_TRANSCRIPTION, *_SPEAKERS),
    "translation": (*_EMULATED_TRANSCRIPTION, "prompt", "temperature", "user"),
    "sound": ("n", "output_format", "lyrics", "loop", "negative_prompt", *_IGNORED_SOUND),
}


def complete_table(task: Task, *rows: Param) -> tuple[Param, ...]:
    """These rows, and one more for each standard field of the task that they do not mention.

    The gateway emulates such a field if it can, refuses it if the result would change without it, else ignores it.
    """
    mentioned = {row.name for row in rows}
    rest = [name for name in _STANDARD_FIELDS[task] if name not in mentioned]
    if task == "sound":
        rows += tuple(row for row in (ANY_SOUND_FORMAT, NEVER_LOOP) if row.name not in mentioned)
        mentioned |= {row.name for row in rows}
        rest = [name for name in rest if name not in mentioned]
    emulated_names = _EMULATED + _EMULATED_SPEECH + _EMULATED_TRANSCRIPTION
    return (
        *rows,
        *(RASTER if name == "output_format" else emulated(name) for name in rest if name in emulated_names),
        *refused(*(name for name in rest if name in _REFUSED)),
        *ignored(*(name for name in rest if name not in emulated_names + _REFUSED)),
    )


# ----------------------------------------------------------------------------------------------------------- operation


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageUpload:
    """How input images are uploaded, for providers whose jobs refer to uploaded images."""

    send: str
    form: Callable[[InputFile], tuple[tuple[str, str | Upload], ...]]
    read: Callable[[Reply], str]  # the name that the provider gave the image; it becomes `uploaded_name`


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoUpload:
    """How the input video is uploaded to a job that was created for it, and how the job is then started."""

    prepare: str  # asks where to upload it to
    read_url: Callable[[Reply], str]  # the URL to PUT it to, on any host
    start: str
    start_body: Callable[[str], Any]  # from the ETag of the uploaded file to a JSON body


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that a provider can do: where requests are sent, how the body is built, how responses are read."""

    task: Task
    send: str  # "POST /path/{model}"
    params: tuple[Param, ...]
    read: Callable[[Reply], Result]
    poll: str | None = None
    poll_body: Callable[[Mapping[str, str]], Any] | None = None  # from the job's ref to a JSON body
    # Reads the replies to `poll`, if they cannot be distinguished from the reply to the submission; None: `read` does.
    read_poll: Callable[[Reply], Result] | None = None
    fetch: str | None = None  # a final GET, where status and result have different URLs
    cancel: str | tuple[str, ...] | None = None  # several where waiting and running jobs have different endpoints
    cancel_body: Callable[[Mapping[str, str]], Any] | None = None  # from the job's ref to a JSON body
    image_upload: ImageUpload | None = None
    video_upload: VideoUpload | None = None
    read_http_errors: bool = False  # a failed job is reported with an HTTP error whose body `read` can read
    # `json-list`: a list of one object. `file`: the bytes of the field `file` alone.
    body: Literal["json", "json-list", "form", "msgpack", "file"] = "json"
    adjust_body: Callable[[dict[str, Any]], dict[str, Any]] = dict  # applied last, before the model's name is added
    model_field: str | None = "model"  # where the model's name goes if it is not in the path
    takes_extras: bool = True  # fields without a row are sent unchanged; False: they are refused
    max_body_bytes: int | None = None  # of the JSON that is sent; a chat call with more is refused
    priced_extras: frozenset[str] = frozenset()  # fields without a row that would change the price; refused
    safe_to_resubmit: bool = False  # submitting twice makes one job or costs nothing: retry after an unknown outcome
    poll_seconds: float = 5.0  # first pause between polls, if the provider does not give one
    # Where the gateway's callback URL goes, for providers that call when a job ends: a field of the body (dots nest) or
    # of the query (with a leading `?`). `callback_extras` is sent with it. Jobs are polled as well.
    callback_field: str | None = None
    callback_extras: Mapping[str, Any] = field(default_factory=dict)
    # Special cases for other modules: those of chat, or `mask`, the colour of the area to edit if not transparent.
    settings: Mapping[str, Any] = field(default_factory=dict)
    partial_image_tokens: int | None = None  # of an unfinished image, where they are streamed with OpenAI's events
    speech: Speech | None = None  # how a model speaks, and how its sound comes back
    transcription: Transcription | None = None  # how a model listens, and how its text comes back
    libraries: tuple[str, ...] = ()  # without which it cannot run in this process, by the names of their modules
    responses: str | None = None  # chat: where calls of OpenAI's Responses API are sent, if the provider has it
    batches: ChatBatches | None = None  # chat: many calls at a lower price, which are answered within a day
    _rows: Mapping[str, Param] = field(init=False, repr=False, compare=False)  # the params by their names

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", {param.name: param for param in reversed(self.params)})

    @property
    def cancels(self) -> tuple[str, ...]:
        return (self.cancel,) if isinstance(self.cancel, str) else self.cancel or ()

    def param(self, name: str) -> Param | None:
        return self._rows.get(name)

    def takes(self, name: str) -> bool:
        """Whether a field reaches the provider."""
        row = self.param(name)
        return row is not None and bool(row.to)

    @property
    def has_url_fields(self) -> bool:
        """Whether fields may belong into the URL; see `providers.speech`."""
        return bool(self.speech or self.transcription or (self.task == "sound" and not self.takes_extras))

    @property
    def finds_own_ids(self) -> bool:
        """Whether a job can be polled by an id of ours, which the row `own_id` sends, in place of its upstream id."""
        return self.takes("own_id")

    @property
    def native_n(self) -> int:
        """How many outputs one call to the provider can make."""
        row = self.param("n")
        return int(row.high or 1) if row and row.to else 1


# ------------------------------------------------------------------------------------------------------------ provider


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model of one provider under its public id."""

    id: str
    upstream: str  # the provider's name for it
    op: Operation
    prices: tuple[Price, ...]
    name: str = ""
    description: str = ""
    priority: int = 0  # the lowest group is tried first
    weight: int = 1  # share of the calls within a group
    created: int = 1_767_225_600  # when it was added; default: 2026-01-01
    shutdown_date: str = ""  # from this day on the provider no longer serves it, if that has been announced
    aliases: tuple[str, ...] = ()
    enabled: bool = True
    on_own_server: bool = False  # the operator's price, which depends on nothing but its unit
    allowed_extras: frozenset[str] | None = None  # chat: the only extra fields sent; None: see takes_extras
    max_image_tokens: int = 26_000  # chat: of one input image, at most; some of OpenAI's count 25,501
    max_sound_tokens: int = 50  # chat: of one second of an input sound, at most; Gemini counts 32


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnModel:
    """What an operator has on a server of their own: an exported workflow, or a checkpoint with LoRAs."""

    task: Task | None = None
    like: str = ""  # the id of a model that is called in the same way
    workflow: Mapping[str, Any] | None = None
    file: str = ""  # of the workflow
    nodes: Mapping[str, str] = field(default_factory=dict)  # of the workflow, by what they take
    frames_per_second: float = 0
    checkpoint: str = ""
    loras: Mapping[str, float] = field(default_factory=dict)  # strengths by name


@dataclass(frozen=True, slots=True)
class Document:
    """Something to GET from a provider's catalogue."""

    url: str  # a path below the catalogue's base URL, or a complete URL on the same host
    is_needed: bool = True  # False: it may not exist


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCatalogue:
    """How to ask a provider about models that have no table here, and how to call them."""

    names: Pattern[str]  # the form of the provider's model names; nothing else is asked for
    documents: Callable[[str], Mapping[str, Document]]  # what to GET about a model, by names of ours
    read: Callable[[str, Mapping[str, Any]], LiveModel]  # from the name and the documents' JSON, as far as they came
    models: Callable[[str, LiveModel], tuple[Model, ...]]  # raises Underivable
    search: Callable[[str], Mapping[str, Document]]  # what to GET to find models by words
    read_found: Callable[[Mapping[str, Any], str], tuple[FoundModel, ...]]  # from the documents' JSON and the words
    base_url: str = ""  # if it is not the provider's


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider: its base URL, its credential and its models."""

    slug: str
    name: str
    docs: str
    base_url: str
    models: tuple[Model, ...]
    key_env: str | None = None  # environment variable with the credential; None: no credential is needed
    auth: Callable[[str], Mapping[str, str]] = lambda key: {}  # from the credential to headers
    # From a complete request and the credential to more headers, where the credential signs requests with a body. It
    # may wait, so requests that submit something are signed in a thread. Raises NotSigned.
    sign: Callable[[HttpRequest, str], Mapping[str, str]] | None = None
    key_problem: Callable[[str], str | None] = lambda key: None  # why a credential cannot be used
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)  # parameters of every URL below the base URL
    id_header: str | None = None  # a header that gets a new UUID with every request
    error_message: Callable[[Reply], str | None] | None = None  # the provider's explanation in an error response
    failure_kind: Callable[[Reply], FailureKind | None] | None = None  # where the status alone is misleading
    self_hosted: bool = False  # a server of the operator's own: it is sent no URLs to fetch, whatever its base URL is
    extra_fields: tuple[str, ...] = ()  # further ones that chats may have, if it is a server of the operator's own
    base_url_env: str | None = None  # self-hosted providers: environment variable with the base URL
    callback_key_env: str | None = None  # environment variable with the Standard Webhooks secret for its callbacks
    domain: str | None = None  # poll URLs may be on any https host of this domain; the credential is sent there
    local: LocalService | None = None  # answers inside this process instead of over HTTP
    mocks: bool = False  # its models stand in for any other model of their task
    retired: Mapping[str, str] = field(default_factory=dict)  # model ids that were shut down, and their replacements
    own_models: Callable[[OwnModel], tuple[Model, ...]] | None = None  # raises Underivable
    live: LiveCatalogue | None = None  # its own catalogue, by which models without a table here can be called


def bearer(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"}


def bearer_if_set(key: str) -> Mapping[str, str]:
    """For self-hosted servers, where a credential is optional."""
    return bearer(key) if key else {}


def header(name: str, prefix: str = "") -> Callable[[str], Mapping[str, str]]:
    return lambda key: {name: prefix + key}
