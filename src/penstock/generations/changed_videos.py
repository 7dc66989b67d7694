"""Edit, extend and remix videos as OpenAI's Videos API did: each starts a video whose input is another one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from penstock.errors import InvalidRequest, PayloadTooLarge
from penstock.fields import VIDEO, Field, UploadedFile, text_field
from penstock.gateway import Gateway
from penstock.generations import forms
from penstock.generations.endpoints import start_video
from penstock.generations.retrieve import get_video_row, video_output
from penstock.schema import Call, Response
from penstock.values import OrgId

_MODEL = text_field("model", "Model identifier; by default the model of the video that is changed.", max_length=256)
REMIX = {name: row for name, row in VIDEO.items() if name != "input_reference"} | {"model": _MODEL}
CHANGED_VIDEO = REMIX | {
    "prompt": replace(VIDEO["prompt"], required=False),
    "video": Field(
        name="video",
        types=("object", "string", "file"),
        about="The video: a file in a form, `{id}` of a completed video of this gateway, an HTTPS URL or a data URI.",
        required=True,
    ),
}


class SourceVideo(msgspec.Struct, frozen=True):
    """A completed video of the gateway that is an input of another."""

    model: str
    file: UploadedFile


async def edit_video(gateway: Gateway, call: Call) -> Response:
    """Start a video that is made from another by a prompt."""
    return await _change(gateway, call, "edit")


async def extend_video(gateway: Gateway, call: Call) -> Response:
    """Start a video that goes on where another ends."""
    return await _change(gateway, call, "extend")


async def remix_video(gateway: Gateway, call: Call) -> Response:
    """Start a video that is made by a prompt from the video in the path."""
    fields = _fields(call)
    for name in ("video", "input_reference"):
        if name in fields:
            raise InvalidRequest(f"`{name}` is not a field here: the path names the video.", param=name)
    source = await load_source(gateway, call.path["id"], call.caller.org_id)
    return await _start(gateway, call, fields, "edit", call.path["id"], source)


async def _change(gateway: Gateway, call: Call, role: str) -> Response:
    fields = _fields(call)
    if "input_reference" in fields:
        raise InvalidRequest("`input_reference` is not a field here: send `video`.", param="input_reference")
    video = fields.pop("video", None)
    if isinstance(video, list):  # as forms have files
        if len(video) > 1:
            raise InvalidRequest("`video` takes one video.", param="video")
        video = video[0]
    if isinstance(video, dict) and set(video) == {"id"} and isinstance(video["id"], str):
        source = await load_source(gateway, video["id"], call.caller.org_id, param="video")
        return await _start(gateway, call, fields, role, video["id"], source)
    if isinstance(video, dict | None):
        allowed = "a file, `{id}` of a completed video, an HTTPS URL or a data URI"
        raise InvalidRequest(f"`video` must be {allowed}.", param="video")
    if call.is_form:
        return await start_video(gateway, _with_file(call, role, video))
    body = {**fields, "input_reference": {role: video}}
    return await start_video(gateway, msgspec.structs.replace(call, json=body))


def _fields(call: Call) -> dict[str, Any]:
    if call.is_form:
        return forms.read(call.form, CHANGED_VIDEO)
    return dict(call.json or {})


def _with_file(call: Call, role: str, video: Any) -> Call:
    """A form whose file is the input of the video."""
    others = tuple((name, value) for name, value in call.form if not name.startswith("video"))
    return msgspec.structs.replace(call, form=(*others, (f"input_reference[{role}]", video)))


async def _start(
    gateway: Gateway, call: Call, fields: Mapping[str, Any], role: str, video_id: str, source: SourceVideo
) -> Response:
    body = {"model": source.model, **{name: value for name, value in fields.items() if value is not None}}
    # Recordings know the call by its body, in which the file is its id.
    digested = msgspec.json.encode({**body, "video": {"id": video_id}}, order="deterministic")
    body["input_reference"] = {role: source.file}
    return await start_video(gateway, msgspec.structs.replace(call, json=body, body=digested, is_form=False, form=()))


async def load_source(gateway: Gateway, video_id: str, org_id: OrgId, *, param: str = "id") -> SourceVideo:
    """Read a completed video. Raises NotFound, Conflict for an unfinished one, and PayloadTooLarge."""
    row = await get_video_row(gateway, video_id, org_id, param=param)
    file, _ = await video_output(gateway, row)
    limit = gateway.settings.input_video_bytes
    if file.size_bytes > limit:
        message = f"The video has {file.size_bytes} bytes; an input video may have {limit}."
        raise PayloadTooLarge(message, param=param)
    data = await gateway.media.read(file.id, file.size_bytes)
    return SourceVideo(row.model, UploadedFile(data, "video.mp4", file.content_type))
