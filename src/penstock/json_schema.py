"""Read JSON Schemas that strangers wrote, within limits, and check values against them.

Only the keywords that the catalogues of providers use are read. `pattern` is left out on purpose: a stranger's regular
expression could hold up the process for minutes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

_DEPTH_MAX = 12
_PARTS_MAX = 4000
_CHOICES_SHOWN_MAX = 12
_TEXT_MAX = 300
_KEYWORDS = tuple(
    """type enum const default minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems
    maxItems format""".split()
)
_ALTERNATIVES = ("anyOf", "oneOf")
_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (Mapping,),
    "array": (list,),
    "null": (type(None),),
}
_ARTICLES = {"integer": "an integer", "object": "an object", "array": "a list", "null": "null"}


# ------------------------------------------------------------------------------------------------------------- reading


def read_schema(written: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A schema in a short form: references replaced by what they refer to, `null` and unknown keywords left out.

    `definitions` are the schemas that references name, by the last part of the reference. Raises ValueError if the
    schema is too large or too deep, TypeError if it is not a schema.
    """
    return _Reader(definitions).read(written, 0)


class _Reader:
    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._parts = 0

    def read(self, written: Any, depth: int) -> dict[str, Any]:
        self._parts += 1
        if depth > _DEPTH_MAX or self._parts > _PARTS_MAX:
            raise ValueError("the schema is too large")
        if not isinstance(written, Mapping):
            raise TypeError("a schema is not an object")
        if "$ref" in written:
            target = self._definitions.get(str(written["$ref"]).rpartition("/")[2])
            if target is None and depth:  # of a part of it nothing is known, so anything is allowed there
                target = {}
            return {**self.read(target, depth + 1), **_own_keywords(written)}
        parts = [self.read(part, depth + 1) for part in _schemas(written.get("allOf"))]
        read = _merge(parts) | _own_keywords(written)
        if properties := written.get("properties"):
            read["properties"] = {
                str(name): self.read(schema, depth + 1) for name, schema in _properties_in_order(written, properties)
            }
        if required := written.get("required"):
            read["required"] = [str(name) for name in required]
        if isinstance(written.get("items"), Mapping):
            read["items"] = self.read(written["items"], depth + 1)
        for keyword in _ALTERNATIVES:
            choices = [self.read(choice, depth + 1) for choice in _schemas(written.get(keyword))]
            read |= _join_alternatives([choice for choice in choices if choice.get("type") != "null"], read)
        return read


def _schemas(written: Any) -> Sequence[Any]:
    return written if isinstance(written, list) else ()


def _own_keywords(written: Schema) -> dict[str, Any]:
    """The keywords of a schema that are values; of several types, the first that is not null."""
    read = {name: written[name] for name in _KEYWORDS if written.get(name) is not None}
    if isinstance(read.get("type"), list):
        read["type"] = next((kind for kind in read["type"] if kind != "null"), "null")
    if not isinstance(read.get("enum", []), list):
        del read["enum"]
    for name in ("title", "description"):
        if isinstance(written.get(name), str):
            read[name] = " ".join(written[name].split())[:_TEXT_MAX]
    return read


def _properties_in_order(written: Schema, properties: Any) -> list[tuple[str, Any]]:
    """Properties in the provider's order for people, if it has one."""
    if not isinstance(properties, Mapping):
        raise TypeError("properties are not an object")
    order = written.get("x-fal-order-properties")
    if isinstance(order, list):
        names = [name for name in order if name in properties]
        return [(name, properties[name]) for name in dict.fromkeys([*names, *properties])]

    def place(item: tuple[str, Any]) -> int:
        place = item[1].get("x-order") if isinstance(item[1], Mapping) else None
        return place if isinstance(place, int) else len(properties)

    return sorted(properties.items(), key=place)


def _merge(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for part in parts:
        merged |= part
    return merged


def _join_alternatives(choices: list[dict[str, Any]], around: Schema) -> dict[str, Any]:
    """Alternatives as one schema if there is only one, or if all of them list values; else as `anyOf`."""
    if len(choices) == 1:
        return {**choices[0], **{name: around[name] for name in ("title", "description", "default") if name in around}}
    if choices and all("enum" in choice for choice in choices):
        values = [value for choice in choices for value in choice["enum"]]
        return {"type": choices[0].get("type", "string"), "enum": list(dict.fromkeys(values))}
    return {"anyOf": choices} if choices else {}


# ------------------------------------------------------------------------------------------------------------ checking


def problem(schema: Schema, value: Any) -> str | None:
    """What is wrong with a value, to be said after its name, such as "must be from 1 to 4"; None if nothing is."""
    for check in _CHECKS:
        if found := check(schema, value):
            return found
    return None


def _check_alternatives(schema: Schema, value: Any) -> str | None:
    choices = schema.get("anyOf") or ()
    problems = [problem(choice, value) for choice in choices]
    if not problems or None in problems:
        return None
    return " or ".join(dict.fromkeys(found for found in problems if found))


def _check_type(schema: Schema, value: Any) -> str | None:
    kind = schema.get("type")
    allowed = _PYTHON_TYPES.get(kind) if isinstance(kind, str) else None
    if allowed is None:
        return None
    is_whole = kind == "integer" and isinstance(value, float) and value.is_integer()
    if is_whole or (isinstance(value, allowed) and (kind == "boolean") == isinstance(value, bool)):
        return None
    return f"must be {_ARTICLES.get(str(kind), f'a {kind}')}"


def _check_choices(schema: Schema, value: Any) -> str | None:
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if not choices or value in choices:
        return None
    shown = ", ".join(f"`{choice}`" for choice in choices[:_CHOICES_SHOWN_MAX])
    return f"must be one of {shown}" + (" and others" if len(choices) > _CHOICES_SHOWN_MAX else "")


def _check_range(schema: Schema, value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    low, high = _number(schema, "minimum"), _number(schema, "maximum")
    above, below = _number(schema, "exclusiveMinimum"), _number(schema, "exclusiveMaximum")
    if (low is not None and value < low) or (high is not None and value > high):
        return f"must be {_range(low, high)}"
    if above is not None and value <= above:
        return f"must be above {above}"
    return f"must be below {below}" if below is not None and value >= below else None


def _number(schema: Schema, keyword: str) -> float | None:
    """A limit that a schema sets; None if it sets none, or something that is not a number."""
    value = schema.get(keyword)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _range(low: Any, high: Any) -> str:
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"from {low} to {high}"


_LENGTHS = ((str, "characters", "minLength", "maxLength"), (list, "items", "minItems", "maxItems"))


def _check_length(schema: Schema, value: Any) -> str | None:
    for kind, noun, low, high in _LENGTHS:
        if isinstance(value, kind):
            most, least = _number(schema, high), _number(schema, low)
            if most is not None and len(value) > most:
                return f"may have at most {most} {noun}"
            if least is not None and len(value) < least:
                return f"must have at least {least} {noun}"
    return None


def _check_items(schema: Schema, value: Any) -> str | None:
    if isinstance(value, list) and (items := schema.get("items")):
        for number, item in enumerate(value):
            if found := problem(items, item):
                return f"has a wrong item {number}, which {found}"
    return None


def _check_properties(schema: Schema, value: Any) -> str | None:
    properties = schema.get("properties")
    if not isinstance(value, Mapping) or not properties:
        return None
    if missing := [name for name in schema.get("required", ()) if name not in value]:
        return f"lacks `{missing[0]}`"
    for name, part in value.items():
        if name in properties and part is not None and (found := problem(properties[name], part)):
            return f"has a wrong `{name}`, which {found}"
    return None


_CHECKS: tuple[Callable[[Schema, Any], str | None], ...] = (
    _check_alternatives,
    _check_type,
    _check_choices,
    _check_range,
    _check_length,
    _check_items,
    _check_properties,
)
