"""The fields of a model's input that are not recognised yet, and what can be said about one of them."""

from collections.abc import Callable, Mapping
from re import Pattern
from typing import Any, NamedTuple

from penstock.json_schema import Schema
from penstock.providers.spec import Param

# Fields that would change how the result comes back, or that the gateway sets itself. They are never sent.
_NEVER_TAKEN = frozenset(
    "sync_mode webhook webhook_url webhook_secret webhook_events_filter callback callback_url stream".split()
)


class ProviderField(NamedTuple):
    """A field of the provider, as its schema describes it."""

    name: str
    schema: Schema
    is_required: bool

    @property
    def default(self) -> Any:
        return self.schema.get("default")


class Draft:
    """What is left of a schema's fields while rows are made from them."""

    def __init__(self, schema: Schema) -> None:
        properties = schema.get("properties") or {}
        self._left = {name: each for name, each in properties.items() if name not in _NEVER_TAKEN}
        self._required = frozenset(schema.get("required") or ())

    @property
    def required(self) -> list[str]:
        """The names of the required fields that are left."""
        return [name for name in self._left if name in self._required]

    def fields(self) -> list[ProviderField]:
        """All fields that are left; they stay."""
        return [self._field(name, schema) for name, schema in self._left.items()]

    def find(self, names: tuple[str, ...], fits: Callable[[Schema], bool]) -> ProviderField | None:
        """The first field of one of these names that fits; it stays where it is."""
        for name in names:
            schema = self._left.get(name)
            if schema is not None and fits(schema):
                return self._field(name, schema)
        return None

    def take(self, names: tuple[str, ...], fits: Callable[[Schema], bool]) -> ProviderField | None:
        """As `find`, and the field is no longer among those that are left."""
        found = self.find(names, fits)
        if found is not None:
            del self._left[found.name]
        return found

    def take_required(self, names: Pattern[str], fits: Callable[[Schema], bool]) -> ProviderField | None:
        """As `take`, for a required field whose name has something of the pattern in it."""
        return self.take(tuple(name for name in self.required if names.search(name)), fits)

    def take_rest(self) -> list[ProviderField]:
        """All fields that are left."""
        rest = self.fields()
        self._left.clear()
        return rest

    def _field(self, name: str, schema: Schema) -> ProviderField:
        return ProviderField(name, schema, name in self._required)


def row_for(name: str, field: ProviderField, **limits: Any) -> Param:
    """The row that sends a field of the interface as a field of the provider."""
    handling: Any = "passthrough" if name == field.name else "renamed"
    return Param(name=name, handling=handling, to=(field.name,), **limits)


def kinds(schema: Schema) -> set[str]:
    """The JSON types that a schema allows, as far as it says."""
    choices = schema.get("anyOf") or (schema,)
    return {kind for choice in choices if isinstance(kind := choice.get("type"), str)}


def is_text(schema: Schema) -> bool:
    return "string" in kinds(schema) and not choices(schema)


def is_number(schema: Schema) -> bool:
    return bool({"integer", "number"} & kinds(schema))


def is_switch(schema: Schema) -> bool:
    return kinds(schema) == {"boolean"}


def is_list_of_text(schema: Schema) -> bool:
    return any(
        choice.get("type") == "array" and is_text(choice.get("items") or {"type": "string"})
        for choice in schema.get("anyOf") or (schema,)
    )


def is_any(schema: Schema) -> bool:
    return isinstance(schema, Mapping)


def choices(schema: Schema) -> list[Any]:
    """The values that a schema lists, in one of its alternatives or itself."""
    if schema.get("enum"):
        return list(schema["enum"])
    return [value for choice in schema.get("anyOf") or () for value in choice.get("enum") or ()]


def limit(schema: Schema, keyword: str) -> float | None:
    """A number that a schema or one of its alternatives sets."""
    for part in (schema, *(schema.get("anyOf") or ())):
        value = part.get(keyword)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
    return None
