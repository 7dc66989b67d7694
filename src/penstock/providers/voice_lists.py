"""How a vendor is asked which voices an account has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec


class ListedVoice(msgspec.Struct, frozen=True, kw_only=True):
    """A voice as a vendor lists it. The values are checked after a table has read them."""

    id: str
    name: str = ""
    description: str = ""
    languages: tuple[str, ...] = ()  # empty: not tied to one, or not known
    gender: str = ""
    models: tuple[str, ...] | None = None  # the vendor's names of the models that have it; None: all
    sample: str = ""  # where it can be heard: a URL, or a path at the vendor
    is_own: bool = False  # of the account, not one that every account has


class VoicePage(NamedTuple):
    """One page of a list."""

    voices: tuple[ListedVoice, ...]
    following: Mapping[str, Any] = {}  # the parameters that ask for the next page; empty: it is the last one


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceList:
    """The call that lists the voices of an account."""

    send: str  # "GET /voices?limit=100", or relative to the base URL: "GET ../v2/voices"
    read: Callable[[Any], VoicePage]  # from the JSON of a reply
    body: Any = None
    private_samples: bool = False  # they are at the vendor itself, and need the credential
