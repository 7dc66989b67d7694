"""Turns descriptions of requests into JSON Schemas that also refuse unknown fields."""

import inspect
import types
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import pydantic
from typing_extensions import is_typeddict

Schema = dict[str, Any]
_COMPOSED = ("allOf", "anyOf", "oneOf")
_PLAIN_TYPES: Mapping[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
}


def closed(node: Any) -> Any:
    """A schema in which objects have no other fields than those described, and OpenAPI's `nullable` has its meaning."""
    opened = open_parts(node)
    if isinstance(opened, dict) and _is_object(opened):
        opened.setdefault("unevaluatedProperties", False)
    if isinstance(node, dict) and node.get("nullable") is True:
        return {"anyOf": [opened, {"type": "null"}]}
    return opened


def _is_object(schema: Schema) -> bool:
    if schema.get("additionalProperties") not in (None, False):
        return False
    return "properties" in schema or "$ref" in schema or any(name in schema for name in _COMPOSED)


def open_parts(node: Any) -> Any:
    """The schema with closed fields and items. Parts of a composed schema stay open, because the whole is closed."""
    if not isinstance(node, dict):
        return node
    schema: Schema = {}
    for name, part in node.items():
        if name == "properties":
            schema[name] = {field: closed(inner) for field, inner in part.items()}
        elif name in ("items", "additionalProperties"):
            schema[name] = closed(part)
        elif name in _COMPOSED:
            schema[name] = [open_parts(inner) for inner in part]
        elif name == "additionalProperties" and part is False:
            continue
        elif name not in ("nullable", "discriminator", "example", "examples", "description", "title", "default"):
            schema[name] = part
    return schema


def opened(node: Any) -> Any:
    """A closed schema in which objects may have more fields: for replies, which may gain some at any time."""
    if isinstance(node, list):
        return [opened(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {name: opened(part) for name, part in node.items() if name != "unevaluatedProperties"}


def of_pydantic(model: type[pydantic.BaseModel]) -> Schema:
    """The schema of a pydantic model, under the names on the wire."""
    described = model.model_json_schema(by_alias=True)
    parts = {name: open_parts(part) for name, part in described.pop("$defs", {}).items()}
    return {**closed(described), "$defs": parts}


def of_type(hint: Any) -> Schema:
    """The schema of a type as the parameters of generated clients have them; types of files are anything."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return of_type(arguments[0])
    if origin in (Required, NotRequired):
        return of_type(arguments[0])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [of_type(argument) for argument in arguments]}
    if is_typeddict(hint):
        return _of_typed_dict(hint)
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": of_type(arguments[1])}
    if arguments and (getattr(origin, "__name__", "") == "SequenceNotStr" or _is_iterable(origin)):
        return {"type": "array", "items": of_type(arguments[0])}
    return dict(_PLAIN_TYPES.get(hint, {}))


def _is_iterable(origin: Any) -> bool:
    return inspect.isclass(origin) and issubclass(origin, Iterable)


def _of_typed_dict(kind: Any) -> Schema:
    hints = get_type_hints(kind, include_extras=True)
    wire_names = {name: _wire_name(name, hint) for name, hint in hints.items()}
    return {
        "type": "object",
        "properties": {wire_names[name]: of_type(hint) for name, hint in hints.items()},
        "required": [wire_names[name] for name, hint in hints.items() if _is_required(kind, hint)],
        "additionalProperties": False,
    }


def _is_required(kind: Any, hint: Any) -> bool:
    """Whether a field is required. `__required_keys__` does not know it where annotations are texts."""
    return get_origin(hint) is Required or (kind.__total__ and get_origin(hint) is not NotRequired)


def _wire_name(name: str, hint: Any) -> str:
    """The name on the wire: the alias in an annotation, where clients have another name in Python."""
    if get_origin(hint) in (Required, NotRequired):
        return _wire_name(name, get_args(hint)[0])
    aliases = [getattr(note, "alias", None) for note in getattr(hint, "__metadata__", ())]
    return next((alias for alias in aliases if alias), name)


def property_names(schema: Schema, root: Schema) -> set[str]:
    """The names of the fields of an object that a schema describes, in any of its forms; `root` has its references."""
    names = set(schema.get("properties", ()))
    if "$ref" in schema:
        part: Any = root
        for key in schema["$ref"].removeprefix("#/").split("/"):
            part = part[key]
        names |= property_names(part, root)
    for composed in _COMPOSED:
        for part in schema.get(composed, ()):
            names |= property_names(part, root)
    return names
