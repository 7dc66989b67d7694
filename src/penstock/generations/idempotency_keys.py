"""Read the idempotency key of a call, from its body or its header."""

from collections.abc import Mapping
from typing import Any

from penstock.errors import InvalidRequest
from penstock.schema import Call

_LENGTH_MAX = 256
_FIELD = "idempotency_key"


def first_look(call: Call, task: str) -> str | None:
    """The key of a call for a job that is not validated yet; None if it has none that is valid."""
    fields = dict(call.form) if call.is_form else call.json
    key = fields.get(_FIELD) if isinstance(fields, dict) else None
    if key is not None and not (isinstance(key, str) and _is_key(key)):
        return None
    try:
        return idempotency_key(call, {_FIELD: key}, task)
    except InvalidRequest:
        return None


def idempotency_key(call: Call, values: Mapping[str, Any], task: str) -> str | None:
    """The key of a call with these values, as it is stored: those of images and edits do not meet those of videos.
    Raises InvalidRequest.
    """
    key = read_key(call, values.get(_FIELD))
    if key and values.get("stream"):
        message = "An idempotency key cannot be used with `stream`, whose unfinished images are shown once."
        raise InvalidRequest(message, param=_FIELD)
    return key if key is None or task == "video" else f"{task}\n{key}"


def read_key(call: Call, value: Any) -> str | None:
    """The key of a call from its header and its field with this value. Raises InvalidRequest."""
    header = call.headers.get("idempotency-key")
    if header is not None and not _is_key(header):
        raise InvalidRequest(
            f"The header `Idempotency-Key` must have 1 to {_LENGTH_MAX} characters.", param="Idempotency-Key"
        )
    if value is not None and not (isinstance(value, str) and _is_key(value)):
        raise InvalidRequest(f"`idempotency_key` must be a string of 1 to {_LENGTH_MAX} characters.", param=_FIELD)
    key: str | None = value or header
    if header not in (None, key):
        message = "`idempotency_key` and the header `Idempotency-Key` have different values."
        raise InvalidRequest(message, param=_FIELD)
    return key


def _is_key(key: str) -> bool:
    return bool(key.strip()) and len(key) <= _LENGTH_MAX
