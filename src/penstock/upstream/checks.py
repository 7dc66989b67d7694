"""Check a request against a model's table: fields and their limits, input files, extra fields."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import Any

import msgspec

from penstock import json_schema
from penstock.errors import InvalidRequest
from penstock.fields import number_text
from penstock.providers.spec import Model, Param
from penstock.schema import Request
from penstock.upstream import roles
from penstock.upstream.translate import INTERNAL, json_text, table_values
from penstock.values import EDIT_VIDEO, EXTEND_VIDEO, INPUT_VIDEOS

# A caller's extra fields are added to the provider's body. They must not change where the request is sent, which URL is
# called back or what the call costs. Names are compared without case and punctuation: `webhookUrl` is `webhook_url`.
_NEVER_SENT = frozenset(
    """api_base base_url api_key api_token headers extra_headers extra_body extra_query proxy proxies webhook webhooks
    webhook_url webhook_secret webhook_events webhook_events_filter callback callback_url notify_hook notify_url
    notification_url""".replace("_", "").split()
)
_NOT_SENT_AT_TOP_LEVEL = frozenset(
    """key token access_token authorization organization project model_name model_id endpoint url host stream
    partial_images""".replace("_", "").split()
)
# How many outputs are made, how long, how large and how fast: by name, and by class where names follow a pattern.
_PRICED = frozenset(
    """samples n_iter sequential_image_generation frames frames_per_second video_length width height image_size
    output_size megapixels generate_audio""".replace("_", "").split()
)
_PRICED_CLASS = re.compile(
    r"(num|number|max|nb|n)(of)?(image|output|sample|result|video|clip|variation|generation|frame)s?"
    r"|(image|output|sample|result|video|clip|variation|generation|frame)s?(count|number|num)"
    r"|.*batch.*|.*duration.*|.*seconds|.*fps|.*servicetier|.*priority"
)
# Fields by which providers take input files, which some of them bill.
_INPUT_FILE_CLASS = re.compile(
    r"(input|reference|source|init|start|first|last|end|tail)?(frame)?(image|video|mask|reference)s?"
    r"(input|url|uri|data|base64|ref)?s?\d*|(start|first|last|end|tail)frames?(url|uri|data)?|source"
)
_FILE_TEXT = re.compile(r"\s*(data:|[a-z][a-z0-9+.-]{1,20}://|[a-z0-9+/=_-]{200})", re.IGNORECASE)  # or base64
# What providers of chat bill beside the tokens: searches, tools that they run themselves, other speeds and media.
_PRICED_CHAT_CLASS = re.compile(
    r".*(search|plugin|tier|priority|modalit|audio|ground|retriev|brows|interpreter|mcp|connector|servertool).*"
    r"|prediction|speed|fastmode"
)
# On a server of the operator's own the price depends on what its unit counts, and on nothing else. By unit: names of
# fields that change nothing about the price.
_SIZE_NAMES = frozenset(
    "width height image_size output_size megapixels fps frames_per_second generate_audio".replace("_", "").split()
)
_LENGTH_NAMES = frozenset(
    "num_frames frames frame_count duration duration_seconds seconds video_length".replace("_", "").split()
)
_FREE_ON_OWN_SERVER: Mapping[str, frozenset[str]] = {
    "image": _SIZE_NAMES | _LENGTH_NAMES,
    "call": _SIZE_NAMES | _LENGTH_NAMES,
    "second": _SIZE_NAMES,
}
_EXTRAS_BYTES_MAX = 64 * 1024
_EXTRAS_NAMES_MAX = 500  # different ones: each is compared with all that may change a price
_NESTS = (dict, list)  # a union is made anew each time
_EXTRAS_DEPTH_MAX = 16
# The interface's names of input files, by their names in provider tables.
_INPUTS = {
    "images": "image",
    "mask": "mask",
    "input_reference": "input_reference",
    EDIT_VIDEO: "input_reference",
    EXTEND_VIDEO: "input_reference",
}
_VIDEO_WORDS = {EDIT_VIDEO: "a video to edit", EXTEND_VIDEO: "a video to extend"}
_PUBLIC_NAMES = {"frame": "size"}  # the interface's names of fields that provider tables call otherwise


def check(model: Model, request: Request) -> None:
    """Raise InvalidRequest if the model's table does not allow the request. Input images are for `check_inputs`."""
    check_extras(model, request.extras)
    values = table_values(request, 1, {})
    for row in model.op.params:
        if row.name not in values and not row.required:  # most rows
            continue
        check_row(model, row, values.get(row.name))
        if row.convert and row.name in request.extras:
            _check_convertible(model, row, values[row.name])


def check_row(model: Model, row: Param, value: Any) -> None:
    """Raise InvalidRequest if a row of the model's table does not allow the value."""
    if row.handling == "fixed":
        return
    name = _PUBLIC_NAMES.get(row.name, row.name)
    if value is None:
        if row.required and row.name not in _INPUTS:
            raise InvalidRequest(f"`{name}` is required by {model.id}.", param=name)
        return
    if row.handling == "refused":
        raise InvalidRequest(f"`{name}` is not supported by {model.id}.", param=name)
    if row.handling != "ignored":
        _check_limits(model, row, name, value)
    elif name == "thinking" and value != "off":  # ignoring it would hide that the model cannot think
        raise InvalidRequest(f"`thinking` of {model.id} must be one of `off`.", param=name)


def _check_limits(model: Model, row: Param, name: str, value: Any) -> None:
    if row.one_of and value not in row.one_of and _kind(value) not in row.one_of:
        allowed = ", ".join(f"`{json_text(choice)}`" for choice in row.one_of)
        raise InvalidRequest(f"`{name}` of {model.id} must be one of {allowed}.", param=name)
    if row.name == "n":  # `high` is the limit of one call to the provider; the gateway makes several calls
        return
    if row.low is not None or row.high is not None:
        if not _is_number(value):
            raise InvalidRequest(f"`{name}` of {model.id} must be a number.", param=name)
        if not _inside(row, value):
            raise InvalidRequest(f"`{name}` of {model.id} must be {_range(row)}.", param=name)
    if row.max_length is not None and not (isinstance(value, str) and _length(row, value) <= row.max_length):
        raise InvalidRequest(f"`{name}` of {model.id} may have at most {row.max_length} characters.", param=name)
    if row.schema is not None and (problem := json_schema.problem(row.schema, value)):
        raise InvalidRequest(f"`{name}` of {model.id} {problem}.", param=name)


def _length(row: Param, text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 if row.counts_utf16 else len(text)


def _kind(value: Any) -> Any:
    """The `type` of an object, by which a table may allow it."""
    return value.get("type") if isinstance(value, Mapping) else value


def _check_convertible(model: Model, row: Param, value: Any) -> None:
    """Try the conversion of a field that only this provider has: nothing else has checked its type."""
    try:
        assert row.convert is not None
        row.convert(value)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        raise InvalidRequest(f"Invalid value for `{row.name}` of {model.id}.", param=row.name) from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _inside(row: Param, value: float) -> bool:
    return (row.low is None or value >= row.low) and (row.high is None or value <= row.high)


def _range(row: Param) -> str:
    low = number_text(row.low)
    high = number_text(row.high)
    if row.low is None:
        return f"at most {high}"
    return f"at least {low}" if row.high is None else f"from {low} to {high}"


def check_inputs(model: Model, counts: Mapping[str, int], video_roles: Sequence[str] = ()) -> None:
    """Raise InvalidRequest if a model needs more or takes fewer input images, or does not use them in these roles.

    `counts` is by the table's names; `video_roles` has the stated role of each image of a video.
    """
    for name, count in counts.items():
        row = model.op.param(name)
        if count and (row is None or row.handling == "refused"):
            raise _inputs_refusal(model, name, "not supported")
    for name, param in _INPUTS.items():
        row, count = model.op.param(name), counts.get(name, 0)
        if row is None:
            continue
        if not count and row.required:
            raise _inputs_refusal(model, name, "required")
        if 0 < count < row.min_items:
            raise InvalidRequest(f"`{param}` of {model.id} takes at least {row.min_items}.", param=param)
        if row.max_items is not None and count > row.max_items:
            raise InvalidRequest(f"`{param}` of {model.id} takes at most {row.max_items}.", param=param)
    if video_roles and (row := model.op.param("input_reference")):
        roles.check_roles(model, row, video_roles)


def _inputs_refusal(model: Model, name: str, reason: str) -> InvalidRequest:
    """The error of a model that takes other input files than those of the call."""
    problem = InvalidRequest(f"{_input_words(name)} is {reason} by {model.id}.", param=_INPUTS[name])
    problem.model_takes_other_inputs = True
    return problem


def _input_words(name: str) -> str:
    """What a caller calls an input, by its name in provider tables."""
    return f"`{_INPUTS[name]}` with {_VIDEO_WORDS[name]}" if name in _VIDEO_WORDS else f"`{_INPUTS[name]}`"


def check_fetchable(model: Model, names: Iterable[str], base_url: str) -> None:
    """Raise InvalidRequest if the model takes one of these inputs only as a URL, and providers cannot reach the gateway
    under any.
    """
    for name in names:
        if (row := model.op.param(name)) and row.by_url and not base_url:
            raise InvalidRequest(
                f"{_input_words(name)} of {model.id} is fetched by its provider from this gateway, which has no HTTPS "
                "URL for that: its operator can set `public_url`.",
                param=_INPUTS[name],
            )


def check_input_video(model: Model, request: Request) -> None:
    """Raise InvalidRequest if an input video is shorter, longer or larger than the model takes, or is to become larger
    than the model makes one.
    """
    if row := model.op.param("scale_factor"):
        check_row(model, row, request.values.get("scale_factor"))
    for video in request.inputs:
        row = model.op.param(video.role) if video.role in INPUT_VIDEOS else None
        if row and row.max_seconds is not None and video.seconds > row.max_seconds:
            limit = f"{number_text(row.max_seconds)} seconds"
        elif row and video.seconds < row.min_seconds:
            limit = f"{number_text(row.min_seconds)} seconds or more"
        elif row and row.max_bytes is not None and video.size_bytes > row.max_bytes:
            limit = f"{row.max_bytes} bytes"
        else:
            continue
        raise InvalidRequest(f"A video in `input_reference` of {model.id} may have {limit}.", param="input_reference")


def check_extras(model: Model, extras: Mapping[str, Any]) -> None:
    """Raise InvalidRequest for extra fields that must not be sent to the provider, or that are too large.

    A field with a row in the provider's table is allowed under any name: the row says what happens to it.
    """
    check_extras_size(extras)
    op = model.op
    if len(extras if op.task == "chat" else {*_names(extras)}) > _EXTRAS_NAMES_MAX:
        raise InvalidRequest(f"Extra parameters may have {_EXTRAS_NAMES_MAX} different names at most.")
    for name, value in extras.items():
        row = op.param(name)
        if name in INTERNAL and row is not None:
            raise InvalidRequest(f"`{name}` is not a parameter; use the documented ones.", param=name)
        if row is None and not op.takes_extras:
            raise InvalidRequest(f"`{name}` is not a parameter of this model.", param=name)
        if row is None:
            _check_extra(model, name, name, is_top=True)
            _check_input_file(model, name, value)
        if op.task != "chat":  # there, nested objects are JSON Schemas with names that the caller chooses
            for inner in dict.fromkeys(_names(value)):
                _check_extra(model, name, inner, is_top=False)


def check_extras_size(extras: Mapping[str, Any]) -> None:
    """Raise InvalidRequest for extra fields that are too large or too deep together."""
    if not extras:
        return
    if len(msgspec.json.encode(extras)) > _EXTRAS_BYTES_MAX:  # first, because it takes much less time
        raise InvalidRequest(f"Extra parameters may have {_EXTRAS_BYTES_MAX} bytes at most.")
    if _depth(extras) > _EXTRAS_DEPTH_MAX:
        raise InvalidRequest(f"Extra parameters may nest {_EXTRAS_DEPTH_MAX} levels at most.")


def _check_extra(model: Model, name: str, inner: str, *, is_top: bool) -> None:
    plain = _plain(inner)
    shown = f"`{inner}`" if is_top else f"`{inner}` in `{name}`"
    if is_top and plain == "dryrun":  # a call that was to cost nothing must not be made
        raise InvalidRequest(f"{shown} belongs in the query of the URL: `?dryRun=true`.", param=name)
    if plain in _NEVER_SENT or (is_top and plain in _NOT_SENT_AT_TOP_LEVEL):
        raise InvalidRequest(f"{shown} cannot be passed through to a provider.", param=name)
    if inner in model.op.priced_extras or _is_priced(model, plain):
        raise InvalidRequest(f"{shown} would change the price; use the documented parameters.", param=name)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _check_input_file(model: Model, name: str, value: Any) -> None:
    """Raise InvalidRequest for a field with input files at any depth, if the provider bills them: they would not be
    counted. It does so with a video that is changed: by its length, which only the gateway's own field measures.
    """
    is_billed = model.op.task != "chat" and any(Decimal(price.input_usd) for price in model.prices)
    is_video = any(name in row.to for row in model.op.params if row.name in INPUT_VIDEOS)
    if is_video or (is_billed and _has_files(name, value)):
        message = f"`{name}` would change the price; give input files in the documented parameters."
        raise InvalidRequest(message, param=name)


def _has_files(name: str, value: Any) -> bool:
    """Whether a field is named as fields with files are, or has a file or the URL of one."""
    is_named = any(_INPUT_FILE_CLASS.fullmatch(_plain(each)) for each in {name, *_names(value)})
    return is_named or any(_FILE_TEXT.match(text) for text in _texts(value))


def _is_priced(model: Model, plain: str) -> bool:
    """Whether an extra field of this name may change what a call of the model costs."""
    if model.op.task == "chat":
        return _PRICED_CHAT_CLASS.fullmatch(plain) is not None
    units = {price.unit for price in model.prices}
    has_one_price = model.on_own_server and len(units) == 1 and not any(price.when for price in model.prices)
    if has_one_price and plain in _FREE_ON_OWN_SERVER.get(units.pop(), ()):
        return False
    return plain in _PRICED or _PRICED_CLASS.fullmatch(plain) is not None


def _names(value: Any) -> Iterator[str]:
    """The names of all fields inside a value, at any depth."""
    return chain.from_iterable(nest for level in _levels(value) for nest in level if isinstance(nest, dict))


def _texts(value: Any) -> Iterator[str]:
    """All texts that a value is or has at any depth."""
    for nest in chain(([value],), *_levels(value)):
        yield from (inner for inner in (nest.values() if isinstance(nest, dict) else nest) if isinstance(inner, str))


def _depth(value: Any) -> int:
    """How many levels of objects and lists a value has; stops counting above the limit."""
    return sum(1 for _ in islice(_levels(value), _EXTRAS_DEPTH_MAX + 1))


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
