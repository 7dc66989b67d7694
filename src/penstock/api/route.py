"""The types that routes are declared with: route, query parameter, header."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from penstock.fields import Table
from penstock.gateway import Gateway
from penstock.schema import Call, Response

Endpoint = Callable[[Gateway, Call], Awaitable[Response]]
# `admin` is for the data of the key's own organization, `operator` for that of the whole installation, `metrics` for
# its figures.
Access = Literal["key", "admin", "operator", "metrics", "open", "signed"]
# The endpoint itself decodes a raw body. Where every call is refused, a body is left unread.
Takes = Literal["nothing", "unread", "raw", "json", "form", "json or form"]


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A query parameter: what is accepted, and its description in the OpenAPI document."""

    name: str
    about: str
    # `labels`: any number of parameters whose names begin with this one, such as `label.customer`.
    type: Literal["string", "integer", "boolean", "time", "labels"] = "string"
    default: Any = None
    required: bool = False
    low: int | None = None
    high: int | None = None
    one_of: tuple[str, ...] = ()


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """A request header that an endpoint reads and checks."""

    name: str
    about: str
    one_of: tuple[str, ...] = ()
    default: str | None = None


class Route(msgspec.Struct, frozen=True):
    """One method of one path. It needs a key unless `access` says otherwise."""

    method: str
    path: str
    endpoint: Endpoint
    summary: str
    access: Access = "key"
    takes: Takes = "nothing"
    fields: Table | None = None  # rows of the body
    query: tuple[Query, ...] = ()
    headers: tuple[Header, ...] = ()
    gives: str = ""  # name of the response's schema in `response_schemas`
    status: int = 200
    also: tuple[tuple[int, str], ...] = ()  # further responses: status and schema
    modality: str | None = None
    kind: str | None = None  # of its refused calls in the records
    is_voice_list: bool = False  # needs no key where `open_voice_list` is set
    is_public_verify: bool = False  # served where `public_verify` is set, and a file only a few times a minute
    is_tagged: bool = False  # its response has an entity tag, and status 304 for a caller who has it already
    # May call a provider and cost money: refusals are recorded, and every error says whether repeating it is safe.
    generation: bool = False
    gives_sound: bool = False  # its response is a sound, unless it is one of the others
    gives_text: bool = False  # its response may be a text or events
    # Refused once the process has been told to stop.
    drains: bool = False
    is_vote: bool = False  # for anybody who has the link of a trial: its body is small, and its calls are counted
    needs_key: bool = True  # follows from `access`

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "needs_key", self.access not in ("open", "signed"))

    @property
    def takes_work(self) -> bool:
        """Whether each call counts as a request of its key, also a refused one and a dry run."""
        return self.method == "POST" and self.needs_key

    @property
    def refuses_unknown_query(self) -> bool:
        """Whether an unknown query parameter is an error: it may be a misspelt one that matters, such as `dryRun`. To
        other paths of the compatible API, clients may add their own.

        OPTIONS and methods that the path does not have take no parameters, and get the same response with any.
        """
        is_strict = self.path.startswith(("/v1/", "/compat/v1/videos")) or self.generation
        return is_strict and self.method != "OPTIONS" and self.takes != "unread"

    @property
    def takes_files(self) -> bool:
        """Whether a field of the body may be a file."""
        return any("file" in field.types for field in (self.fields or {}).values())

    @property
    def takes_rows(self) -> bool:
        """Whether the file of a form has rows of a batch or prompts of a trial, and may be larger than an image."""
        return self.path in ("/v1/batches", "/v1/trials", "/compat/v1/files")

    @property
    def larger_files(self) -> str:
        """The setting, without its ending `_bytes`, of the size of files in a form that may be larger than images."""
        if self.takes_rows:
            return "form"
        return "input_audio" if self.takes_sounds else "input_video" if self.takes_any_file else ""

    @property
    def takes_any_file(self) -> bool:
        """Whether the file of a form may also be a video."""
        return self.path in ("/v1/verify", "/verify")

    @property
    def takes_sounds(self) -> bool:
        """Whether the files of a form are sounds, which may be larger than images."""
        return "input_audio" in (self.fields or {})
