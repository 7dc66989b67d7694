"""Check a call's fields and make the canonical request, or say what is wrong."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import msgspec

from penstock import netguard
from penstock.errors import InvalidRequest
from penstock.fields import check_field
from penstock.schema import EDIT, IMAGE, VIDEO, Call, Request, Sent, Table
from penstock.settings import Settings
from penstock.values import Frame, Retention

_INDEXED = re.compile(r"(image|input_reference)(?:\[(\d{0,2})\])?")
_DATA_URI = re.compile(r"data:([a-z]+/[a-z0-9.+-]+)?(?:;[a-z0-9=-]+)*;base64,", re.IGNORECASE)
# Fields that steer the gateway and are nobody else's business.
_OURS = ("webhook_url", "media_retention", "idempotency_key", "metadata", "model")
_MOST_METADATA = 64


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that came with the call, still to be fetched or checked: a file, a data URI or an address."""

    role: str
    source: Sent | str
    param: str


@dataclass(frozen=True, slots=True)
class Wish:
    """A valid call: the request, and what concerns only us."""

    request: Request
    pictures: tuple[Picture, ...] = ()
    retention_seconds: int = 0
    webhook_url: str | None = None
    idempotency_key: str | None = None


def image(call: Call, settings: Settings) -> Wish:
    values, extras = _checked(IMAGE, _fields(call))
    return _wish(settings, "image", values, extras)


def edit(call: Call, settings: Settings) -> Wish:
    """`task` is settled by the model: an upscaler needs no prompt."""
    fields = _fields(call)
    pictures = [*_pictures(fields, "image", "image"), *_pictures(fields, "mask", "mask")]
    values, extras = _checked(EDIT, fields)
    if not any(picture.role == "image" for picture in pictures):
        raise InvalidRequest("`image` is required: send at least one PNG, WebP or JPEG file.", param="image")
    if sum(picture.role == "mask" for picture in pictures) > 1:
        raise InvalidRequest("`mask` takes one file.", param="mask")
    return _wish(settings, "edit", values, extras, tuple(pictures))


def video(call: Call, settings: Settings) -> Wish:
    fields = _fields(call)
    pictures = tuple(_pictures(fields, "input_reference", "reference"))
    values, extras = _checked(VIDEO, fields)
    if "seconds" in values:
        values["seconds"] = _seconds(values["seconds"])
    return _wish(settings, "video", values, extras, pictures)


# -------------------------------------------------------------------------------------------------------------- fields


def _fields(call: Call) -> dict[str, Any]:
    """The body as one mapping, whichever way it was sent; repeated files become lists."""
    if not call.is_form:
        if not isinstance(call.json, dict):
            raise InvalidRequest("The body must be a JSON object.")
        return dict(call.json)
    fields: dict[str, Any] = {}
    for name, value in call.form:
        match = _INDEXED.fullmatch(name)
        if match:
            fields.setdefault(match[1], []).append(value)
        elif name in fields:
            raise InvalidRequest(f"`{name}` was sent twice.", param=name)
        elif isinstance(value, Sent) and name != "mask":
            raise InvalidRequest(f"`{name}` is not a file field.", param=name)
        else:
            fields[name] = value
    return {name: _from_text(name, value) for name, value in fields.items()}


def _from_text(name: str, value: Any) -> Any:
    """Forms carry only text; numbers and objects are read back where the interface has them."""
    row = IMAGE.get(name) or EDIT.get(name) or VIDEO.get(name)
    if not isinstance(value, str) or row is None or "string" in row.types:
        return value
    if row.types in (("integer",), ("number",)):
        try:
            return int(value) if row.types == ("integer",) or value.lstrip("-").isdigit() else float(value)
        except ValueError:
            return value
    return _object(name, value) if row.types == ("object",) else value


def _object(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise InvalidRequest(f"`{name}` must be an object written as JSON.", param=name) from None


def _checked(table: Table, fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Known fields checked under their proper names; the rest is for the provider."""
    values: dict[str, Any] = {}
    extras: dict[str, Any] = {}
    for name, value in fields.items():
        row = table.get(name)
        if row is None:
            extras[name] = value
        elif value is not None:
            check_field(row, value)
            proper = row.same_as or name
            if values.get(proper, value) != value:
                raise InvalidRequest(f"`{name}` and `{proper}` say different things; send one of them.", param=name)
            values[proper] = value
    for row in table.values():
        if row.required and row.name not in values and "file" not in row.types:
            raise InvalidRequest(f"`{row.name}` is required.", param=row.name)
    return values, extras


# ---------------------------------------------------------------------------------------------------------- the wishes


def _wish(
    settings: Settings,
    task: str,
    values: dict[str, Any],
    extras: dict[str, Any],
    pictures: tuple[Picture, ...] = (),
) -> Wish:
    _check_shape(values)
    metadata = _metadata(values.get("metadata"))
    hook = values.get("webhook_url")
    key = values.get("idempotency_key")
    retention = _retention(settings, values.get("media_retention"))
    model = values["model"]
    kept = {name: value for name, value in values.items() if name not in _OURS}
    request = Request(task=task, model=model, values=kept, extras=extras, metadata=metadata)
    return Wish(request, pictures, retention, netguard.check_webhook_url(hook) if hook else None, key)


def _check_shape(values: dict[str, Any]) -> None:
    for name in ("size", "aspect_ratio"):
        if name not in values:
            continue
        try:
            frame = Frame.parse(values[name])
        except ValueError:
            form = "WIDTHxHEIGHT or a proportion such as `16:9`" if name == "size" else "a proportion such as `16:9`"
            raise InvalidRequest(f"`{name}` must be {form}.", param=name) from None
        if name == "aspect_ratio" and frame.exact:
            raise InvalidRequest("`aspect_ratio` must be a proportion such as `16:9`.", param=name)
        if frame.exact and not (min(frame.sides) >= 16 and max(frame.sides) <= 8192):
            raise InvalidRequest("`size` must be from 16 to 8192 pixels on each side.", param=name)
        if not 1 / 20 <= frame.width / frame.height <= 20:
            raise InvalidRequest(f"`{name}` may be 20 times as long as it is wide at most.", param=name)


def _seconds(value: Any) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not (isfinite(number) and 0 < number <= 3600):
        raise InvalidRequest("`seconds` must be a number above 0 and at most 3600.", param="seconds")
    return int(number) if number == int(number) else number


def _retention(settings: Settings, text: str | None) -> int:
    if text is None:
        return Retention.parse(settings.media_retention).seconds
    longest = Retention.parse(settings.media_retention_max)
    try:
        asked = Retention.parse(text)
    except ValueError:
        asked = Retention(longest.seconds + 1)
    if asked.seconds > longest.seconds:
        raise InvalidRequest(
            "`media_retention` must be hours or days such as `12h` or `7d`, "
            f"from `1h` to `{settings.media_retention_max}`.",
            param="media_retention",
        )
    return asked.seconds


def _metadata(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    fits = len(value) <= _MOST_METADATA and all(
        isinstance(key, str) and len(key) <= 64 and isinstance(one, str) and len(one) <= 512
        for key, one in value.items()
    )
    if not fits:
        raise InvalidRequest(
            f"`metadata` must be at most {_MOST_METADATA} pairs of strings, "
            "names up to 64 and values up to 512 characters.",
            param="metadata",
        )
    return dict(value)


# ------------------------------------------------------------------------------------------------------------ pictures


def _pictures(fields: dict[str, Any], name: str, role: str) -> Iterator[Picture]:
    """Takes the pictures out of the fields; addresses are checked here, contents when they are loaded."""
    found = fields.pop(name, None)
    if found is None:
        return
    for one in found if isinstance(found, list) else [found]:
        source = one.get("image_url", one.get("url")) if isinstance(one, dict) else one
        if isinstance(source, dict):  # chat's form of the same thing
            source = source.get("url")
        if isinstance(source, str) and not _DATA_URI.match(source):
            source = netguard.check_media_url(source, name)
        if not isinstance(source, str | Sent):
            raise InvalidRequest(
                f"`{name}` must be a file, `{{image_url}}` with an HTTPS address, or a base64 data URI.", param=name
            )
        yield Picture(role, source, name)
