"""The structs that carry a request from the call to its result."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from penstock.fields import AUTO, TABLES, UploadedFile
from penstock.interrupts import CallerLine
from penstock.long_bodies.buffers import Buffer
from penstock.long_bodies.long_body import LongBody
from penstock.values import VIDEO_RESOLUTIONS, ZERO, Frame, Nanos, OrgId

SOUND_TASKS = ("speech", "sound")  # that make sounds, which are all read at one endpoint
LISTEN_TASKS = ("transcription", "translation")  # that write down what is said
JOB_TASKS = ("video", "sound")  # whose callers never wait for the outputs, but come back for them
SLOT_MS = 600_000  # usage is counted in slots of ten minutes
MODALITY = {
    "image": "image",
    "edit": "image",
    "upscale": "image",
    "video": "video",
    "speech": "speech",
    "sound": "speech",  # records have one word for everything that is heard
    "transcription": "speech",
    "translation": "speech",
}

# --------------------------------------------------------------------------------------------------------------- calls

EACH_VALUE = "*"  # in place of a value of a label: the budget of each that has none of its own


class DeclaredLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A label that calls of an organization may have."""

    name: str
    required: bool = False
    values: tuple[str, ...] | None = None  # that are allowed; None: any
    budget: bool = False  # whether its values may have budgets


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling: an active key and its organization."""

    org_id: OrgId
    key_id: str
    scopes: frozenset[str] = frozenset()
    prepaid: bool = True
    requests_per_minute: int | None = None
    concurrent_requests: int | None = None
    nanos_per_day: int | None = None
    nanos_per_month: int | None = None
    org_nanos_per_month: int | None = None  # of all keys of the organization together
    models: tuple[str, ...] | None = None  # that it may use: ids, or beginnings of ids that end with `*`; None: all
    replay_mode: str | None = None
    image_response_format: str | None = None  # of calls that name none; None: as the settings say
    labels: Mapping[str, str] = field(default_factory=dict)  # of all calls of the key
    declared_labels: tuple[DeclaredLabel, ...] = ()  # by its organization
    budgeted_labels: frozenset[tuple[str, str]] = frozenset()  # names and values that have budgets, or EACH_VALUE
    provenance: str | None = None  # what its organization asks of Content Credentials; None: as the settings say
    model_aliases: Mapping[str, str] = field(default_factory=dict)  # of its organization, and what each stands for
    session_id: str | None = None  # of the pages, where a cookie was sent instead of the key
    user_id: str | None = None  # whose session it is; None: of whoever has the key
    owner_id: str | None = None  # the person who made the key; it is gone with them
    session_until_ms: int | None = None
    is_limited: bool = field(init=False)  # whether calls of the key or its organization are counted; from the others

    def __post_init__(self) -> None:
        counted = (self.requests_per_minute, self.concurrent_requests, self.nanos_per_day, self.nanos_per_month)
        is_limited = counted != (None, None, None, None) or self.org_nanos_per_month is not None
        object.__setattr__(self, "is_limited", is_limited)

    def is_counted(self, labels: Mapping[str, str]) -> bool:
        """Whether a call with these labels has a limit or a budget, for which it is accepted by itself."""
        budgeted = self.budgeted_labels
        return self.is_limited or (
            bool(budgeted)
            and any((name, EACH_VALUE) in budgeted or (name, labels[name]) in budgeted for name in labels)
        )

    def may_use(self, model: str) -> bool:
        """Whether a model is among those that the key is limited to."""
        return self.models is None or any(
            model.startswith(allowed[:-1]) if allowed.endswith("*") else model == allowed for allowed in self.models
        )


def do_nothing() -> None:
    """The default of a callback."""


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
    body: bytes | bytearray = b""
    json: Any = None  # the decoded body; an object
    is_form: bool = False
    form: tuple[tuple[str, str | UploadedFile], ...] = ()
    size_bytes: int = 0
    base_url: str = ""
    address: str | None = None  # of the caller
    line: CallerLine = msgspec.field(default_factory=CallerLine)
    trace_id: str | None = None  # of the gateway's own tracing; None while that is off
    # Called when money is held for the call: from then on its body no longer counts as one that waits.
    release_body: Callable[[], None] = do_nothing
    is_batch_row: bool = False  # nobody waits for its response, which is kept
    is_guard: bool = False  # a guard asks a model: no guard is asked about this, and its texts are not stored

    @property
    def dry_run(self) -> bool:
        return bool(self.query) and self.query.get("dryRun", "").lower() == "true"


# ------------------------------------------------------------------------------------------------------------ requests


class Input(msgspec.Struct, frozen=True, omit_defaults=True):
    """An input image or video in the storage, kept until the request has ended."""

    role: str  # image, mask, reference, sound, a role of VIDEO_ROLES that the caller stated, or one of INPUT_VIDEOS
    media_id: str
    content_type: str
    width: int
    height: int
    size_bytes: int
    seconds: float = 0.0  # of a video or a sound
    frames: int = 0  # of a video
    credentials: bytes | None = None  # an archive of its Content Credentials; empty: left out; None: it has none


ProvenanceMode = Literal["off", "keep", "sign"]


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """What becomes of the Content Credentials of outputs."""

    mode: ProvenanceMode
    required: bool = False  # an output without credentials is not delivered
    prompt: bool = False  # the seal repeats the prompt


class Delivery(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where copies of outputs go."""

    destination: str
    path: str  # template of the path of each file
    required: bool = False  # without the copies the request fails


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call asks for, in one form for every provider."""

    task: str
    model: str
    values: dict[str, Any]  # the caller's values under the interface's names, checked
    extras: dict[str, Any] = {}  # fields that the interface does not name; passed on to the provider
    inputs: tuple[Input, ...] = ()
    metadata: dict[str, str] = {}
    labels: dict[str, str] = {}  # for the records; providers do not see them
    partial_images: int = 0  # how many unfinished images a stream shows, where the provider sends them
    follows_input: bool = False  # a video has the shape of its input, because the caller wrote none
    provenance: Provenance | None = None  # None: as with `off`
    is_job: bool = False  # nobody waits for it, so what a crash interrupts is sent again; videos never are
    drill: str = ""  # the faults that the call asks for, as its header lists them
    delivery: Delivery | None = None  # where copies of the outputs go

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
        if self.task == "video":
            resolution = VIDEO_RESOLUTIONS.get(resolution or "", resolution)
        if size == AUTO:
            image = next((item for item in self.inputs if item.role == "image"), None)
            if image and not ratio and self.task == "edit":
                is_exact = not resolution
                return Frame(image.width, image.height, exact=is_exact, resolution=resolution, from_input=True)
            size = None
        if size and "x" in size:
            return Frame.parse(size)
        shape = size or ratio
        if shape or resolution:
            proportion = Frame.parse(shape or ("16:9" if self.task == "video" else "1:1"))
            sides = proportion.width, proportion.height
            return Frame(*sides, exact=False, resolution=resolution, from_input=self.follows_input)
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


class CostLine(msgspec.Struct, frozen=True, array_like=True):
    """One line of what a request cost."""

    metric: str  # what was priced, such as `image`, `second` or `output_token`; `reported`: the provider's own sum
    quantity: int | float
    unit_usd: str | None  # None for a sum that the provider reported
    amount: Nanos


class FailedAttempt(msgspec.Struct, frozen=True, array_like=True):
    """A chat call to a provider that failed. Those of generations have rows of their own."""

    provider: str
    upstream_model: str
    started_at_ms: int
    ended_at_ms: int
    kind: str
    message: str | None  # None where it is not stored
    http_status: int | None = None
    account: str = ""  # empty: the credential of the environment


# ----------------------------------------------------------------------------------------------------------- generation


class Fingerprint(msgspec.Struct, frozen=True):
    """What a call is recognised by when a recording of it is looked for."""

    kind: str
    model: str
    values: dict[str, Any]
    standard: bytes
    strict: bytes
    by: Literal["standard", "strict", "exact"] = "standard"  # which of the digests decides that two calls are alike
    exact: bytes = b""  # as `standard`, with the prompt

    @property
    def digest(self) -> bytes:
        return {"standard": self.standard, "strict": self.strict, "exact": self.exact}[self.by]


class PlannedCandidate(msgspec.Struct, frozen=True):
    """A candidate of an accepted request, with its prices at acceptance."""

    provider: str
    model: str  # public id
    upstream: str  # the provider's own id
    prices: tuple[dict[str, Any], ...] = ()
    hold: Nanos = ZERO
    send: str = ""  # which endpoint of the provider serves it, if the provider has several for one model
    account: str = ""  # the account that sends it and asks about its job; empty: the credential of the environment
    fee_percent: int | None = None  # of the list price, by an account of the organization


class VendorSeal(msgspec.Struct, frozen=True):
    """Who signed a file as the provider made it, and whether the signature holds: Invalid, Valid or Trusted."""

    signer: str | None
    state: str


class ContentCredentials(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of the Content Credentials of an output."""

    status: str
    signer: str | None = None
    trusted: bool | None = None
    manifest: str | None = None
    digital_source_type: str | None = None
    vendor: VendorSeal | None = None
    inputs_left_out: int = 0  # how many inputs have credentials that do not hold, or are too large to be repeated


class Delivered(msgspec.Struct, frozen=True):
    """Where the copy of an output is."""

    url: str  # such as s3://bucket/folder/file
    sha256: str
    etag: str | None = None


class Output(msgspec.Struct, frozen=True, omit_defaults=True):
    """A produced file in the gateway's storage."""

    media_id: str
    content_type: str
    size_bytes: int
    width: int | None = None
    height: int | None = None
    revised_prompt: str | None = None
    credentials: ContentCredentials | None = None
    seconds: float | None = None  # of a sound
    voice: str | None = None  # that spoke, by the provider's name
    lyrics: str | None = None  # of a song, if the model wrote them
    delivered: Delivered | None = None  # the copy in a bucket, if the caller wants one
    delivery_error: str | None = None  # why there is none

    @property
    def further_fields(self) -> dict[str, Any]:
        """What callers are told of the file's Content Credentials, which older outputs lack, and of its copy."""
        fields = {"content_credentials": msgspec.to_builtins(self.credentials)} if self.credentials else {}
        return {**fields, **self.copy_fields}

    @property
    def copy_fields(self) -> dict[str, Any]:
        """Where the copy is, or why there is none; nothing if none was wanted."""
        if self.delivered:
            return {"delivered": msgspec.to_builtins(self.delivered)}
        return {"delivered": None, "delivery_error": self.delivery_error} if self.delivery_error else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOutput:
    """An output that is in the storage and has no media row yet."""

    output: Output
    sha256: bytes
    data: Buffer | None = field(default=None, repr=False)  # the file's bytes, for a response in base64


class AttemptSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `metadata.attempts`."""

    provider: str
    model: str
    outcome: str
    message: str | None = None
    count: int | None = None  # how many outputs it made
    upstream_id: str | None = None


class Measures(msgspec.Struct, frozen=True, omit_defaults=True):
    """The length and the size of a video, as its object shows them; kept when the rest of its request is purged."""

    seconds: str = ""
    size: str = ""


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
    missing: int = 0  # how many of the requested outputs no provider made
    origin: str = "live"  # or recorded, replayed, mocked
    recording_id: str | None = None
    measures: Measures = Measures()  # of a purged video


# ----------------------------------------------------------------------------------------------------------- responses


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What goes back over HTTP: a JSON value, ready bytes, or bytes as they come."""

    status: int = 200
    json: Any = None
    body: bytes | LongBody | None = None
    chunks: AsyncIterator[bytes] | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    media_type: str = "application/json"
