"""Check the fields of a call that the interface does not name: which of them may be sent to the provider.

They are added to the provider's body as they are. They must not change where the request is sent, which URL is called
back or what the call costs; `field_guesses` guesses from their names whether they would.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from difflib import get_close_matches
from itertools import chain, islice
from typing import Any

from penstock.errors import InvalidRequest
from penstock.long_bodies.json_encoding import encoded_size, exceeds
from penstock.providers.prices import SENT
from penstock.providers.row_names import INTERNAL
from penstock.providers.spec import Model, Operation
from penstock.upstream import field_guesses
from penstock.values import INPUT_VIDEOS

_BYTES_MAX = 64 * 1024
_COMPARED_LENGTH_MAX = 64  # of a name, with those that a caller may have meant
_NAMES_MAX = 500  # different ones: each is compared with all that may change a price
_NESTS = (dict, list)  # for `isinstance`: a union such as `dict | list` would be made anew each time
_PRICED_ROWS = frozenset({"n", "seconds", "frame", "quality", "generate_audio", "scale_factor"})
_DEPTH_MAX = 16


def _nearest(op: Operation, name: str) -> str:
    """A question about the parameter that the caller may have meant; empty if no name is close."""
    known = [row.name for row in op.params if row.handling not in ("fixed", "refused") and row.name not in INTERNAL]
    near = get_close_matches(name[:_COMPARED_LENGTH_MAX], known, n=1, cutoff=0.7)
    return f" Did you mean `{near[0]}`?" if near else ""


def check_extras(model: Model, extras: Mapping[str, Any]) -> None:
    """Raise InvalidRequest for extra fields that must not be sent to the provider; see also `check_extras_size`.

    A field with a row in the provider's table is allowed under any name: the row says what happens to it.
    """
    op = model.op
    if len(extras if op.task == "chat" else {*_names(extras)}) > _NAMES_MAX:
        raise InvalidRequest(f"Extra parameters may have {_NAMES_MAX} different names at most.")
    for name, value in extras.items():
        row = op.param(name)
        if name in INTERNAL and row is not None:
            raise InvalidRequest(f"`{name}` is not a parameter; use the documented ones.", param=name)
        if row is None and not op.takes_extras:
            raise InvalidRequest(f"`{name}` is not a parameter of this model.{_nearest(op, name)}", param=name)
        if row is None:
            orders = not (op.task == "chat" and _orders_nothing(value))
            _check_extra(model, name, name, is_top=True, orders=orders)
            if orders:
                _check_allowed(model, name)
            _check_not_priced(model, name)
            _check_input_file(model, name, value)
        if op.task != "chat":  # there, nested objects are JSON Schemas with names that the caller chooses
            needed = _needed(row.schema if row else None)
            for inner in dict.fromkeys(_names(value)):
                _check_extra(model, name, inner, is_top=False, orders=inner not in needed)


def check_extras_size(extras: Mapping[str, Any], size_bytes: int) -> None:
    """Raise InvalidRequest for extra fields that are too large or too deep together; their body has `size_bytes`.

    This comes first, once for all candidates: what is done with fields afterwards takes much more time.
    """
    if not extras:
        return
    if exceeds(extras, _BYTES_MAX, size_bytes):  # first, because it takes much less time
        largest = max(extras, key=lambda name: encoded_size(extras[name], size_bytes))[:_COMPARED_LENGTH_MAX]
        message = f"Extra parameters may have {_BYTES_MAX} bytes at most; `{largest}` has most of them."
        raise InvalidRequest(message, param=largest)
    if _depth(extras) > _DEPTH_MAX:
        raise InvalidRequest(f"Extra parameters may nest {_DEPTH_MAX} levels at most.")


def _needed(schema: Mapping[str, Any] | None) -> frozenset[str]:
    """The fields without which an object, or an object in a list, is not what its schema says."""
    parts = [part for part in (schema, (schema or {}).get("items")) if part]
    return frozenset(name for part in parts for name in part.get("required") or ())


def _orders_nothing(value: Any) -> bool:
    """Whether a field with this value only says that something is not wanted. An empty object may say that it is."""
    return value is False or value == []


def _check_extra(model: Model, name: str, inner: str, *, is_top: bool, orders: bool = True) -> None:
    shown = f"`{inner}`" if is_top else f"`{inner}` in `{name}`"
    if is_top and field_guesses.asks_for_dry_run(inner):
        raise InvalidRequest(f"{shown} belongs in the query of the URL: `?dryRun=true`.", param=name)
    if field_guesses.redirects(inner, is_top=is_top):
        raise InvalidRequest(f"{shown} cannot be passed through to a provider.", param=name)
    if orders and field_guesses.changes_price(model, inner):
        raise InvalidRequest(f"{shown} would change the price; use the documented parameters.", param=name)


def _check_allowed(model: Model, name: str) -> None:
    """Raise InvalidRequest for a field that may mean anything to a server of the operator's own, whose programs differ
    in what they know: it may be another name of a limit that money is held for, or hold up the whole server.
    """
    if model.allowed_extras is not None and name not in model.allowed_extras:
        message = f"`{name}` is not sent to a server of this gateway's operator, who can allow it in `extra_fields`."
        raise InvalidRequest(message, param=name)


def _check_not_priced(model: Model, name: str) -> None:
    """Raise InvalidRequest for the provider's own name of a field that decides the price, or of the object that has it:
    its row would convert and count what the caller wrote in a documented parameter.
    """
    conditions = {key.removeprefix(SENT) for price in model.prices for key in price.when if key.startswith(SENT)}
    written = {field for row in model.op.params if row.name in _PRICED_ROWS for field in row.to}
    if any(field.partition(".")[0] == name for field in conditions | written):
        raise InvalidRequest(f"`{name}` is set from documented parameters; use those.", param=name)


def _check_input_file(model: Model, name: str, value: Any) -> None:
    """Raise InvalidRequest for a field with input files at any depth, if the provider bills them: they would not be
    counted. Also for the provider's field of an input video, whose length decides the price and would not be measured.
    """
    is_billed = model.op.task != "chat" and any(Decimal(price.input_usd) for price in model.prices)
    is_video = any(name in row.to for row in model.op.params if row.name in INPUT_VIDEOS)
    if is_video or (is_billed and _has_files(name, value)):
        message = f"`{name}` would change the price; give input files in the documented parameters."
        raise InvalidRequest(message, param=name)


def _has_files(name: str, value: Any) -> bool:
    """Whether a field is named as fields with files are, or has a file or the URL of one."""
    is_named = any(map(field_guesses.is_named_like_a_file, {name, *_names(value)}))
    return is_named or any(map(field_guesses.looks_like_a_file, _texts(value)))


def _names(value: Any) -> Iterator[str]:
    """The names of all fields inside a value, at any depth."""
    return chain.from_iterable(nest for level in _levels(value) for nest in level if isinstance(nest, dict))


def _texts(value: Any) -> Iterator[str]:
    """All texts that a value is or has at any depth."""
    for nest in chain(([value],), *_levels(value)):
        yield from (inner for inner in (nest.values() if isinstance(nest, dict) else nest) if isinstance(inner, str))


def _depth(value: Any) -> int:
    """How many levels of objects and lists a value has; stops counting above the limit."""
    return sum(1 for _ in islice(_levels(value), _DEPTH_MAX + 1))


def _levels(value: Any) -> Iterator[list[dict[str, Any] | list[Any]]]:
    """The objects and lists of a value, from the outside to the inside."""
    level = [value] if isinstance(value, _NESTS) else []
    while level:
        yield level
        level = [
            inner
            for nest in level
            for inner in (nest.values() if isinstance(nest, dict) else nest)
            if isinstance(inner, _NESTS)
        ]
