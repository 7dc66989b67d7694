"""Read the guards that an operator describes in penstock.toml."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from penstock.errors import quoted
from penstock.typed_config import Misconfigured, Text, convert
from penstock.values import OrgId

GuardedKind = Literal["image", "edit", "video", "chat", "speech", "sound", "transcription"]
_RUNS = ("rules", "http", "model")
_SHOWN_KINDS = ("image", "edit", "video")  # whose outputs are shown to services and models
_WRITTEN_KINDS = ("chat", "transcription")  # whose outputs are texts
_SERVICE_URL = r"^(?!.*\s)https?://[^\s/?#@]+(/[^\s#]*)?$"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the gateway itself looks for in a prompt."""

    words: tuple[Text, ...] = ()  # or phrases; with `*` at the end also longer words
    max_characters: Annotated[int, Meta(gt=0)] | None = None
    models_without_images: tuple[Text, ...] = ()  # ids of models, or beginnings that end with `*`


class Service(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A service that is asked about each call."""

    url: Annotated[str, Meta(pattern=_SERVICE_URL, title="https://host[:port] with a path")]
    timeout_seconds: Annotated[float, Meta(gt=0, le=10)] = 5.0
    sends_images: bool = False  # input images up to a mebibyte, in base64


class Judge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A chat model of the gateway that is asked about each call."""

    model: Text
    question: Annotated[str, Meta(min_length=1, max_length=4000)]  # what it is to refuse, in the operator's words
    timeout_seconds: Annotated[float, Meta(gt=0, le=60)] = 20.0
    sends_images: bool = False  # input images as for services; needs a model that sees
    pays: Literal["organization", "operator"] = "organization"


class Guard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One check, and what follows from it."""

    name: str
    kinds: tuple[GuardedKind, ...] = ()  # empty: all
    orgs: tuple[Text, ...] = ()  # ids of organizations; empty: all
    rules: Rules | None = None
    http: Service | None = None
    model: Judge | None = None
    when: Literal["input", "output"] = "input"
    on_hit: Literal["refuse", "flag"] = "refuse"
    on_error: Literal["closed", "open"] = "closed"
    show_reason: bool = False
    charge_refused: bool = True  # of outputs: the provider was paid
    sample_percent: Annotated[float, Meta(gt=0, le=100)] = 100  # of the calls that it is asked about
    buffer_stream: bool = True  # of outputs: whether a streamed answer is held back until it was read

    def __post_init__(self) -> None:
        """Raise ValueError for what the types cannot check."""
        if [self.rules, self.http, self.model].count(None) != len(_RUNS) - 1:
            raise ValueError(f"must have one of {quoted(_RUNS)}")
        if self.http and self.http.url.startswith("http:") and urlsplit(self.http.url).hostname not in _LOOPBACK:
            raise ValueError("must have an https URL in `http`; plain http may go only to this machine")

        if self.when == "output":
            known = _WRITTEN_KINDS if self.rules else (*_SHOWN_KINDS, *_WRITTEN_KINDS)
            if not set(self.kinds) <= set(known):
                raise ValueError(f"must have only the kinds {quoted(known)} where `when` is `output`")

    def watches(self, kind: str, org_id: OrgId, when: str) -> bool:
        if self.when != when or (when == "output" and not self._sees(kind)):
            return False
        return (not self.kinds or kind in self.kinds) and (not self.orgs or org_id in self.orgs)

    def is_asked_about(self, call_id: str) -> bool:
        """Whether a call is in the sample of the guard; a call that is repeated under its id is or is not again."""
        if self.sample_percent >= 100:
            return True
        digest = sha256(f"{self.name}\n{call_id}".encode()).digest()
        return int.from_bytes(digest[:8], "big") < self.sample_percent / 100 * 2**64

    @property
    def watched_kinds(self) -> tuple[str, ...]:
        """The kinds of calls that it watches."""
        possible = [kind for kind in get_args(GuardedKind) if self.when == "input" or self._sees(kind)]
        return tuple(kind for kind in possible if not self.kinds or kind in self.kinds)

    def _sees(self, kind: str) -> bool:
        """Whether it can judge outputs of a kind: rules read texts only."""
        return kind in _WRITTEN_KINDS or (kind in _SHOWN_KINDS and self.rules is None)


def guarded_kind(task: str) -> str:
    """What guards call the kind of a task."""
    return {"upscale": "edit", "translation": "transcription"}.get(task, task)


def read_guards(written: Mapping[str, Any]) -> tuple[Guard, ...]:
    """The guards in the order of their tables. Raises Misconfigured."""
    guards = []
    for name, table in written.items():
        if not isinstance(table, Mapping):
            raise Misconfigured(f"guards.{name} must be a table")
        guards.append(convert({**table, "name": name}, Guard, where=f"guards.{name}"))
    return tuple(guards)
