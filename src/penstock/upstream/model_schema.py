"""JSON Schema of what a model takes, out of the tables that translate it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.providers.spec import Operation, Param
from penstock.schema import TABLES, Field

# The caller's names for what provider tables call otherwise.
_SHOWN = {"frame": ("size", "aspect_ratio", "resolution"), "images": ("image",)}
_NEVER_ALONE = ("aspect_ratio", "resolution")  # where a shape is required, `size` stands for all three
_ANYTHING = ["string", "number", "boolean", "array", "object"]
_WIDENED = {"minimum": min, "maximum": max, "maxLength": max}


def schema(operations: Sequence[Operation]) -> dict[str, Any]:
    """What at least one of the ways to serve a model takes; required is what all of them require."""
    tables = [_properties(op) for op in operations]
    properties: dict[str, Any] = {}
    for table, _ in tables:
        for name, shown in table.items():
            properties[name] = _widened(properties[name], shown) if name in properties else shown
    required = [name for name in properties if all(name in needed for _, needed in tables)]
    return {"type": "object", "required": required, "properties": properties}


def _properties(op: Operation) -> tuple[dict[str, Any], set[str]]:
    properties: dict[str, Any] = {}
    required: set[str] = set()
    for name, field in TABLES[op.task].items():
        row = _row(op.params, field.same_as or name)
        if row is None or row.handling != "refused":
            properties[name] = _property(field, row)
            if field.required or (row is not None and row.required and name not in _NEVER_ALONE and not field.same_as):
                required.add(name)
    for row in op.params:
        if row.name not in _standard(op) and row.handling not in ("fixed", "refused"):
            properties[row.name] = _own(row)
            if row.required:
                required.add(row.name)
    return properties, required


def _standard(op: Operation) -> set[str]:
    return {*TABLES[op.task], *_SHOWN}


def _row(rows: Iterable[Param], name: str) -> Param | None:
    return next((row for row in rows if name in _SHOWN.get(row.name, (row.name,))), None)


def _property(field: Field, row: Param | None) -> dict[str, Any]:
    """A field of the interface, narrowed to what the model's own row allows."""
    types = list(dict.fromkeys("string" if kind == "file" else kind for kind in field.types))
    shown: dict[str, Any] = {"type": types[0] if len(types) == 1 else types, "description": field.about}
    limits = _limits(field)
    if row is not None:
        limits |= _known(_narrowed(field, row))
    shown |= _known(limits)
    if handling := row.handling if row is not None else field.handling:
        shown["x-handling"] = handling
    return shown


def _narrowed(field: Field, row: Param) -> dict[str, Any]:
    if row.name == "thinking" and row.handling == "ignored":
        return {"enum": ["off"]}
    if row.name == "frame":  # its row speaks of three fields, and its default is the size
        return {"default": row.default if field.name == "size" else None}
    limits = _limits(row)
    if row.name == "n":  # its `high` is the provider's share; the rest is emulated
        del limits["maximum"]
    return limits


def _limits(row: Field | Param) -> dict[str, Any]:
    return {
        "enum": list(row.one_of) or None,
        "minimum": row.low,
        "maximum": row.high,
        "maxLength": row.max_length,
        "default": row.default,
    }


def _known(limits: Mapping[str, Any]) -> dict[str, Any]:
    return {name: limit for name, limit in limits.items() if limit is not None}


def _own(row: Param) -> dict[str, Any]:
    """A field that only this provider has; the table knows its limits, and its type only from them."""
    shown: dict[str, Any] = {"type": _ANYTHING, "description": "A parameter of this model's provider."}
    if row.one_of:
        shown["type"] = "boolean" if isinstance(row.one_of[0], bool) else "string"
    elif row.low is not None or row.high is not None:
        shown["type"] = "number"
    elif row.max_length is not None:
        shown["type"] = "string"
    shown |= _known(_limits(row))
    shown["x-handling"] = row.handling
    return shown


def _widened(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two providers' limits of one field: what either allows."""
    wide = dict(one)
    for name, wider in _WIDENED.items():
        if name in one and name in other:
            wide[name] = wider(one[name], other[name])
        else:
            wide.pop(name, None)
    if "enum" in one and "enum" in other:
        wide["enum"] = list(dict.fromkeys([*one["enum"], *other["enum"]]))
    else:
        wide.pop("enum", None)
    return wide
