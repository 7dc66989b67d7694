"""Read a form's flat names and texts back into the fields that a JSON body would have had."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.errors import InvalidRequest
from penstock.schema import Field, Table, UploadedFile

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
    pictures: dict[str, list[tuple[int | None, Any]]] = {}
    for name, value in form:
        base, steps = _parts(name)
        row = table.get(base)
        if row is not None and "file" in row.types:
            _add_picture(pictures.setdefault(base, []), name, steps, value)
        elif isinstance(value, UploadedFile):
            raise InvalidRequest(f"`{name}` is not a file field.", param=name)
        elif row is None:
            _put(fields, name, [base, *steps], _literal(value))
        elif steps and "object" in row.types:
            _put(fields.setdefault(base, {}), name, ["".join(steps)], value)
        else:
            _put(fields, name, [base, *steps], value if steps else _typed(base, row, value))
    for base, found in pictures.items():
        # Numbered ones in their order, then the others as they came.
        fields[base] = [one for _, one in sorted(found, key=lambda item: 100 if item[0] is None else item[0])]
    return {name: _plain(value) for name, value in fields.items()}


def _parts(name: str) -> tuple[str, list[str]]:
    match = _NAME.fullmatch(name)
    if match is None:
        return name, []
    steps = _STEP.findall(match[2])
    if len(steps) > _DEEPEST:
        raise InvalidRequest(f"`{name}` is nested too deeply.", param=name)
    return match[1], steps


# ------------------------------------------------------------------------------------------------------------ pictures


def _add_picture(found: list[tuple[int | None, Any]], name: str, steps: list[str], value: str | UploadedFile) -> None:
    """`image`, `image[]`, `image[2]`; `input_reference[image_url]` and `input_reference[][image_url]` for objects."""
    index: int | None = None
    if steps and (not steps[0] or _INDEX.fullmatch(steps[0])):
        first = steps.pop(0)
        index = int(first) if first else None
    if any(not re.fullmatch(r"[a-z_]+", step) for step in steps):
        raise InvalidRequest(f"`{name}` is no name for a picture: use `[]` or a number up to 99.", param=name)
    if index is not None and any(index == other for other, _ in found):
        raise InvalidRequest(f"`{name}` was sent twice.", param=name)
    one: Any = value if steps or isinstance(value, UploadedFile) else _object(name, value)
    for step in reversed(steps):
        one = {step: one}
    found.append((index, one))


def _object(name: str, text: str) -> Any:
    """An address, a data URI, or an object written as JSON."""
    return _decoded(name, text) if text.lstrip()[:1] in ("{", "[") else text


def _decoded(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise InvalidRequest(f"`{name}` must be an object written as JSON.", param=name) from None


# --------------------------------------------------------------------------------------------------------------- texts


class _List(dict[int, Any]):
    """A list while it grows: its items by their place."""


def _put(target: dict[Any, Any], name: str, path: list[str], value: Any) -> None:
    """`a[b]` is a field of an object, `a[]` appends to a list, `a[][b]` belongs to the first object without it."""
    key: Any = path[0]
    for position, step in enumerate(path[1:], 2):
        inside = target.setdefault(key, _List() if _is_place(step) else {})
        if not isinstance(inside, dict) or isinstance(inside, _List) != _is_place(step):
            raise InvalidRequest(f"`{name}` was sent both as one value and as several.", param=name)
        target, key = inside, _place(inside, step, path[position:]) if isinstance(inside, _List) else step
    if key in target:
        raise InvalidRequest(f"`{name}` was sent twice.", param=name)
    target[key] = value


def _is_place(step: str) -> bool:
    return not step or _INDEX.fullmatch(step) is not None


def _place(items: _List, step: str, rest: list[str]) -> int:
    if step:
        return int(step)
    if rest:
        for place, item in sorted(items.items()):
            if isinstance(item, dict) and rest[0] not in item:
                return place
    return max(items, default=-1) + 1


def _plain(value: Any) -> Any:
    if isinstance(value, _List):
        return [_plain(value[place]) for place in sorted(value)]
    return {name: _plain(one) for name, one in value.items()} if isinstance(value, dict) else value


def _typed(name: str, row: Field, text: str) -> Any:
    """Forms carry only text; what the interface calls a number or an object is read as one."""
    if "string" in row.types:
        return text
    if "object" in row.types:
        return _decoded(name, text)
    return _number(text)


def _number(text: str) -> Any:
    """A number written as JSON writes them; anything else stays text, and is refused where a number is needed."""
    if not _NUMBER.fullmatch(text):
        return text
    return float(text) if set(text) & set(".eE") else int(text)


def _literal(text: str) -> Any:
    """A field that is for the provider: text, unless it is exactly how JSON writes a number or a truth value."""
    if text in _LITERALS:
        return _LITERALS[text]
    number = _number(text)
    return number if msgspec.json.encode(number).decode() == text else text
