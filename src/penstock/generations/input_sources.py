"""Find the input images and videos of a call, and what the caller says that each is for."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import InvalidRequest
from penstock.fields import UploadedFile
from penstock.imaging.sniff import sniff
from penstock.long_bodies.base64_pieces import Base64Text, is_data_uri
from penstock.net import checked_urls
from penstock.net.checked_urls import EgressRules
from penstock.values import (
    EDIT_VIDEO,
    EXTEND_VIDEO,
    FIRST_FRAME,
    FRAME_ROLES,
    INPUT_VIDEOS,
    LAST_FRAME,
    REFERENCE_IMAGE,
)

_DATA_URI = re.compile(r"data:([a-z]+/[a-z0-9.+-]+)?(?:;[a-z0-9=-]+)*;base64,", re.IGNORECASE)
# What callers say that an input image of a video is for.
_ROLES = {"first_frame": FIRST_FRAME, "last_frame": LAST_FRAME, "reference": REFERENCE_IMAGE}
# What callers say that an input video is for; without it, the video is changed.
_INPUT_VIDEO_ROLES = {"edit": EDIT_VIDEO, "extend": EXTEND_VIDEO}
_DATA_URI_START = 256  # characters
_FILE_START = 512  # bytes
_VIDEO_URI = "data:video/"
_INPUTS_MAX = 16


@dataclass(frozen=True, slots=True)
class InputSource:
    """An input image or video of a call before it is loaded: a file, a data URI or a URL."""

    role: str
    source: UploadedFile | str | Base64Text
    param: str

    @property
    def is_url(self) -> bool:
        return isinstance(self.source, str) and not is_data_uri(self.source)


def take_inputs(fields: dict[str, Any], name: str, role: str, egress: EgressRules) -> Iterator[InputSource]:
    """Remove a field of input images from `fields` and yield them. URLs are checked here, contents when loaded."""
    value = fields.pop(name, None)
    if value is None:
        return
    items = value if isinstance(value, list) else [value]
    if len(items) > _INPUTS_MAX:
        raise InvalidRequest(f"`{name}` takes at most {_INPUTS_MAX}.", param=name)
    for item in items:
        if isinstance(item, dict) and "file_id" in item:
            message = f"`{name}` cannot be a `file_id`: this gateway keeps no files; send `image_url` instead."
            raise InvalidRequest(message, param=name)
        source, stated = _source_and_role(item, name) if isinstance(item, dict) else (item, None)
        if stated is None and name == "input_reference" and _is_video(source):
            stated = EDIT_VIDEO
        if isinstance(source, dict):  # as in chat messages
            source = source.get("url")
        if not isinstance(source, str | UploadedFile | Base64Text) or (
            is_data_uri(source) and not _is_base64_uri(source)
        ):
            raise InvalidRequest(
                f"`{name}` must be a file, `{{image_url}}` with an HTTPS URL, or a base64 data URI.", param=name
            )
        if isinstance(source, str) and not is_data_uri(source):
            source = checked_urls.check_media_url(source, name, egress)
        yield InputSource(stated or role, source, name)


def _source_and_role(item: Mapping[str, Any], name: str) -> tuple[Any, str | None]:
    """The image or video of an object, and the role that it states: only inputs of videos have one.

    Forms write it as the name of the file: `input_reference[last_frame]`.
    """
    if name != "input_reference":
        return item.get("image_url", item.get("url")), None
    for word, role in (*_ROLES.items(), *_INPUT_VIDEO_ROLES.items()):
        if word in item:
            return item[word], role
    known = _INPUT_VIDEO_ROLES if "video_url" in item else _ROLES
    stated = item.get("role")
    if stated is not None and not (isinstance(stated, str) and stated in known):
        allowed = ", ".join(f"`{word}`" for word in known)
        kind = "a video" if known is _INPUT_VIDEO_ROLES else "an image"
        raise InvalidRequest(f"`role` of {kind} in `{name}` must be one of {allowed}.", param=name)
    if "video_url" in item:
        return item["video_url"], known[stated or "edit"]
    return item.get("image_url", item.get("url")), known.get(stated) if stated else None


def _is_video(source: Any) -> bool:
    """Whether a file or a data URI is a video; what is behind a URL is not known yet."""
    if isinstance(source, UploadedFile):
        found = sniff(source.data[:_FILE_START])
        return found is not None and found.content_type.startswith("video/")
    start = source.head if isinstance(source, Base64Text) else source
    return isinstance(start, str) and start[: len(_VIDEO_URI)].lower() == _VIDEO_URI


def check_frames(inputs: Sequence[InputSource]) -> None:
    for word, role in _ROLES.items():
        if role in FRAME_ROLES and sum(item.role == role for item in inputs) > 1:
            raise InvalidRequest(f"`input_reference` has more than one `{word}`.", param="input_reference")
    if sum(item.role in INPUT_VIDEOS for item in inputs) > 1:
        raise InvalidRequest("`input_reference` takes one video.", param="input_reference")
    if len(inputs) > 1 and any(item.role in INPUT_VIDEOS for item in inputs):
        raise InvalidRequest("`input_reference` takes a video or images, not both.", param="input_reference")


def _is_base64_uri(source: str | UploadedFile | Base64Text) -> bool:
    """Whether a data URI has a base64 body; only its start is searched, because it may have many megabytes."""
    start = source.head if isinstance(source, Base64Text) else source
    return isinstance(start, str) and _DATA_URI.match(start[:_DATA_URI_START]) is not None
