"""Canonical request to provider request, by table; pure."""

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from penstock.errors import InvalidRequest
from penstock.providers.spec import HttpRequest, Model, Operation, Param, Provider, Upload
from penstock.schema import Request
from penstock.values import InputImage

# A caller's extra fields reach the provider's body, never where it is sent, who is told, or what is paid. Names are
# compared without case and punctuation: `webhookUrl` is `webhook_url`.
_NOWHERE = frozenset(
    """api_base base_url api_key api_token headers extra_headers extra_body extra_query proxy proxies webhook webhooks
    webhook_url webhook_secret webhook_events webhook_events_filter callback callback_url notify_hook notify_url
    notification_url""".replace("_", "").split()
)
_NOT_ON_TOP = frozenset(
    """key token access_token authorization organization project model_name model_id endpoint url host stream
    partial_images""".replace("_", "").split()
)
_PRICED = frozenset(
    """num_images num_outputs num_samples num_results number_of_images number_of_videos image_count sample_count samples
    batch_size batch_count n_iter num_videos max_images sequential_image_generation num_frames frames frame_count fps
    frames_per_second duration duration_seconds seconds video_length width height image_size output_size megapixels
    generate_audio service_tier""".replace("_", "").split()
)
_PRICED_CHAT = frozenset({"servicetier"})
_EXTRAS_BYTES = 64 * 1024
_EXTRAS_DEPTH = 16
_ALIASES = {"frame": "size"}  # what the caller calls a field that our tables name otherwise
_INTERNAL = ("frame", "images", "chance")  # names of our tables that no caller uses


def check(model: Model, request: Request) -> None:
    """Everything about the request that this model cannot do, said before anything is promised."""
    check_extras(model.op, request.extras)
    values = canonical(request, 1, {})
    for row in model.op.params:
        check_row(model, row, values.get(row.name))
        if row.convert and row.name in request.extras:
            _check_convertible(model, row, values[row.name])


def check_row(model: Model, row: Param, value: Any) -> None:
    """One field, as this model's table has it."""
    if row.handling == "fixed":
        return
    name = _ALIASES.get(row.name, row.name)
    if value is None:
        if row.required and row.name not in ("images", "mask", "input_reference"):
            raise InvalidRequest(f"`{name}` is required by {model.id}.", param=name)
        return
    if row.handling == "refused":
        raise InvalidRequest(f"`{name}` is not supported by {model.id}.", param=name)
    if row.handling != "ignored":
        _check_limits(model, row, name, value)
    elif name == "thinking" and value != "off":  # a model that cannot think must not be thought to have thought
        raise InvalidRequest(f"`thinking` of {model.id} must be one of `off`.", param=name)


def _check_limits(model: Model, row: Param, name: str, value: Any) -> None:
    if row.one_of and value not in row.one_of:
        allowed = ", ".join(f"`{_word(choice)}`" for choice in row.one_of)
        raise InvalidRequest(f"`{name}` of {model.id} must be one of {allowed}.", param=name)
    if row.name == "n":  # its `high` is the provider's share; the rest is emulated
        return
    if (row.low is not None or row.high is not None) and not (_is_number(value) and _inside(row, value)):
        raise InvalidRequest(f"`{name}` of {model.id} must be {_range(row)}.", param=name)
    if row.max_length is not None and not (isinstance(value, str) and len(value) <= row.max_length):
        raise InvalidRequest(f"`{name}` of {model.id} may have at most {row.max_length} characters.", param=name)


def _check_convertible(model: Model, row: Param, value: Any) -> None:
    """The interface does not vouch for the type of a field that only this provider has."""
    try:
        assert row.convert is not None
        row.convert(value)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        raise InvalidRequest(f"`{row.name}` of {model.id} cannot be that.", param=row.name) from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _inside(row: Param, value: float) -> bool:
    return (row.low is None or value >= row.low) and (row.high is None or value <= row.high)


def _range(row: Param) -> str:
    if row.low is None:
        return f"at most {row.high}"
    return f"at least {row.low}" if row.high is None else f"from {row.low} to {row.high}"


def check_inputs(model: Model, counts: Mapping[str, int]) -> None:
    """How many pictures of each role a model needs and takes; names are the table's."""
    for name, said in (("images", "image"), ("mask", "mask"), ("input_reference", "input_reference")):
        row, count = model.op.param(name), counts.get(name, 0)
        if row is None:
            if count:
                raise InvalidRequest(f"`{said}` is not supported by {model.id}.", param=said)
        elif not count and row.required:
            raise InvalidRequest(f"`{said}` is required by {model.id}.", param=said)
        elif count and row.handling == "refused":
            raise InvalidRequest(f"`{said}` is not supported by {model.id}.", param=said)
        elif 0 < count < row.min_items:
            raise InvalidRequest(f"`{said}` of {model.id} takes at least {row.min_items}.", param=said)
        elif row.max_items is not None and count > row.max_items:
            raise InvalidRequest(f"`{said}` of {model.id} takes at most {row.max_items}.", param=said)


def check_extras(op: Operation, extras: Mapping[str, Any]) -> None:
    """Extras are safe to hand on, and small. A name that the provider's table has is its business, price included."""
    if not extras:
        return
    if _depth(extras) > _EXTRAS_DEPTH:
        raise InvalidRequest(f"Extra parameters may nest {_EXTRAS_DEPTH} levels at most.")
    if len(msgspec.json.encode(extras)) > _EXTRAS_BYTES:
        raise InvalidRequest(f"Extra parameters may have {_EXTRAS_BYTES} bytes at most.")
    for name, value in extras.items():
        row = op.param(name)
        if name in _INTERNAL and row is not None:
            raise InvalidRequest(f"`{name}` is not a parameter; use the documented ones.", param=name)
        if row is None and not op.takes_extras:
            raise InvalidRequest(f"`{name}` is not a parameter of this model.", param=name)
        if row is None:
            _check_extra(op, name, name, is_top=True)
        if op.task != "chat":  # whose nests are JSON Schemas with names of the caller's own
            for inner in _names(value):
                _check_extra(op, name, inner, is_top=False)


def _check_extra(op: Operation, name: str, inner: str, *, is_top: bool) -> None:
    plain = re.sub(r"[^a-z0-9]", "", inner.lower())
    shown = f"`{inner}`" if is_top else f"`{inner}` in `{name}`"
    if plain in _NOWHERE or (is_top and plain in _NOT_ON_TOP):
        raise InvalidRequest(f"{shown} cannot be passed through to a provider.", param=name)
    if plain in (_PRICED_CHAT if op.task == "chat" else _PRICED) or inner in op.priced_extras:
        raise InvalidRequest(f"{shown} would change the price; use the documented parameters.", param=name)


def _names(value: Any) -> Iterator[str]:
    """Every name inside a value, however deep."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from _names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner)


def _depth(value: Any) -> int:
    """How many levels of objects and lists a value has; counted no further than matters."""
    level, depth = [value], 0
    while level and depth <= _EXTRAS_DEPTH:
        nests = [one for one in level if isinstance(one, Mapping | list)]
        level = [inner for nest in nests for inner in (nest.values() if isinstance(nest, Mapping) else nest)]
        depth += bool(nests)
    return depth


def with_defaults(request: Request, model: Model) -> Request:
    """A video says how long and large it will be from the start, also when the model decides."""
    if request.task != "video":
        return request
    values = dict(request.values)
    for name, row in (("seconds", model.op.param("seconds")), ("size", model.op.param("frame"))):
        if row and row.default is not None and values.get(name) is None and (name == "seconds" or not request.frame):
            values[name] = row.default
    return msgspec.structs.replace(request, values=values)


def canonical(request: Request, count: int, inputs: Mapping[str, Sequence[InputImage]]) -> dict[str, Any]:
    """The request under the names that provider tables use. A table may also have rows for fields of its own."""
    own = {name: value for name, value in request.extras.items() if name not in _INTERNAL}
    values = own | {name: value for name, value in request.values.items() if name not in ("size", "aspect_ratio")}
    values["n"] = count
    if frame := request.frame:
        values["frame"] = frame
    for name in ("images", "input_reference"):
        if inputs.get(name):
            values[name] = list(inputs[name])
    if inputs.get("mask"):
        values["mask"] = inputs["mask"][0]
    return values


def body(model: Model, values: Mapping[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """The provider's own fields: rows first, then extras of which no row speaks, where the rows wrote nothing."""
    written: dict[str, Any] = {}
    for row in model.op.params:
        if row.handling == "fixed":
            _put(written, row.to[0], row.value)
        elif _is_sent(row) and values.get(row.name) is not None:
            for name, value in _named(row, values[row.name]):
                _put(written, name, value)
    for name, value in extras.items() if model.op.takes_extras else ():
        if model.op.param(name) is None:
            written.setdefault(name, value)
    shaped = model.op.adjust_body(written)
    if model.op.model_field and "{model}" not in model.op.send:
        shaped[model.op.model_field] = model.upstream
    return shaped


def told(model: Model, request: Request) -> dict[str, Any]:
    """What the model will be told about a request without its pictures, by the full names of its own fields."""
    values = canonical(request, 1, {})
    rows = [row for row in model.op.params if _is_sent(row) and values.get(row.name) is not None]
    return {name: one for row in rows for name, one in _named(row, values[row.name])}


def _is_sent(row: Param) -> bool:
    return bool(row.to) and row.handling not in ("ignored", "refused", "fixed")


def _named(row: Param, value: Any) -> Iterator[tuple[str, Any]]:
    result = row.convert(value) if row.convert else value
    if result is None:
        return
    for name, one in zip(row.to, result if len(row.to) > 1 else (result,), strict=True):
        if one is not None:
            yield name, one


def _put(target: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for parent in parents:
        target = target.setdefault(parent, {})
    target[last] = value


def with_callback(op: Operation, fields: Mapping[str, Any], callback: str) -> Mapping[str, Any]:
    """The body with our address in it, where the provider looks for it there."""
    if not callback or not op.callback_field or op.callback_field.startswith("?"):
        return fields
    told = copy.deepcopy(dict(fields))
    for name, value in (*op.callback_extras.items(), (op.callback_field, callback)):
        _put(told, name, value)
    return told


def outgoing(provider: Provider, model: Model, fields: Mapping[str, Any], key: str, callback: str = "") -> HttpRequest:
    """The whole HTTP request for a submission."""
    method, path = model.op.send.split(" ", 1)
    url = provider.base_url.rstrip("/") + path.replace("{model}", model.upstream)
    if callback and (model.op.callback_field or "").startswith("?"):
        url += f"{model.op.callback_field}={quote(callback, safe='')}"
    fields = with_callback(model.op, fields, callback)
    headers = {**provider.headers, **provider.auth(key)}
    if model.op.body == "form":
        return HttpRequest(method, url, headers, form=tuple(_form(fields)))
    headers["content-type"] = f"application/{model.op.body}"
    if model.op.body == "msgpack":
        return HttpRequest(method, url, headers, msgspec.msgpack.encode(fields))
    return HttpRequest(method, url, headers, msgspec.json.encode(fields))


def _form(fields: Mapping[str, Any]) -> list[tuple[str, str | Upload]]:
    parts: list[tuple[str, str | Upload]] = []
    for name, value in fields.items():
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            parts.append((name, one if isinstance(one, str | Upload) else _word(one)))
    return parts


def _word(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
