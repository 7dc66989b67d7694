"""Check a request against a model's table: its fields and their limits, and its input files."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock import json_schema
from penstock.errors import InputsNotTaken, InvalidRequest, quoted
from penstock.fields import number_text
from penstock.package_extras import extra_with, has_extra, has_library, how_to_install
from penstock.providers.row_names import INPUT_ROWS, main_field, row_words
from penstock.providers.spec import Model, Param
from penstock.schema import Request
from penstock.upstream import roles
from penstock.upstream.extra_fields import check_extras
from penstock.upstream.translate import json_text, table_values
from penstock.values import INPUT_VIDEOS

_SOUND_EXTRA = "media"


def check(model: Model, request: Request) -> None:
    """Raise InvalidRequest if the model's table does not allow the request. Input images are for `check_inputs`."""
    check_libraries(model)
    _check_sound_format(model, request)
    check_extras(model, request.extras)
    values = table_values(request, 1, {})
    for row in model.op.params:
        if row.name not in values and not row.required:  # most rows
            continue
        check_row(model, row, values.get(row.name))
        if row.convert and row.name in request.extras:
            _check_convertible(model, row, values[row.name])


def check_libraries(model: Model) -> None:
    """Raise InvalidRequest if a library is missing by which the gateway itself makes the outputs of a model."""
    if missing := next((name for name in model.op.libraries if not has_library(name)), None):
        how = how_to_install(extra_with(missing))
        message = f"{model.id} needs the library `{missing}`, which the gateway lacks; to install it: {how}."
        raise InvalidRequest(message, param="model")


def _check_sound_format(model: Model, request: Request) -> None:
    """Raise InvalidRequest if a sound would have to be converted and the library for that is missing."""
    wanted = request.values.get("output_format")
    if model.op.task != "sound" or has_extra(_SOUND_EXTRA):
        return
    row = model.op.param("output_format")
    assert row is not None, "the tables of sounds are complete"
    is_own = row.default == wanted or (row.convert is not None and row.convert(wanted) != row.convert(row.default))
    if not is_own:
        raise InvalidRequest(
            f"{model.id} does not make `{wanted}`; to convert its sounds, the gateway needs an extra: "
            f"{how_to_install(_SOUND_EXTRA)}.",
            param="output_format",
        )


def check_row(model: Model, row: Param, value: Any) -> None:
    """Raise InvalidRequest if a row of the model's table does not allow the value."""
    if row.handling == "fixed":
        return
    name = main_field(row.name)
    if value is None:
        if row.required and row.name not in INPUT_ROWS:
            raise InvalidRequest(f"`{name}` is required by {model.id}.", param=name)
        return
    if row.handling == "refused":
        raise InvalidRequest(f"`{name}` is not supported by {model.id}.", param=name)
    if row.handling != "ignored":
        _check_limits(model, row, name, value)
    elif name == "thinking" and value != "off":  # ignoring it would hide that the model cannot think
        raise InvalidRequest(f"`thinking` of {model.id} must be `off`.", param=name)


def _check_limits(model: Model, row: Param, name: str, value: Any) -> None:
    if row.one_of and value not in row.one_of and _kind(value) not in row.one_of:
        allowed = quoted(map(json_text, row.one_of))
        choice = "one of " if len(row.one_of) > 1 else ""
        raise InvalidRequest(f"`{name}` of {model.id} must be {choice}{allowed}.", param=name)
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
            raise InputsNotTaken(f"{row_words(name)} is not supported by {model.id}.", param=main_field(name))
    for name in INPUT_ROWS:
        row = model.op.param(name)
        if row is None:
            continue
        count = counts.get(name, 0)
        param = main_field(name)
        if not count and row.required:
            raise InputsNotTaken(f"{row_words(name)} is required by {model.id}.", param=param)
        if 0 < count < row.min_items:
            raise InvalidRequest(f"`{param}` of {model.id} takes at least {row.min_items}.", param=param)
        if row.max_items is not None and count > row.max_items:
            raise InvalidRequest(f"`{param}` of {model.id} takes at most {row.max_items}.", param=param)
    if video_roles and (row := model.op.param("input_reference")):
        roles.check_roles(model, row, video_roles)


def check_fetchable(model: Model, names: Iterable[str], base_url: str) -> None:
    """Raise InvalidRequest if the model takes one of these inputs only as a URL, and providers cannot reach the gateway
    under any.
    """
    for name in names:
        if (row := model.op.param(name)) and row.by_url and not base_url:
            raise InvalidRequest(
                f"{row_words(name)} of {model.id} is fetched by its provider from this gateway, which has no HTTPS "
                "URL for that: its operator can set `public_url`.",
                param=main_field(name),
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
