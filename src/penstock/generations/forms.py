"""Read the flat names and texts of a form into the fields that a JSON body would have."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.errors import InvalidRequest
from penstock.fields import Field, Table, UploadedFile

# `input_reference[0][image_url]`: OpenAI's clients write lists and objects this way.
_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_STEP = re.compile(r"\[([^\[\]]*)\]")
_INDEX = re.compile(r"[0-9]{1,2}")
_DEEPEST = 4
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?")
_LITERALS = {"true": True, "false": False}


def read(form: Sequence[tuple[str, str | UploadedFile]], table: Table) -> dict[str, Any]:
    """The form as one mapping. Names in brackets nest, fields that hold files become lists."""
    fields: dict[str, Any] = {}
    inputs: dict[str, list[tuple[int | None, Any]]] = {}
    for name, value in form:
        base, steps = _parts(name)
        row = table.get(base)
        if row is not None and row.types == ("array",) and not steps:
            steps = [""]  # a name that is repeated without brackets means the same
        if row is not None and "file" in row.types:
            if _is_empty(value):
                continue
            _add_input(inputs.setdefault(base, []), name, steps, value)
        elif isinstance(value, UploadedFile):
            raise InvalidRequest(f"`{name}` is not a file field.", param=name)
        elif row is None or (row.has_parts and steps):
            _put(fields, name, [base, *steps], _literal(value))
        elif steps and "object" in row.types:
            _put(fields.setdefault(base, {}), name, ["".join(steps)], value)
        elif value or steps or "string" in row.types or "object" in row.types:  # others are absent if they are empty
            _put(fields, name, [base, *steps], value if steps else _typed(base, row, value))
    for base, items in inputs.items():
        # Numbered ones in their order, then the others as they came.
        fields[base] = [value for _, value in sorted(items, key=lambda item: 100 if item[0] is None else item[0])]
    return {name: _plain(value) for name, value in fields.items()}


def _is_empty(value: str | UploadedFile) -> bool:
    """Whether a form has no input here: browsers send an empty part for a file that was not chosen."""
    return not value if isinstance(value, str) else not value.data and not value.filename


def _parts(name: str) -> tuple[str, list[str]]:
    match = _NAME.fullmatch(name)
    if match is None:
        return name, []
    steps = _STEP.findall(match[2])
    if len(steps) > _DEEPEST:
        raise InvalidRequest(f"`{name}` is nested too deeply.", param=name)
    return match[1], steps


# -------------------------------------------------------------------------------------------------------------- inputs


def _add_input(items: list[tuple[int | None, Any]], name: str, steps: list[str], value: str | UploadedFile) -> None:
    """Add an input image. Its name is `image`, `image[]` or `image[2]`; for objects `input_reference[image_url]` or
    `input_reference[][image_url]`.
    """
    index: int | None = None
    if steps and (not steps[0] or _INDEX.fullmatch(steps[0])):
        first = steps.pop(0)
        index = int(first) if first else None
    if any(not re.fullmatch(r"[a-z_]+", step) for step in steps):
        raise InvalidRequest(f"`{name}` is not a name for an input image: use `[]` or a number up to 99.", param=name)
    if index is not None and any(index == other for other, _ in items):
        raise InvalidRequest(f"`{name}` was sent twice.", param=name)
    item: Any = value if steps or isinstance(value, UploadedFile) else _object(name, value)
    for step in reversed(steps):
        item = {step: item}
    items.append((index, item))


def _object(name: str, text: str) -> Any:
    """A URL or a data URI as it is; an object written as JSON is decoded."""
    return _decode(name, text) if text.lstrip()[:1] in ("{", "[") else text


def _decode(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise InvalidRequest(f"`{name}` must be an object written as JSON.", param=name) from None


# --------------------------------------------------------------------------------------------------------------- texts


class _List(dict[int, Any]):
    """A list while it is built: its items by their index."""


def _put(target: dict[Any, Any], name: str, path: list[str], value: Any) -> None:
    """Set a value: `a[b]` is a field of an object, `a[]` appends to a list, `a[][b]` belongs to the first object of the
    list that has no `b`.
    """
    key: Any = path[0]
    for position, step in enumerate(path[1:], 2):
        inside = target.setdefault(key, _List() if _is_index(step) else {})
        if not isinstance(inside, dict) or isinstance(inside, _List) != _is_index(step):
            raise InvalidRequest(f"`{name}` was sent both as one value and as several.", param=name)
        target = inside
        key = _index_of(inside, step, path[position:]) if isinstance(inside, _List) else step
    if key in target:
        raise InvalidRequest(f"`{name}` was sent twice.", param=name)
    target[key] = value


def _is_index(step: str) -> bool:
    return not step or _INDEX.fullmatch(step) is not None


def _index_of(items: _List, step: str, rest: list[str]) -> int:
    if step:
        return int(step)
    if rest:
        for index, item in sorted(items.items()):
            if isinstance(item, dict) and rest[0] not in item:
                return index
    return max(items, default=-1) + 1


def _plain(value: Any) -> Any:
    if isinstance(value, _List):
        return [_plain(value[index]) for index in sorted(value)]
    return {name: _plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def _typed(name: str, row: Field, text: str) -> Any:
    """The value of a known field: a form carries only text, which is read as the field's type."""
    if "string" in row.types:
        return text
    if "object" in row.types:
        return _decode(name, text) if text else {}  # clients write an empty object as an empty part
    if "boolean" in row.types:
        return _LITERALS.get(text.lower(), text)
    return _number(text)


def _number(text: str) -> Any:
    """A number if the text is one in JSON; any other text as it is, which is refused later."""
    if not _NUMBER.fullmatch(text):
        return text
    return float(text) if set(text) & set(".eE") else int(text)


def _literal(text: str) -> Any:
    """The value of an unknown field: text, unless it is exactly how JSON writes a number or a boolean."""
    if text in _LITERALS:
        return _LITERALS[text]
    number = _number(text)
    if number is text:
        return text
    return number if msgspec.json.encode(number).decode() == text else text
