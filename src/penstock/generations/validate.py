"""Check the fields and the replay headers of a call and build the canonical request."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from penstock.accounts.labels import call_labels
from penstock.errors import InvalidRequest
from penstock.event_loop import LONG_BYTES
from penstock.fields import AUTO, EDIT, IMAGE, SOUND, SPEECH, TABLES, VIDEO, Table, UploadedFile, check_field
from penstock.generations import forms
from penstock.generations.idempotency_keys import idempotency_key
from penstock.generations.input_sources import InputSource, check_frames, take_inputs
from penstock.long_bodies import json_decoding
from penstock.net import checked_urls
from penstock.provenance.policy import provenance_of_call
from penstock.recordings.fingerprints import input_digest
from penstock.recordings.replay_headers import ReplayOptions, replay_options
from penstock.schema import LISTEN_TASKS, SOUND_TASKS, Call, Caller, Request
from penstock.settings import Settings
from penstock.upstream import faults
from penstock.upstream.extra_fields import check_extras_size
from penstock.values import (
    INPUT_VIDEOS,
    Frame,
    Retention,
)

_DECIMAL = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")
# Fields for the gateway itself, which are not part of the canonical request.
_GATEWAY_FIELDS = (
    "webhook_url", "media_retention", "idempotency_key", "metadata", "model", "stream", "partial_images",
    "provider", "labels", "provenance", "deliver_to", "deliver_required",
)  # fmt: skip
# Extra fields that OpenAI's clients send and that mean the same as no field.
_NO_EFFECT = (
    ("service_tier", "auto"),
    ("service_tier", "default"),
    ("background", "auto"),
    ("moderation", "auto"),
    ("input_fidelity", "low"),
)
_VIDEO_OF_VIDEO = {**VIDEO, "prompt": replace(VIDEO["prompt"], required=False)}
_SOUND_OF_LYRICS = {**SOUND, "prompt": replace(SOUND["prompt"], required=False)}
_METADATA_MAX = 64
_UNTIL_DELIVERED = "0"
_encode = msgspec.msgpack.Encoder().encode
_SECONDS_MAX = 3600


class ValidatedCall(msgspec.Struct, frozen=True):
    """What a call asks for, all of it valid: the request, its inputs, and what is meant for the gateway itself."""

    request: Request
    inputs: tuple[InputSource, ...] = ()
    retention_seconds: int = 0  # 0: until the outputs are delivered
    webhook_url: str | None = None
    idempotency_key: str | None = None
    replay: ReplayOptions | None = None  # None also in a dry run
    body_digest: bytes = b""  # of the raw body; set with replay options
    stream: bool = False
    provider: Mapping[str, Any] | None = None  # the caller's preferences among providers, not yet checked
    deliver_to: Any = None  # where copies of the outputs go, not yet checked
    deliver_required: bool | None = None


def canonical_digest(validated: ValidatedCall) -> bytes:
    """A digest that is equal for calls that ask for the same, however their bodies are written."""
    request = validated.request
    table = TABLES[request.task]
    inputs = [[item.role, input_digest(item.source)] for item in validated.inputs]
    values = {name: value for name, value in request.values.items() if value != table[name].default}
    others: list[Any] = [request.metadata, validated.webhook_url, validated.retention_seconds]
    if validated.deliver_to is not None or validated.deliver_required is not None:
        others += [validated.deliver_to, validated.deliver_required]
    asked = [request.model, values, request.extras, inputs, others]
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).digest()


def image(call: Call, settings: Settings) -> ValidatedCall:
    """Raises InvalidRequest, which names the field, as do the functions for the other tasks."""
    values, extras = _check_fields(IMAGE, _fields(call, IMAGE))
    return _validated_call(call, settings, "image", values, extras)


def edit(call: Call, settings: Settings) -> ValidatedCall:
    """The model decides later whether it is an edit or an upscale: only an edit needs a prompt."""
    fields = _fields(call, EDIT)
    if not call.is_form and "images" in fields and fields.get("image") is None:  # OpenAI's name in a JSON body
        fields["image"] = fields.pop("images")
    egress = checked_urls.egress_rules(settings)
    inputs = [*take_inputs(fields, "image", "image", egress), *take_inputs(fields, "mask", "mask", egress)]
    values, extras = _check_fields(EDIT, fields)
    if not any(item.role == "image" for item in inputs):
        raise InvalidRequest("`image` is required: send at least one PNG, WebP or JPEG file.", param="image")
    if sum(item.role == "mask" for item in inputs) > 1:
        raise InvalidRequest("`mask` takes one file.", param="mask")
    if not values.get("prompt", "").strip():
        values.pop("prompt", None)
    return _validated_call(call, settings, "edit", values, extras, tuple(inputs))


def video(call: Call, settings: Settings) -> ValidatedCall:
    fields = _fields(call, VIDEO)
    inputs = tuple(take_inputs(fields, "input_reference", "reference", checked_urls.egress_rules(settings)))
    check_frames(inputs)
    has_video = any(item.role in INPUT_VIDEOS for item in inputs)  # then the model decides whether it needs a prompt
    values, extras = _check_fields(_VIDEO_OF_VIDEO if has_video else VIDEO, fields)
    if not values.get("negative_prompt"):
        values.pop("negative_prompt", None)
    return _validated_call(call, settings, "video", values, extras, inputs)


def speech(call: Call, settings: Settings, fields: Mapping[str, Any], *, is_job: bool) -> ValidatedCall:
    """A call of speech whose sound is kept; its fields are checked already, as far as all speech needs them."""
    values, extras = _check_fields(SPEECH, fields)
    validated = _validated_call(call, settings, "speech", values, extras)
    return msgspec.structs.replace(validated, request=msgspec.structs.replace(validated.request, is_job=is_job))


def listening(
    call: Call, settings: Settings, task: str, fields: Mapping[str, Any], source: InputSource, *, is_job: bool
) -> ValidatedCall:
    """A transcription or a translation that is kept; its fields without the sound are checked already, as far as all
    such calls need them.
    """
    values, extras = _check_fields(TABLES[task], fields)
    validated = _validated_call(call, settings, task, values, extras, (source,))
    return msgspec.structs.replace(validated, request=msgspec.structs.replace(validated.request, is_job=is_job))


def sound(call: Call, settings: Settings) -> ValidatedCall:
    """A sound or music. What is sung may take the place of its description."""
    fields = _fields(call, SOUND)
    values, extras = _check_fields(_SOUND_OF_LYRICS if fields.get("lyrics") else SOUND, fields)
    for name in ("negative_prompt", "lyrics"):
        if not values.get(name):
            values.pop(name, None)
    values.setdefault("output_format", SOUND["output_format"].default)  # asked of the provider, too, if it has it
    return _validated_call(call, settings, "sound", values, extras)


# -------------------------------------------------------------------------------------------------------------- fields


def _fields(call: Call, table: Table) -> dict[str, Any]:
    """The fields of a JSON or form body."""
    if call.is_form:
        return forms.read(call.form, table)
    if not isinstance(call.json, dict):
        raise InvalidRequest("The body must be a JSON object.")
    if call.size_bytes <= LONG_BYTES:
        return dict(call.json)
    return {
        name: value if name in table and "file" in table[name].types else json_decoding.with_plain_texts(value)
        for name, value in call.json.items()
    }


def _check_fields(table: Table, fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check the known fields. Returns their values under their main names, and the unknown fields."""
    values: dict[str, Any] = {}
    extras: dict[str, Any] = {}
    for name, value in fields.items():
        row = table.get(name)
        if value is None:  # null is the same as no field
            continue
        if row is None:
            if (name, value) not in _NO_EFFECT:
                extras[name] = value
        else:
            value = check_field(row, value)
            main_name = row.alias_of or name
            value = _seconds(value, name) if main_name == "seconds" else value
            if values.get(main_name, value) != value:
                raise InvalidRequest(f"`{name}` and `{_other_name(table, name)}` have different values.", param=name)
            values[main_name] = value
    for row in table.values():
        if row.required and row.name not in values and "file" not in row.types:
            raise InvalidRequest(f"`{row.name}` is required.", param=row.name)
    return values, extras


def _other_name(table: Table, name: str) -> str:
    """The other name of a field that has two."""
    return table[name].alias_of or next(row.name for row in table.values() if row.alias_of == name)


# ------------------------------------------------------------------------------------------------------ validated call


def _validated_call(
    call: Call,
    settings: Settings,
    task: str,
    values: dict[str, Any],
    extras: dict[str, Any],
    inputs: tuple[InputSource, ...] = (),
) -> ValidatedCall:
    _add_defaults(settings, call.caller, task, values)
    if values.get("size") == AUTO and task != "edit":  # there is no input image to take it from
        del values["size"]
    _check_shape(values)
    check_extras_size(extras, call.size_bytes)
    webhook_url, egress = values.get("webhook_url"), checked_urls.egress_rules(settings)
    request = Request(
        task=task,
        model=values["model"],
        values={name: value for name, value in values.items() if name not in _GATEWAY_FIELDS},
        extras=extras,
        metadata=_metadata(values.get("metadata")),
        labels=call_labels(call, values.get("labels")),
        partial_images=_partial_images(values),
        drill=call.headers.get(faults.HEADER, ""),
        is_job=call.is_batch_row and task != "video",
        provenance=provenance_of_call(values.get("provenance"), call.headers, settings, call.caller.provenance),
    )
    key = idempotency_key(call, values, task)
    if "metadata" in extras:
        raise InvalidRequest("`metadata` is not stored with images; use `labels` or `user`.", param="metadata")
    replay = replay_options(call.headers, call.caller.replay_mode)  # a dry run is checked as a live call is
    if call.dry_run:
        replay = None
    return ValidatedCall(
        request=request,
        inputs=inputs,
        retention_seconds=_retention_seconds(settings, values.get("media_retention")),
        webhook_url=checked_urls.check_webhook_url(webhook_url, egress) if webhook_url else None,
        idempotency_key=key,
        replay=replay,
        body_digest=_body_digest(call) if replay else b"",
        stream=values.get("stream", False),
        provider=values.get("provider"),
        deliver_to=values.get("deliver_to"),
        deliver_required=values.get("deliver_required"),
    )


def _partial_images(values: Mapping[str, Any]) -> int:
    """How many unfinished images the caller wants. Those of several images could not be told apart."""
    is_one = values.get("n", 1) == 1
    return values.get("partial_images", 0) if values.get("stream") and is_one else 0


def _add_defaults(settings: Settings, caller: Caller, task: str, values: dict[str, Any]) -> None:
    """Add the defaults of the key and of the operator for images where they differ from the interface's. The images of
    a stream are in its events.
    """
    image_form = caller.image_response_format or settings.image_response_format
    if task in ("video", *SOUND_TASKS, *LISTEN_TASKS):
        return
    if values.get("stream"):
        values["response_format"] = "b64_json"
    elif image_form != TABLES[task]["response_format"].default:
        values.setdefault("response_format", image_form)
    has_shape = any(name in values for name in ("size", "aspect_ratio", "resolution"))
    if task == "edit" and not has_shape and settings.edit_size != TABLES[task]["size"].default:
        values["size"] = settings.edit_size


def _body_digest(call: Call) -> bytes:
    """A digest that is equal for equal bodies. A form's boundary, which is new each time, is left out."""
    if not call.is_form:
        return hashlib.sha256(call.body).digest()
    digest = hashlib.sha256()
    for name, value in call.form:
        if isinstance(value, UploadedFile):  # hashed where it is, behind its length
            digest.update(_encode((name, len(value.data))))
            digest.update(value.data)
        else:
            digest.update(_encode((name, value)))
    return digest.digest()


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
    if not 0 < number <= _SECONDS_MAX:
        raise InvalidRequest(f"`{name}` must be a number above 0 and at most {_SECONDS_MAX}.", param=name)
    return int(number) if number == int(number) else number


def _retention_seconds(settings: Settings, text: str | None) -> int:
    if text is None:
        return Retention.parse(settings.media_retention).seconds
    if text == _UNTIL_DELIVERED:
        return 0
    longest = Retention.parse(settings.media_retention_max)
    try:
        retention = Retention.parse(text)
    except ValueError:
        retention = Retention(longest.seconds + 1)
    if retention.seconds > longest.seconds:
        raise InvalidRequest(
            "`media_retention` must be hours or days such as `12h` or `7d`, "
            f"from `1h` to `{settings.media_retention_max}`, or `0` for outputs that are delivered.",
            param="media_retention",
        )
    return retention.seconds


def _metadata(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    fits = len(value) <= _METADATA_MAX and all(
        isinstance(name, str) and len(name) <= 64 and isinstance(text, str) and len(text) <= 512
        for name, text in value.items()
    )
    if not fits:
        raise InvalidRequest(
            f"`metadata` must be at most {_METADATA_MAX} pairs of strings, "
            "names up to 64 and values up to 512 characters.",
            param="metadata",
        )
    return dict(value)
