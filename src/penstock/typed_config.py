"""Convert what an operator wrote into a struct, or say in words what is allowed instead.

Error messages name the place and what is allowed there. They never repeat the value: it may be a secret that was put
in the wrong place.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, inspect

T = TypeVar("T")

# A `title` in the Meta of a type is what error messages and editors say about it.
Text = Annotated[str, Meta(pattern=r"\S", title="text that is not empty")]
Count = Annotated[int, Meta(gt=0)]
Seconds = Annotated[float, Meta(gt=0, le=1e9)]
Pause = Annotated[float, Meta(ge=0, le=1e9)]
RetentionTime = Annotated[
    str, Meta(pattern=r"^(?!.*\s)[1-9][0-9]{0,5}[hd]$", title="a number of hours or days such as 12h or 7d")
]
Secret = Annotated[str, Meta(pattern=r"^([\s\S]{32,})?$", title="at least 32 characters long, or empty")]
Dollars = Annotated[
    str,
    Meta(
        pattern=r"^(?!.*\s)[0-9]{1,9}(\.[0-9]+)?([eE]-[0-9]{1,3})?$",
        title='an amount of dollars as text, such as "0.04"',
    ),
]
PublicUrl = Annotated[
    str,
    Meta(
        pattern=r"^(?!.*\s)(https?://[^\s/?#@]+(/[^\s?#]*)?)?$",
        title="http(s)://host[:port], with a path if needed, or empty",
    ),
]
WebhookUrl = Annotated[
    str,
    Meta(pattern=r"^(?!.*\s)(https?://[^\s/?#@]+(/[^\s#]*)?)?$", title="https://host[:port] with a path, or empty"),
]
Database = Annotated[
    str, Meta(pattern=r"^(postgres(ql)?://\S+)?$", title="postgresql://user:password@host/database, or empty")
]
HostName = Annotated[
    str,
    Meta(pattern=r"^([^\s/:@*]+|\[?[0-9a-fA-F.]*(:[0-9a-fA-F.]*){2,}\]?)$", title="a host name or IP address alone"),
]
Origin = Annotated[
    str, Meta(pattern=r"^(\*|https?://[^\s/?#@,]+)$", title="https://host[:port] without a path, or `*` for all")
]

_WORDS = {
    inspect.BoolType: "true or false",
    inspect.StrType: "text",
    inspect.CustomType: "a path",
    inspect.StructType: "a table",
}
_PLURALS = {inspect.StructType: "tables", inspect.FloatType: "numbers"}
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


class Misconfigured(ValueError):
    """A setting or a table of penstock.toml is not as it must be; the message names the place."""


def convert(written: Any, kind: type[T], *, where: str = "", strict: bool = True) -> T:
    """`written` as a `kind`. `where` is its place in penstock.toml, such as `providers.lab`.

    Raises Misconfigured. A ValueError of a `__post_init__` continues the sentence that begins with the place.
    """
    try:
        return msgspec.convert(written, kind, strict=strict, dec_hook=_decode)
    except msgspec.ValidationError as problem:
        raise Misconfigured(_explanation(problem, inspect.type_info(kind), written, where)) from None


def _decode(kind: type, value: Any) -> Any:
    """The one type here that msgspec does not know."""
    if kind is not Path or not isinstance(value, str | Path):
        raise TypeError
    return Path(value)


def check_networks(beginning: str, networks: Iterable[str]) -> None:
    """Raise ValueError, with a message that begins so, unless all are networks or single addresses."""
    try:
        for network in networks:
            ip_network(network)
    except ValueError:
        raise ValueError(f"{beginning} networks such as 10.20.0.0/16, with no bit set after the prefix") from None


def with_hint(unknown: str, known: Iterable[str]) -> str:
    """An unknown name, followed by a known one if it is much like it."""
    near = difflib.get_close_matches(unknown, known, n=1)
    return f"{unknown} (did you mean {near[0]}?)" if near else unknown


def unwrap(kind: inspect.Type) -> inspect.Type:
    """The type without its description."""
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def allowed(kind: inspect.Type) -> str:
    """What a value of this type must be, in words."""
    if isinstance(kind, inspect.Metadata):
        return (kind.extra_json_schema or {}).get("title") or allowed(kind.type)
    if isinstance(kind, inspect.IntType):
        return "a whole number" + _range(kind)
    if isinstance(kind, inspect.FloatType):
        return "a number" + _range(kind)
    if isinstance(kind, inspect.LiteralType):
        return f"{'one of ' if len(kind.values) > 1 else ''}{', '.join(map(str, kind.values))}"
    if isinstance(kind, inspect.UnionType):
        return " or ".join(dict.fromkeys(map(allowed, kind.types)))
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return f"a list of {_PLURALS.get(type(unwrap(kind.item_type)), 'text')}"
    if isinstance(kind, inspect.DictType) and not isinstance(kind.value_type, inspect.AnyType):
        return f"a table; each value must be {allowed(kind.value_type)}"
    return _WORDS.get(type(kind), "a table")


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.gt is not None:
        return f" above {kind.gt}" + (f", at most {kind.le:.0f}" if kind.le is not None else "")
    if kind.le is not None:
        return f" from {kind.ge} to {kind.le:.0f}"
    return f", at least {kind.ge}" if kind.ge is not None else ""


def _explanation(problem: msgspec.ValidationError, kind: inspect.Type, written: Any, where: str) -> str:
    """msgspec's message in our words, without the value that it may quote."""
    message, _, path = str(problem).partition(" - at `$")
    place, kind = _locate(path, kind, written, where)
    if isinstance(problem.__cause__, ValueError):  # from the __post_init__ of a struct, in our words already
        return f"{place} {message}".lstrip()
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL):
        known = [field.encode_name for field in kind.fields] if isinstance(kind, inspect.StructType) else []
        return f"{place} has an unknown key: {with_hint(found[1], known)}"
    if found := re.fullmatch(r"Object missing required field `(\w+)`", message):
        return f"{place} needs {found[1]}, which must be {allowed(_member(kind, found[1]))}"
    return f"{place} must be {allowed(kind)}"


def _locate(path: str, kind: inspect.Type, written: Any, where: str) -> tuple[str, inspect.Type]:
    """Follow msgspec's path to a place and its type. A list's item that has an id is called by it."""
    for name, index in _STEP.findall(path):
        if name:
            where = f"{where}.{name}" if where else name
            kind = _member(kind, name)
            written = written.get(name) if isinstance(written, Mapping) else None
        else:
            written = written[int(index)] if isinstance(written, list | tuple) else None
            shown = written.get("id") if isinstance(written, Mapping) else None
            where = f'{where}["{shown}"]' if isinstance(shown, str) else f"{where}[{index}]"
            kind = _item(kind)
    return where, kind


def _member(kind: inspect.Type, name: str) -> inspect.Type:
    """The type of a struct's field, also where the struct is one of several possibilities."""
    for each in _possibilities(kind):
        if isinstance(each, inspect.StructType):
            return next(field.type for field in each.fields if field.encode_name == name)
    raise AssertionError(f"{name} is in no struct")


def _item(kind: inspect.Type) -> inspect.Type:
    """The type of a list's items, also where the list is one of several possibilities."""
    for each in _possibilities(kind):
        if isinstance(each, inspect.ListType | inspect.VarTupleType):
            return each.item_type
    raise AssertionError("an index without a list")


def _possibilities(kind: inspect.Type) -> Iterable[inspect.Type]:
    plain = unwrap(kind)
    return map(unwrap, plain.types) if isinstance(plain, inspect.UnionType) else (plain,)


def read_toml(path: Path, known: Mapping[str, Any]) -> dict[str, Any]:
    """Read a TOML file whose names must be known; raise Misconfigured otherwise."""
    import tomllib  # imported here because not every installation has such a file

    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise Misconfigured(f"{path.name}: {problem}") from None
    if unknown := sorted(set(values) - set(known)):
        names = ", ".join(with_hint(name, known) for name in unknown)
        raise Misconfigured(f"{path.name} has unknown settings: {names}")
    return values


_BOOLEANS = {"yes": True, "on": True, "no": False, "off": False}  # msgspec knows true, false, 1 and 0


def convertible_value(name: str, value: Any, kind: inspect.Type) -> Any:
    """A value as msgspec can convert it: text is split where a list or a table is needed; a number may be text."""
    if isinstance(kind, inspect.StrType) and type(value) in (int, float):
        return str(value)
    if isinstance(kind, inspect.DictType) and isinstance(kind.value_type, inspect.StrType):
        pairs = _pairs(name, value) if isinstance(value, str) else value
        if isinstance(pairs, Mapping):
            return {key: convertible_value(name, each, kind.value_type) for key, each in pairs.items()}
    if isinstance(value, str):
        if isinstance(kind, inspect.VarTupleType):
            return _items(value)
        if isinstance(kind, inspect.BoolType):
            return _BOOLEANS.get(value.lower(), value)
    return value


def _items(text: str) -> list[str]:
    return [item for part in text.split(",") if (item := part.strip())]


def _pairs(name: str, text: str) -> dict[str, str]:
    try:
        return dict(item.split("=", 1) for item in _items(text))
    except ValueError:
        raise Misconfigured(f"{name} must be pairs name=value with commas between them") from None
