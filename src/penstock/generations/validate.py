"""Check a call's fields and make the canonical request, or say what is wrong."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import InvalidRequest
from penstock.fields import check_field
from penstock.generations import forms
from penstock.net import guard
from penstock.net.guard import EgressRules
from penstock.schema import AUTO, EDIT, IMAGE, VIDEO, Call, Request, Table, UploadedFile
from penstock.settings import Settings
from penstock.values import Frame, Retention

_DECIMAL = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")
_DATA_URI = re.compile(r"data:([a-z]+/[a-z0-9.+-]+)?(?:;[a-z0-9=-]+)*;base64,", re.IGNORECASE)
# Fields that steer the gateway and are nobody else's business.
_OURS = ("webhook_url", "media_retention", "idempotency_key", "metadata", "model")
_MOST_METADATA = 64
_MOST_SECONDS = 3600
_MOST_PICTURES = 16


@dataclass(frozen=True, slots=True)
class InputSource:
    """A picture that came with the call, still to be fetched or checked: a file, a data URI or an address."""

    role: str
    source: UploadedFile | str
    param: str


@dataclass(frozen=True, slots=True)
class ValidatedCall:
    """A valid call: the request, and what concerns only us."""

    request: Request
    pictures: tuple[InputSource, ...] = ()
    retention_seconds: int = 0
    webhook_url: str | None = None
    idempotency_key: str | None = None


def image(call: Call, settings: Settings) -> ValidatedCall:
    values, extras = _checked(IMAGE, _fields(call, IMAGE))
    return _wish(settings, "image", values, extras)


def edit(call: Call, settings: Settings) -> ValidatedCall:
    """`task` is settled by the model: an upscaler needs no prompt."""
    fields, egress = _fields(call, EDIT), _egress(settings)
    pictures = [*_pictures(fields, "image", "image", egress), *_pictures(fields, "mask", "mask", egress)]
    values, extras = _checked(EDIT, fields)
    if not any(picture.role == "image" for picture in pictures):
        raise InvalidRequest("`image` is required: send at least one PNG, WebP or JPEG file.", param="image")
    if sum(picture.role == "mask" for picture in pictures) > 1:
        raise InvalidRequest("`mask` takes one file.", param="mask")
    if not values.get("prompt", "").strip():
        values.pop("prompt", None)
    return _wish(settings, "edit", values, extras, tuple(pictures))


def video(call: Call, settings: Settings) -> ValidatedCall:
    fields = _fields(call, VIDEO)
    pictures = tuple(_pictures(fields, "input_reference", "reference", _egress(settings)))
    values, extras = _checked(VIDEO, fields)
    return _wish(settings, "video", values, extras, pictures)


# -------------------------------------------------------------------------------------------------------------- fields


def _fields(call: Call, table: Table) -> dict[str, Any]:
    """The body as one mapping, whichever way it was sent."""
    if call.is_form:
        return forms.read(call.form, table)
    if not isinstance(call.json, dict):
        raise InvalidRequest("The body must be a JSON object.")
    return dict(call.json)


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
            value = _seconds(value, name) if proper == "seconds" else value
            if values.get(proper, value) != value:
                raise InvalidRequest(f"`{name}` and `{_other(table, name)}` say different things.", param=name)
            values[proper] = value
    for row in table.values():
        if row.required and row.name not in values and "file" not in row.types:
            raise InvalidRequest(f"`{row.name}` is required.", param=row.name)
    return values, extras


def _other(table: Table, name: str) -> str:
    """The other name of a field that has two."""
    return table[name].same_as or next(row.name for row in table.values() if row.same_as == name)


# ---------------------------------------------------------------------------------------------------------- the wishes


def _wish(
    settings: Settings,
    task: str,
    values: dict[str, Any],
    extras: dict[str, Any],
    pictures: tuple[InputSource, ...] = (),
) -> ValidatedCall:
    if values.get("size") == AUTO and task != "edit":  # there is nothing to take it from
        del values["size"]
    _check_shape(values)
    metadata = _metadata(values.get("metadata"))
    hook = values.get("webhook_url")
    hook = guard.check_webhook_url(hook, _egress(settings)) if hook else None
    key = values.get("idempotency_key")
    retention = _retention(settings, values.get("media_retention"))
    model = values["model"]
    kept = {name: value for name, value in values.items() if name not in _OURS}
    request = Request(task=task, model=model, values=kept, extras=extras, metadata=metadata)
    return ValidatedCall(request, pictures, retention, hook, key)


def _egress(settings: Settings) -> EgressRules:
    return EgressRules(settings.egress_allow_cidrs, settings.egress_allow_hosts)


def _check_shape(values: dict[str, Any]) -> None:
    for name in ("size", "aspect_ratio"):
        if name not in values or (name == "size" and values[name] == AUTO):
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


def _seconds(value: str | float, name: str) -> float:
    number = value if not isinstance(value, str) else float(value) if _DECIMAL.fullmatch(value) else 0.0
    if not 0 < number <= _MOST_SECONDS:
        raise InvalidRequest(f"`{name}` must be a number above 0 and at most {_MOST_SECONDS}.", param=name)
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


def _pictures(fields: dict[str, Any], name: str, role: str, egress: EgressRules) -> Iterator[InputSource]:
    """Takes the pictures out of the fields; addresses are checked here, contents when they are loaded."""
    found = fields.pop(name, None)
    if found is None:
        return
    several = found if isinstance(found, list) else [found]
    if len(several) > _MOST_PICTURES:
        raise InvalidRequest(f"`{name}` takes at most {_MOST_PICTURES}.", param=name)
    for one in several:
        source = one.get("image_url", one.get("url")) if isinstance(one, dict) else one
        if isinstance(source, dict):  # chat's form of the same thing
            source = source.get("url")
        if not isinstance(source, str | UploadedFile) or (_is_data(source) and not _DATA_URI.match(str(source))):
            raise InvalidRequest(
                f"`{name}` must be a file, `{{image_url}}` with an HTTPS address, or a base64 data URI.", param=name
            )
        if isinstance(source, str) and not _is_data(source):
            source = guard.check_media_url(source, name, egress)
        yield InputSource(role, source, name)


def _is_data(source: str | UploadedFile) -> bool:
    return isinstance(source, str) and source[:5].lower() == "data:"
