"""Check the fields of a Responses call that a chat call does not get."""

from collections.abc import Mapping
from typing import Any, NoReturn

from penstock.errors import InvalidRequest
from penstock.long_bodies.json_encoding import exceeds

_MAX_METADATA = 16
_MAX_METADATA_NAME = 64
_MAX_METADATA_VALUE = 512
_TRUNCATIONS = ("disabled", "auto")
_MAX_REPEATED_BYTES = 1024**2
# Fields that the response repeats, three times if it is a stream.
_REPEATED = ("instructions", "reasoning", "text", "tool_choice", "tools")
_OTHER_TYPES = (
    ("stream_options", dict, "an object"),
    ("prompt_cache_key", str, "a string"),
    ("safety_identifier", str, "a string"),
)


def check_values(body: Mapping[str, Any], size_bytes: int) -> None:
    """Check fields that a chat call does not get, and one that it would get and Responses does not have."""
    if body.get("truncation", "disabled") not in _TRUNCATIONS:
        refuse("truncation", "must be `disabled` or `auto`")
    if body.get("n", 1) != 1:
        refuse("n", "must be 1: a response has one answer")
    for name, kind, rule in _OTHER_TYPES:
        if name in body and (not isinstance(body[name], kind) or isinstance(body[name], bool)):
            refuse(name, f"must be {rule}")
    if "stream_options" in body and not body.get("stream"):
        refuse("stream_options", "needs `stream` to be true")
    if not body.get("tools") and body.get("tool_choice", "auto") not in ("none", "auto"):
        refuse("tool_choice", "needs `tools`, unless it is `none` or `auto`")
    _check_metadata(body.get("metadata", {}))
    if size_bytes > _MAX_REPEATED_BYTES:
        _check_repeated(body, size_bytes)


def _check_metadata(metadata: Mapping[str, Any]) -> None:
    """Check the pairs by OpenAI's rules."""
    if len(metadata) > _MAX_METADATA:
        refuse("metadata", f"may have at most {_MAX_METADATA} pairs")
    for name, value in metadata.items():
        if len(name) > _MAX_METADATA_NAME:
            refuse("metadata", f"may have names of at most {_MAX_METADATA_NAME} characters")
        if not isinstance(value, str) or len(value) > _MAX_METADATA_VALUE:
            refuse(f"metadata.{name}", f"must be a string of at most {_MAX_METADATA_VALUE} characters")


def _check_repeated(body: Mapping[str, Any], size_bytes: int) -> None:
    if exceeds([body.get(name) for name in _REPEATED], _MAX_REPEATED_BYTES, size_bytes):
        names = ", ".join(f"`{name}`" for name in _REPEATED)
        raise InvalidRequest(f"{names} may have {_MAX_REPEATED_BYTES} bytes together: the response repeats them.")


def refuse(param: str, rule: str) -> NoReturn:
    raise InvalidRequest(f"`{param}` {rule}.", param=param)
