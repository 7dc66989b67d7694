"""JSON Schema of the parameters of a model, from the tables that translate them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.fields import TABLES, TRANSCRIPT_FORMS, Field
from penstock.providers.row_names import INTERNAL, fields_of
from penstock.providers.spec import Operation, Param, Transcription
from penstock.sound.formats import FILE_FORMATS
from penstock.values import INPUT_VIDEOS

_OPTIONAL = ("aspect_ratio", "resolution")  # where a frame is required, only `size` is marked
_ANY_TYPE = ["string", "number", "boolean", "array", "object"]
# How two limits of each kind are combined.
_WIDER_LIMITS: Mapping[str, Callable[[Any, Any], Any]] = {
    "minimum": min,
    "maximum": max,
    "maxLength": max,
    "enum": lambda values, others: list(dict.fromkeys([*values, *others])),
}


def schema(operations: Sequence[Operation]) -> dict[str, Any]:
    """The parameters that at least one operation takes; required are those that all of them require."""
    tables = [_properties(op) for op in operations]
    properties: dict[str, Any] = {}
    for table, _ in tables:
        for name, described in table.items():
            properties[name] = _widen(properties[name], described) if name in properties else described
    required = [name for name in properties if all(name in required for _, required in tables)]
    return {"type": "object", "required": required, "properties": properties}


def _properties(op: Operation) -> tuple[dict[str, Any], set[str]]:
    """The properties of one operation's schema, and the names of the required ones."""
    properties: dict[str, Any] = {}
    required: set[str] = set()
    for name, field in TABLES[op.task].items():
        rows = [row for row in op.params if (field.alias_of or name) in fields_of(row.name)]
        taken = [row for row in rows if row.handling != "refused"]
        is_refused = name == "resolution" and any(row.name == name and row.handling == "refused" for row in rows)
        if (taken and not is_refused) or not rows:
            properties[name] = _property(field, taken)
            if _is_required(op, field, taken):
                required.add(name)
    if op.transcription is not None:
        properties["response_format"]["enum"] = _transcript_forms(op.transcription)
    for row in op.params:
        is_for_callers = row.name not in INTERNAL and row.handling not in ("fixed", "refused")
        if is_for_callers and row.name not in TABLES[op.task]:
            properties[row.name] = _provider_property(row)
            if row.required:
                required.add(row.name)
    return properties, required


def _transcript_forms(spec: Transcription) -> list[str]:
    """The forms of a transcript that can be made of what a model tells."""
    missing = {"srt", "vtt", "verbose_json", "diarized_json"} if spec.asked("segment") is None else set()
    if spec.speakers is None:
        missing.add("diarized_json")
    return [form for form in TRANSCRIPT_FORMS if form not in missing]


def _is_required(op: Operation, field: Field, rows: Sequence[Param]) -> bool:
    """Whether a caller must write a field of the interface; without a prompt, only an input video may be changed."""
    if any(row.required for row in rows) and field.name not in _OPTIONAL and not field.alias_of:
        return True
    changes_video = any((video := op.param(name)) is not None and video.required for name in INPUT_VIDEOS)
    return field.required and not (changes_video and field.name == "prompt")


def _property(field: Field, rows: Sequence[Param]) -> dict[str, Any]:
    """A field of the interface, limited to what the model's rows for it allow.

    Only `input_reference` can have several rows: for images, and for a video. They have no limits that a schema shows.
    """
    types = list(dict.fromkeys("string" if kind == "file" else kind for kind in field.types))
    described: dict[str, Any] = {"type": types[0] if len(types) == 1 else types, "description": field.about}
    limits = _limits(field)
    if rows:
        limits |= _known(_narrower_limits(field, rows[0]))
    described |= _known(limits)
    if handling := rows[0].handling if rows else field.handling:
        described["x-handling"] = handling
    if sent_as := _sent_as(field.name, rows):
        described["x-sent-as"] = sent_as
    return described


def _sent_as(name: str, rows: Iterable[Param]) -> str | None:
    """The provider's names for a field; None when it is not sent, or under its own name."""
    names = tuple(dict.fromkeys(to for row in rows for to in row.to))
    return ", ".join(names) if names and names != (name,) else None


def _narrower_limits(field: Field, row: Param) -> dict[str, Any]:
    if row.name == "thinking" and row.handling == "ignored":
        return {"enum": ["off"]}
    if row.name == "frame":  # the row is for three fields, and its default is the size
        return {"default": row.default if field.name == "size" else None}
    limits = _limits(row)
    if row.name == "n":  # `high` is the limit of one call to the provider; the gateway makes several calls
        del limits["maximum"]
    if field.one_of == FILE_FORMATS:  # the default is what the model makes; callers get that of the interface
        del limits["default"]
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


def _provider_property(row: Param) -> dict[str, Any]:
    """A field that only this provider has. The table does not name its type; some limits show it."""
    described: dict[str, Any] = {"type": _ANY_TYPE, "description": "A parameter of this model's provider."}
    if row.schema is not None:
        described |= row.schema
    elif row.one_of:
        described["type"] = "boolean" if isinstance(row.one_of[0], bool) else "string"
    elif row.low is not None or row.high is not None:
        described["type"] = "number"
    elif row.max_length is not None:
        described["type"] = "string"
    described |= _known(_limits(row))
    described["x-handling"] = row.handling
    if sent_as := _sent_as(row.name, [row]):
        described["x-sent-as"] = sent_as
    return described


def _widen(described: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """A field with the limits of two operations combined: what either of them allows."""
    wide = dict(described)
    for name, wider in _WIDER_LIMITS.items():
        if name in wide and name in other:
            wide[name] = wider(wide[name], other[name])
        else:
            wide.pop(name, None)
    return wide
