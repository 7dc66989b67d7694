"""What a provider's own catalogue says about its models, in one form for all providers."""

from typing import Any

import msgspec


class Underivable(Exception):
    """A model of a catalogue, or of an operator's own, cannot be offered; the message says why."""


class LiveModel(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A model as its provider's catalogue described it; stored, so that it also works while the catalogue is away."""

    name: str = ""
    description: str = ""
    category: str = ""  # the provider's word for what it does
    input: dict[str, Any] = {}  # JSON Schema of what it takes, without references to other places
    output: dict[str, Any] = {}  # JSON Schema of what it returns
    makes: str = ""  # image or video, where the schema of the output does not show it
    version: str = ""  # to be sent with the call
    prices: tuple[dict[str, Any], ...] = ()  # as the provider states them
    abilities: dict[str, Any] = {}  # of a provider that lists what a model can do instead of a schema


class FoundModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that was found by a search in a provider's catalogue."""

    upstream: str
    name: str = ""
    description: str = ""
    category: str = ""
    created: int = 0  # seconds since 1970; 0 if it is not known
