"""The tables of penstock.toml about providers and models: their fields, limits and meanings."""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.providers.spec import Task, Unit
from penstock.typed_config import Dollars, Text

# TOML has floats, and 0.04 as a float is not 0.04: amounts are text or whole numbers.
Amount = Annotated[
    Dollars | Annotated[int, Meta(ge=0, lt=10**9)], Meta(title='an amount of dollars as text, such as "0.04"')
]
Url = Annotated[
    str,
    Meta(
        # A host that credentials may be sent to: no user, no query, nothing that is filled in later.
        pattern=r"^(?!.*\s)https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[^\s?#{}\\]*)?$",
        title="http(s)://host[:port]/path",
    ),
]
HeaderName = Annotated[
    str, Meta(pattern=r"^(?!.*\s)[A-Za-z0-9-]{1,64}$", title="the name of a header: letters, digits and -")
]
HeaderText = Annotated[str, Meta(pattern=r"^(?!.*\n)[\x20-\x7e]{1,2000}$", title="text in ASCII, on one line")]
# What the gateway itself says about a request, and where it writes the key.
_OWN_HEADERS = frozenset(
    """accept-encoding authorization connection content-length content-type expect host te trailer transfer-encoding
    upgrade""".split()
)
Whole = Annotated[int, Meta(ge=0)]
MAX_N = 10


class PriceTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one unit costs; `usd` or `output_usd` must be there, and mean the same."""

    unit: Annotated[Unit, Meta(description="What is counted.")]
    usd: Annotated[Amount, Meta(description="Dollars per unit.")] | UnsetType = UNSET
    output_usd: Annotated[Amount, Meta(description="Dollars per output token.")] | UnsetType = UNSET
    input_usd: Annotated[Amount, Meta(description="Dollars per unit of input, such as a token or an image.")] = "0"
    each_usd: Annotated[Amount, Meta(description="Dollars per output, beside the units.")] = "0"
    other_usd: Annotated[
        dict[str, Amount],
        Meta(description="Dollars per token that is `cached`, `audio_input` or `audio_output`."),
    ] = {}
    when: Annotated[dict[str, Any], Meta(description="Parameters of the calls that this price is for.")] = {}
    above: Annotated[
        Whole, Meta(description="This price is for chat with more input tokens, or images with more pixels, than this.")
    ] = 0
    from_date: Annotated[
        str,
        Meta(pattern=r"^(20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))?$", title='a date such as "2026-12-01"'),
        Meta(description="The first day, in UTC, of this price, in place of the one with the same `when` and `above`."),
    ] = msgspec.field(default="", name="from")
    max_tokens: Annotated[Whole, Meta(description="The most tokens that one output can use.")] = 0
    max_seconds: Annotated[
        Whole, Meta(description="Priced by the compute second: the most that one call can take, which is held.")
    ] = 300
    source: Annotated[Text, Meta(description="Where the price comes from.")] = "penstock.toml"
    as_of: Annotated[Text, Meta(description="The date of the price.")] = ""

    def __post_init__(self) -> None:
        """Raise ValueError unless there is one price for the output."""
        if (self.usd is UNSET) == (self.output_usd is UNSET):
            raise ValueError("needs usd or output_usd, and not both")


Prices = PriceTable | list[PriceTable]


class ModelChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table `[models."id"]`: what changes about a model that exists already."""

    price: (
        Annotated[Prices, Meta(description="A price, or a list of them of which the first that applies counts.")]
        | UnsetType
    ) = UNSET
    priority: Annotated[Whole, Meta(description="Lower is tried first.")] | UnsetType = UNSET
    weight: (
        Annotated[int, Meta(ge=1, description="Share of the calls among providers of the same priority.")] | UnsetType
    ) = UNSET
    aliases: Annotated[tuple[Text, ...], Meta(description="Other names of the model.")] | UnsetType = UNSET
    enabled: Annotated[bool, Meta(description="False switches the model off.")] | UnsetType = UNSET
    max_image_tokens: (
        Annotated[Whole, Meta(description="Chat: the most input tokens that one image can count as.")] | UnsetType
    ) = UNSET
    max_sound_tokens: (
        Annotated[Whole, Meta(description="Chat: the most input tokens that a second of sound can count as.")]
        | UnsetType
    ) = UNSET
    upstream: (
        Annotated[Text, Meta(description="The provider's own name for it, such as that of a deployment.")] | UnsetType
    ) = UNSET


class AddedModel(ModelChanges, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all tables `[[providers.slug.models]]` have."""

    id: Annotated[Text, Meta(description="The name that callers use.")]
    upstream: Annotated[
        Text, Meta(description="The provider's own name for it; otherwise the id without the provider's slug.")
    ] = ""
    name: Annotated[Text, Meta(description="The name that people see.")] = ""
    description: Annotated[Text, Meta(description="One sentence for the model list.")] = ""
    n: Annotated[
        int, Meta(ge=1, le=MAX_N, description="Images: how many one call to the server makes; 1 where it ignores `n`.")
    ] = MAX_N


class ModelTable(AddedModel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model of the operator's own server."""

    task: Annotated[Task, Meta(description="What the model does.")]
    voices: Annotated[
        tuple[Text, ...], Meta(description="Speech: the voices of the model; without them, any name is sent.")
    ] = ()
    openai_voices: Annotated[
        dict[str, Text], Meta(description="Speech: which voice speaks for each of OpenAI's names.")
    ] = {}
    asks_for_data: Annotated[
        bool,
        Meta(description="Images: ask the server for the image data, where its URLs cannot be used."),
    ] = False


class KnownProviderModel(AddedModel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A further model of a known provider."""

    task: Annotated[Task, Meta(description="What the model does; needed unless `like` says it.")] | UnsetType = UNSET
    like: Annotated[Text, Meta(description="A model of this provider that takes the same parameters.")] | UnsetType = (
        UNSET
    )
    workflow: Annotated[Text, Meta(description="ComfyUI: file of an exported workflow, in the data folder.")] = ""
    nodes: Annotated[
        dict[str, Text], Meta(description="Nodes of the workflow by what they take, such as prompt, size and seed.")
    ] = {}
    fps: Annotated[float, Meta(ge=0, le=240, description="Frames per second of the workflow's videos.")] = 0
    checkpoint: Annotated[Text, Meta(description="ComfyUI, AUTOMATIC1111: a checkpoint of the server.")] = ""
    loras: Annotated[dict[str, float], Meta(description="LoRAs of the server and their strengths.")] = {}

    @property
    def is_own(self) -> bool:
        """Whether it is the operator's own workflow or checkpoint."""
        return bool(self.workflow or self.nodes or self.checkpoint or self.loras)


class ProviderChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table `[providers.slug]` of a known provider: what changes about it."""

    base_url: Annotated[Url, Meta(description="Where the provider is.")] | UnsetType = UNSET
    key_env: Annotated[Text, Meta(description="Environment variable that holds the key.")] | UnsetType = UNSET
    catalogue_url: (
        Annotated[Url, Meta(description="Where the provider's catalogue of all its models is, if it has one.")]
        | UnsetType
    ) = UNSET
    models: Annotated[tuple[KnownProviderModel, ...], Meta(description="Further models.")] = ()
    responses: (
        Annotated[bool, Meta(description="Whether it has OpenAI's Responses API: calls of it are then passed on.")]
        | UnsetType
    ) = UNSET
    extra_fields: Annotated[
        tuple[Text, ...],
        Meta(description="Chat on a server of your own: further fields of callers that are sent to it."),
    ] = ()


class AuthTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the key is sent to a server that does not take it as `Authorization: Bearer KEY`."""

    header: Annotated[HeaderName, Meta(description="The header that has the key.")]
    prefix: Annotated[HeaderText, Meta(description="What comes before the key.")] = ""

    def __post_init__(self) -> None:
        """Raise ValueError if the gateway needs the header for something else."""
        if self.header.lower() in _OWN_HEADERS - {"authorization"}:
            raise ValueError(f"cannot use the header {self.header}, which the gateway writes itself")


class ProviderTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table `[providers.slug]` of the operator's own: a server with OpenAI's API."""

    speaks: Annotated[Literal["openai"], Meta(description="The API of the server.")]
    base_url: Annotated[Url, Meta(description="Where the server is.")]
    key_env: Annotated[Text, Meta(description="Environment variable that holds the key.")] = ""
    auth: Annotated[AuthTable, Meta(description="How the key is sent; otherwise as a bearer token.")] | UnsetType = (
        UNSET
    )
    headers: Annotated[dict[str, HeaderText], Meta(description="Further headers of every request.")] = {}
    query: Annotated[dict[str, HeaderText], Meta(description="Query parameters of every request.")] = {}
    models: Annotated[tuple[ModelTable, ...], Meta(description="The models it serves.")] = ()
    name: Annotated[Text, Meta(description="The name that people see.")] = ""
    priority: Annotated[Whole, Meta(description="Of its models, unless they have their own.")] = 0
    responses: Annotated[
        bool, Meta(description="Whether it has OpenAI's Responses API: calls of it are then passed on.")
    ] = False
    extra_fields: Annotated[
        tuple[Text, ...],
        Meta(description="Chat on a server of your own: further fields of callers that are sent to it."),
    ] = ()
    callback_field: Annotated[Text, Meta(description="Field of a video job for the callback URL.")] = ""
    callback_key_env: Annotated[
        Text, Meta(description="Environment variable with the secret that signs callbacks.")
    ] = ""

    def __post_init__(self) -> None:
        """Raise ValueError if headers and key do not go together, or a header is not the operator's to set."""
        if self.auth is not UNSET and not self.key_env:
            raise ValueError("needs key_env beside auth")
        for name in self.headers:
            if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", name):
                raise ValueError("has a header whose name is not letters, digits and -")
            if name.lower() in _OWN_HEADERS:
                raise ValueError(f"cannot set the header {name}, which the gateway writes itself")
