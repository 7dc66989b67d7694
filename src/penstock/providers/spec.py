"""The vocabulary a provider file is written in: parameters, operations, prices, models, provider."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from penstock.imaging.workers import ChildTask
from penstock.providers.convert import both, closest, legal_seconds, tier
from penstock.values import InputImage

Task = Literal["image", "edit", "upscale", "video", "chat"]
Handling = Literal["passthrough", "renamed", "converted", "emulated", "ignored", "refused", "fixed"]
FailureKind = Literal["rejected", "refused", "busy", "broken", "timeout", "unreadable", "unfetched"]

# ---------------------------------------------------------------------------------------------------------- parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One row of a parameter table: what happens to one field of the caller's request."""

    name: str
    handling: Handling
    to: tuple[str, ...] = ()  # the provider's field or fields; dots nest; empty means never sent
    by: Callable[[Any], Any] | None = None
    one_of: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    longest: int | None = None
    required: bool = False
    most: int | None = None  # how many items a list may have
    least: int = 0  # how many pictures it takes, where one is not enough
    value: Any = None  # for `fixed`
    default: Any = None  # what the model does when the field is absent; a video says so from the start


def passthrough(name: str, **limits: Any) -> Param:
    """Sent as is, under the same name."""
    return Param(name=name, handling="passthrough", to=(name,), **limits)


def renamed(name: str, to: str, **limits: Any) -> Param:
    """Sent as is, under the provider's name."""
    return Param(name=name, handling="renamed", to=(to,), **limits)


def converted(name: str, to: str | tuple[str, ...], by: Callable[[Any], Any], **limits: Any) -> Param:
    """Sent in the provider's format; `by` returns one value for each name in `to`, and None sends nothing."""
    return Param(name=name, handling="converted", to=(to,) if isinstance(to, str) else to, by=by, **limits)


def emulated(name: str, to: str | None = None, **limits: Any) -> Param:
    """Made to work by the gateway; also sent, up to `high`, where the provider has it."""
    return Param(name=name, handling="emulated", to=(to,) if to else (), **limits)


def ignored(*names: str) -> tuple[Param, ...]:
    """Accepted and dropped: this provider would reject or misread them."""
    return tuple(Param(name=name, handling="ignored") for name in names)


def refused(*names: str) -> tuple[Param, ...]:
    """Answered with a 400: dropping them would silently change what the caller asked for."""
    return tuple(Param(name=name, handling="refused") for name in names)


def fixed(to: str, value: Any) -> Param:
    """Always sent with this value."""
    return Param(name="", handling="fixed", to=(to,), value=value)


def lasting(*choices: float, to: str = "duration", form: Callable[[float], Any] = round, default: float) -> Param:
    """How long a film is, in the provider's steps; asking for more than it can do is refused."""
    return converted("seconds", to, legal_seconds(*choices, form=form), default=default, high=max(choices))


def shaped(ratios: str = "", *tiers: str, to: tuple[str, ...] = ("aspect_ratio", "resolution")) -> Param:
    """What a film looks like: proportion and resolution, or just one of them, or as the caller's picture has it. The
    first of each is what the model does unless told.
    """
    choices = ratios.split()
    pick, name = closest(*choices or ["16:9"]), tier(*tiers, default=tiers[0] if tiers else None)
    default = choices[0] if choices else "16:9"
    if choices and tiers:
        return converted("frame", to, both(pick, name), default=default)
    if choices or tiers:
        return converted("frame", to[0] if choices else to[-1], pick if choices else name, default=default)
    return Param(name="frame", handling="ignored", default=default)


_MADE_HERE = ("n", "response_format", "output_format", "output_compression")
_TELLING = ("mask", "negative_prompt", "input_reference")
_MIND = ("frame", "quality", "thinking", "prompt_enhancement", "user")
_STANDARD: Mapping[Task, tuple[str, ...]] = {
    "image": (*_MADE_HERE, *_MIND, "style"),
    "edit": (*_MADE_HERE, *_MIND, "mask", "scale_factor"),
    "upscale": (*_MADE_HERE, *_MIND, "mask", "prompt"),
    "video": ("n", "frame", "negative_prompt", "input_reference", "user"),
}


def whole(task: Task, *rows: Param) -> tuple[Param, ...]:
    """A table with a row for every standard field. Those that nothing was said of are made to work by the gateway,
    refused if dropping them would change what the caller asked for, or dropped.
    """
    said = {row.name for row in rows}
    rest = [name for name in _STANDARD[task] if name not in said]
    made = (emulated(name) for name in rest if name in _MADE_HERE)
    dropped = ignored(*(name for name in rest if name not in _MADE_HERE + _TELLING))
    return (*rows, *made, *refused(*(name for name in rest if name in _TELLING)), *dropped)


# ------------------------------------------------------------------------------------------------------------ exchange


@dataclass(frozen=True, slots=True)
class Upload:
    """A file part of a multipart form."""

    data: bytes
    content_type: str
    filename: str


class Outgoing(msgspec.Struct, frozen=True):
    """An HTTP request to a provider, complete but for being sent."""

    method: str
    url: str
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes = b""
    form: tuple[tuple[str, str | Upload], ...] = ()  # multipart, instead of a body


@dataclass(frozen=True)
class Reply:
    """A provider's HTTP answer, already read; header names are lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @cached_property
    def json(self) -> Any:
        """Raises msgspec.DecodeError when the body is something else."""
        return msgspec.json.decode(self.body)


# -------------------------------------------------------------------------------------------------------------- result


@dataclass(frozen=True, slots=True)
class File:
    """One produced image or video: where to fetch it, or its bytes."""

    url: str | None = None
    data: bytes | str | None = None  # raw bytes, or base64 text
    content_type: str | None = None
    revised_prompt: str | None = None
    private: bool = False  # fetching it needs the provider's credentials

    @property
    def is_base64(self) -> bool:
        return isinstance(self.data, str)


Status = Literal["queued", "in_progress", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a provider answered, in the gateway's terms."""

    status: Status = "completed"
    files: tuple[File, ...] = ()
    ref: Mapping[str, str] = field(default_factory=dict)  # fills {names} in poll, fetch and cancel
    upstream_id: str | None = None
    kind: FailureKind = "broken"  # of a failure: `refused` is a matter of content, and stops the routing
    message: str | None = None
    cost_usd: str | None = None  # what the provider says it charged; preferred over our table
    usage: Mapping[str, int] = field(default_factory=dict)  # billable quantities it reports, by unit
    progress: float | None = None
    poll_after_seconds: float | None = None

    @property
    def done(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")


# ----------------------------------------------------------------------------------------------------------- operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Deposit:
    """Where pictures have to be left before a job can speak of them."""

    send: str
    form: Callable[[InputImage], tuple[tuple[str, str | Upload], ...]]
    read: Callable[[Reply], str]  # what the picture is called there; its Reference then has that name


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing a provider can do: where to send it, how to fill it in, how to read the answer."""

    task: Task
    send: str  # "POST /path/{model}"
    params: tuple[Param, ...]
    read: Callable[[Reply], Result]
    poll: str | None = None
    poll_body: Callable[[Mapping[str, str]], Any] | None = None  # made from the job's ref, sent as JSON
    # How answers about a job are read, where one of them cannot be told from an answer to a submission by itself.
    read_later: Callable[[Reply], Result] | None = None
    fetch: str | None = None  # a last GET, for providers whose status and result live apart
    cancel: str | tuple[str, ...] | None = None  # several where jobs that wait and jobs that run are ended apart
    cancel_body: Callable[[Mapping[str, str]], Any] | None = None  # likewise
    deposit: Deposit | None = None
    reads_errors: bool = False  # a job that failed is told of under an HTTP error, in the form of all the others
    body: Literal["json", "form", "msgpack"] = "json"
    shape: Callable[[dict[str, Any]], dict[str, Any]] = dict  # the last word on the body's form
    model_field: str | None = "model"  # where the model id goes when it is not in the path
    modes: tuple[str, ...] = ()  # derived from the task when empty
    takes_extras: bool = True  # fields that no row names are sent as they are; False: they are refused
    priced_extras: frozenset[str] = frozenset()  # undeclared fields that would change the price: refused
    resubmits: bool = False  # sending twice makes one job or costs nothing, so an unknown outcome may be retried
    poll_seconds: float = 5.0  # first pause between polls where the provider gives no hint
    # Where our address goes if the provider is to call when a job ends: a field of the body (dots nest) or, after `?`,
    # of the query; and what else is sent then. Polling remains the truth.
    callback_field: str | None = None
    callback_also: Mapping[str, Any] = field(default_factory=dict)
    # Quirks that an engine module reads: chat's, or `mask`, the colour of the edited area where it is not transparent.
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cancels(self) -> tuple[str, ...]:
        return (self.cancel,) if isinstance(self.cancel, str) else self.cancel or ()

    def param(self, name: str) -> Param | None:
        return next((param for param in self.params if param.name == name), None)

    @property
    def native_n(self) -> int:
        """How many outputs one call can make."""
        row = self.param("n")
        return int(row.high or 1) if row and row.to else 1


# --------------------------------------------------------------------------------------------------------------- price

# A started megapixel is what vendors mean who round up: each output is counted in whole steps of 1024 x 1024 pixels.
Unit = Literal["image", "megapixel", "started_megapixel", "second", "token", "call"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a unit of output and, where it is charged, of input."""

    unit: Unit
    usd: str
    input_usd: str = "0"
    each_usd: str = "0"  # on top for every output, where the first unit costs more than the others
    # What this row is for: canonical values or, as `sent.resolution`, what the model itself is told; empty: anything.
    when: Mapping[str, Any] = field(default_factory=dict)
    most: int = 0  # token prices of media: the ceiling of tokens one output can use
    # Dollars for what else the provider counts, by its name in Result.usage. A chat's `cached` tokens are among those
    # that go in, and cost this instead.
    other_usd: Mapping[str, str] = field(default_factory=dict)
    above: int = 0  # chat: this row is for conversations of more input tokens; such rows come first
    note: str = ""  # source and date


def priced(note: str) -> Callable[..., Price]:
    """Price rows from one source: an amount, a unit, and by keyword what the model is told where that price is due."""

    def row(usd: str, unit: Unit = "second", input_usd: str = "0", each_usd: str = "0", **sent: Any) -> Price:
        when = {f"sent.{name}": value for name, value in sent.items()}
        return Price(unit=unit, usd=usd, input_usd=input_usd, each_usd=each_usd, when=when, note=note)

    return row


# ------------------------------------------------------------------------------------- providers inside this process


class LocalServer(Protocol):
    """Answers a provider's requests inside this process, where other providers have an HTTP server."""

    async def send(self, request: Outgoing) -> Reply: ...
    def stream(self, request: Outgoing) -> AsyncGenerator[bytes, None]: ...
    async def close(self) -> None: ...


class RunTask(Protocol):
    """Runs one of the provider's child tasks, by name. Raises imaging.workers.WorkFailed."""

    async def __call__(
        self, name: str, arguments: Mapping[str, Any], progress: Callable[[float], None] | None = None
    ) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTools:
    """What a local server may use of the gateway."""

    run: RunTask
    scratch: Path  # a folder for unfinished files; it is removed when the gateway stops


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalService:
    """How a provider answers inside this process: its server, and the functions that run in child processes."""

    start: Callable[[LocalTools], LocalServer]
    tasks: Mapping[str, ChildTask] = field(default_factory=dict)


# ------------------------------------------------------------------------------------------------------------ provider


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model of one provider under its public id."""

    id: str
    upstream: str
    op: Operation
    prices: tuple[Price, ...]
    name: str = ""
    description: str = ""
    priority: int = 0  # lower groups are tried first
    weight: int = 1  # inside a group
    created: int = 1_767_225_600  # when it was added: 2026-01-01 unless said
    aliases: tuple[str, ...] = ()
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A vendor: its origin, its credential and its models."""

    slug: str
    name: str
    docs: str
    base_url: str
    models: tuple[Model, ...]
    key: str | None = None  # the environment's name for its credential; None: needs none
    auth: Callable[[str], Mapping[str, str]] = lambda key: {}
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Callable[[Reply], str | None] | None = None  # its own words for a failure
    kind: Callable[[Reply], FailureKind | None] | None = None  # where the status alone would mislead
    base_url_env: str | None = None  # self-hosted: the environment's name for its address
    callback_key: str | None = None  # the environment's name for what signs its callbacks, as Standard Webhooks say
    domain: str | None = None  # jobs may be followed to any https host of this domain, with the credential
    local: LocalService | None = None  # it answers inside this process instead of behind HTTP
    mocks: bool = False  # its models stand in for any other model of their task
    retired: Mapping[str, str] = field(default_factory=dict)  # ids that were shut down, and what replaces them


def bearer(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"}


def bearer_if_any(key: str) -> Mapping[str, str]:
    """Servers on one's own machine ask for a credential if they, or what stands before them, were told to."""
    return bearer(key) if key else {}


def header(name: str, prefix: str = "") -> Callable[[str], Mapping[str, str]]:
    return lambda key: {name: prefix + key}


def under(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Shape: every field nested under one name."""
    return lambda fields: {name: fields}
