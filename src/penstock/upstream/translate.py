"""Turn a request into the provider's HTTP request, as the model's table says, without any I/O."""

import copy
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from penstock.long_bodies import json_encoding
from penstock.long_bodies.base64_pieces import FileAsBase64
from penstock.net.request_start import FixedHeaders
from penstock.providers.row_names import INPUT_ROWS, INTERNAL
from penstock.providers.spec import HttpRequest, Model, Operation, Param, Provider, Upload
from penstock.schema import Request
from penstock.upstream import roles
from penstock.upstream.urls import request_url
from penstock.values import EDIT_VIDEO, FIRST_FRAME, INPUT_VIDEOS, VIDEO_ROLES, Frame, InputFile

_VIDEO_INPUTS = "input_reference"


def with_defaults(written: Request, model: Model) -> Request:
    """The request as one for this model: with its task and, for a video or a sound, the duration and size that the
    caller did not write. They are the model's defaults, unless an input file decides; the response shows them.
    """
    if model.op.task == "sound":
        return _with_model_defaults(written, model)
    if model.op.task != "video":
        return written if written.task == model.op.task else msgspec.structs.replace(written, task=model.op.task)
    request = _with_model_defaults(written, model)
    request = _with_input_shape(request, written, model)
    return _with_input_video(request, written, model)


def _with_model_defaults(written: Request, model: Model) -> Request:
    values = dict(written.values)
    for name, row in (("seconds", model.op.param("seconds")), ("size", model.op.param("frame"))):
        if row and row.default is not None and values.get(name) is None and (name == "seconds" or not written.frame):
            values[name] = row.default
    return msgspec.structs.replace(written, task=model.op.task, values=values)


def _with_input_shape(request: Request, written: Request, model: Model) -> Request:
    """A video's request with the shape of the image that it begins with, if the caller wrote no shape."""
    images = [item for item in request.inputs if item.role in ("reference", *VIDEO_ROLES)]
    is_written = written.values.get("size") or written.values.get("aspect_ratio")
    row = model.op.param("input_reference")
    assigned = roles.assign_roles(row, [item.role for item in images]) if row else []
    if is_written or FIRST_FRAME not in assigned:
        return request
    first = images[assigned.index(FIRST_FRAME)]
    shape = Frame(first.width, first.height).short_ratio
    return msgspec.structs.replace(request, values={**request.values, "size": shape}, follows_input=True)


def _with_input_video(request: Request, written: Request, model: Model) -> Request:
    """A video's request with the length of the input video that is changed, and with its shape.

    A model that upscales has a default of `scale_factor`, and makes a frame of so many times the input's. Without that
    field, `size` or `resolution` decides the factor. Other models keep the input's shape, unless the caller wrote one.
    """
    video = next((item for item in request.inputs if item.role in INPUT_VIDEOS), None)
    if video is None:
        return request
    values = dict(request.values)
    if video.role == EDIT_VIDEO:
        values["seconds"] = video.seconds
    shape = Frame(video.width, video.height)
    row = model.op.param("scale_factor")
    if row is not None and row.default is not None:
        factor = written.values.get("scale_factor") or _written_factor(written, shape) or row.default
        values |= {"scale_factor": factor, "size": shape.enlarged(factor).size}
    elif not any(written.values.get(name) for name in ("size", "aspect_ratio")):
        values |= {"aspect_ratio": shape.short_ratio} if written.values.get("resolution") else {"size": shape.size}
    return msgspec.structs.replace(request, values=values)


def _written_factor(written: Request, shape: Frame) -> float | None:
    """By how much an input must be enlarged to the size or resolution that the caller wrote."""
    short_side = written.frame.short_side if written.frame else None
    return round(short_side / min(shape.sides), 4) if short_side else None


def with_seed_of_part(request: Request, model: Model, first: int) -> Request:
    """The request as it is sent for a part of its outputs that begins with number `first`, counted from 0.

    A seed gives the same output each time, so each part has its own: the caller's seed, or the model's default, is that
    of the first output, and the others follow. After the highest seed that the model takes comes the lowest.
    """
    row = model.op.param("seed")
    is_field = "seed" in request.values  # of sounds; otherwise it is an extra field
    given = request.values.get("seed", request.extras.get("seed"))
    seed = given if given is not None else row.default if row else None
    if not first or type(seed) is not int:
        return request
    seed += first
    if row and row.high is not None and seed > row.high:
        seed = int((row.low or 0) + seed - row.high - 1)
    if is_field:
        return msgspec.structs.replace(request, values={**request.values, "seed": seed})
    return msgspec.structs.replace(request, extras={**request.extras, "seed": seed})


def table_values(request: Request, count: int, inputs: Mapping[str, Sequence[InputFile]]) -> dict[str, Any]:
    """The request's values by the names in provider tables, with the extra fields: tables may have rows for them."""
    extras = {name: value for name, value in request.extras.items() if name not in INTERNAL}
    values = extras | {name: value for name, value in request.values.items() if name not in ("size", "aspect_ratio")}
    values["n"] = count
    if frame := request.frame:
        values["frame"] = frame
    for name in INPUT_ROWS:
        if files := inputs.get(name):
            values[name] = files[0] if name == "mask" else list(files)
    return values


# What the gateway adds to the values of each call, where the table has a row for it: a seed for models whose output is
# random only through their input, and an id for providers whose callers choose the ids of jobs.
_RANDOM_VALUES: Mapping[str, Callable[[], Any]] = {"random_seed": lambda: secrets.randbits(32), "random_id": uuid.uuid4}


def random_values(model: Model) -> dict[str, Any]:
    """What the model gets that is new with each call."""
    return {name: make() for name, make in _RANDOM_VALUES.items() if model.op.param(name)}


def provider_body(model: Model, values: Mapping[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the provider's body: those of the table's rows, then extra fields that have no row."""
    body: dict[str, Any] = {}
    for row in model.op.params:
        if row.handling == "fixed":
            put_field(body, row.to[0], row.value)
        elif (given := values.get(row.name)) is not None and _is_sent(row):
            for name, value in _sent_fields(row, roles.with_roles(row, given) if row.name == _VIDEO_INPUTS else given):
                put_field(body, name, value)
    for name, value in extras.items() if model.op.takes_extras else ():
        if model.op.param(name) is None:
            body.setdefault(name, value)
    adjusted = model.op.adjust_body(body)
    if model.op.model_field and "{model}" not in model.op.send:
        adjusted[model.op.model_field] = model.upstream
    return adjusted


def sent_values(model: Model, request: Request) -> dict[str, Any]:
    """The values that the provider will get, by its own dotted field names, without input images and extra fields."""
    values = table_values(request, 1, {})
    rows = [row for row in model.op.params if _is_sent(row) and values.get(row.name) is not None]
    return {name: value for row in rows for name, value in _sent_fields(row, values[row.name])}


def _is_sent(row: Param) -> bool:
    return bool(row.to) and row.handling not in ("ignored", "refused", "fixed")


def _sent_fields(row: Param, value: Any) -> list[tuple[str, Any]]:
    """The provider's fields, and their values, for the value of one row."""
    result = row.convert(value) if row.convert else value
    if result is None:
        return []
    parts = result if isinstance(result, tuple) else (result,)
    return [(name, part) for name, part in zip(row.to, parts, strict=True) if part is not None]


def put_field(target: dict[str, Any], path: str, value: Any) -> None:
    """Set a field in nested objects: `a.b` is the field `b` of the object `a`."""
    if "." not in path:
        target[path] = value
        return
    *parents, last = path.split(".")
    for parent in parents:
        target = target.setdefault(parent, {})
    target[last] = value


def with_callback(op: Operation, fields: Mapping[str, Any], callback: str) -> Mapping[str, Any]:
    """The body with the callback URL, for providers that take it there."""
    if not callback or not op.callback_field or op.callback_field.startswith("?"):
        return fields
    body = copy.deepcopy(dict(fields))
    for name, value in (*op.callback_extras.items(), (op.callback_field, callback)):
        put_field(body, name, value)
    return body


def request_headers(provider: Provider, key: str) -> dict[str, str]:
    """The headers of a request to a provider, with its credential."""
    headers = {**provider.headers, **provider.auth(key)}
    return {**headers, provider.id_header: str(uuid.uuid4())} if provider.id_header else headers


class Target(msgspec.Struct, frozen=True):
    """Where requests go, and with which headers."""

    method: str
    url: str
    headers: FixedHeaders
    auth: Mapping[str, str]  # the part of the headers that is made of the credential


def fixed_target(provider: Provider, model: Model, key: str) -> Target | None:
    """Where all requests of a model go that have a JSON object as body; None if each one needs headers of its own."""
    if provider.sign or provider.id_header or model.op.body != "json" or model.op.has_url_fields:
        return None
    method, path = _method_and_path(model)
    auth = provider.auth(key)
    headers = FixedHeaders({**provider.headers, **auth, "content-type": "application/json"})
    return Target(method, request_url(provider.base_url, path, provider.query), headers, auth)


def _method_and_path(model: Model) -> tuple[str, str]:
    method, path = model.op.send.split(" ", 1)
    return method, path.replace("{model}", model.upstream)


def http_request(
    provider: Provider, model: Model, fields: Mapping[str, Any], key: str, callback: str = "", size_bytes: int = 0
) -> HttpRequest:
    """The HTTP request that submits these fields, which have about so many bytes; many are encoded in small steps."""
    method, path = _method_and_path(model)
    if callback and (model.op.callback_field or "").startswith("?"):
        path += f"{model.op.callback_field}={quote(callback, safe='')}"
    if model.op.has_url_fields:
        path, fields = _with_url_fields(path, fields)
    url = request_url(provider.base_url, path, provider.query)
    fields = with_callback(model.op, fields, callback)
    headers = request_headers(provider, key)
    if model.op.transcription:
        headers |= model.op.transcription.headers
    if model.op.body == "form":
        return HttpRequest(method, url, headers, form=tuple(_form(fields)))
    if model.op.body == "file":
        file: Upload = fields["file"]
        headers["content-type"] = file.content_type
        return HttpRequest(method, url, headers, bytes(file.data))
    if model.op.body == "msgpack":
        headers["content-type"] = "application/msgpack"
        return HttpRequest(method, url, headers, msgspec.msgpack.encode(fields))
    headers["content-type"] = "application/json"
    content: Any = [fields] if model.op.body == "json-list" else fields
    return signed(provider, HttpRequest(method, url, headers, json_encoding.encode(content, size_bytes)), key)


def _with_url_fields(path: str, fields: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The path with the fields that belong into the URL, and the others; see `providers.speech`."""
    query = [
        (name[1:], json_text(item))
        for name, value in fields.items()
        if name.startswith("?")
        for item in (value if isinstance(value, list) else [value])
    ]
    for name, value in fields.items():
        if name.startswith("{"):
            path = path.replace(name, quote(str(value), safe=""))
    if query:
        path += ("&" if "?" in path else "?") + urlencode(query)
    return path, {name: value for name, value in fields.items() if name[0] not in "?{"}


def signed(provider: Provider, request: HttpRequest, key: str) -> HttpRequest:
    """The request with the headers that sign it, if the provider wants requests to be signed."""
    if provider.sign is None:
        return request
    return msgspec.structs.replace(request, headers={**request.headers, **provider.sign(request, key)})


def streams(model: Model, request: Request) -> bool:
    """Whether the caller wants unfinished images, and the provider sends them."""
    return request.partial_images > 0 and model.op.partial_image_tokens is not None


def stream_request(
    provider: Provider, model: Model, fields: Mapping[str, Any], request: Request, key: str, size_bytes: int = 0
) -> HttpRequest:
    """The HTTP request for a stream with as many unfinished images as the caller wants."""
    fields = {**fields, "stream": True, "partial_images": request.partial_images}
    return http_request(provider, model, fields, key, size_bytes=size_bytes)


def _form(fields: Mapping[str, Any]) -> list[tuple[str, str | Upload]]:
    parts: list[tuple[str, str | Upload]] = []
    for name, value in fields.items():
        for item in value if isinstance(value, list) else [] if value is None else [value]:
            parts.append((name, item if isinstance(item, str | Upload) else json_text(item)))
    return parts


def json_text(value: Any) -> str:
    return str(value) if isinstance(value, str | FileAsBase64) else msgspec.json.encode(value).decode()
