"""Record a refused call, with what can be read from its body, which is not checked, or not valid."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from penstock.accounts.labels import usable_labels
from penstock.accounts.requests import Requests
from penstock.errors import Problem
from penstock.fields import CHAT
from penstock.schema import Call

_MODEL_CHARS = 256
_IMAGE_PARTS = ("image_url", "input_image")  # of a chat call, and of a call of the Responses API


class RefusedFields(NamedTuple):
    """The fields of a refused call that are columns of its record; None where the call has no usable value."""

    model: str | None
    modality: str | None
    user: str | None
    session_id: str | None
    labels: dict[str, str]


async def record_refusal(
    requests: Requests, call: Call, problem: Problem, kind: str | None, modality: str | None, response_bytes: int = 0
) -> None:
    """Write a request record with status `rejected`."""
    fields = refused_fields(call, kind, modality)
    await requests.reject(
        call,
        problem,
        fields.model,
        fields.modality,
        kind,
        user=fields.user,
        session_id=fields.session_id,
        labels=fields.labels,
        response_bytes=response_bytes,
    )


def refused_fields(call: Call, kind: str | None, modality: str | None) -> RefusedFields:
    """Return what a refused call of this kind says about itself."""
    modality = "vision" if kind == "chat" and _has_image(call.json) else modality
    labels = usable_labels(call, _value(call, "labels"))
    return RefusedFields(named_model(call), modality, _text(call, "user"), _text(call, "session_id"), labels)


def named_model(call: Call) -> str | None:
    """Return the model that a call names, or the beginning of a name that is too long."""
    named = _value(call, "model")
    return named[:_MODEL_CHARS] if isinstance(named, str) else None


def _text(call: Call, name: str) -> str | None:
    """Return the text of a field, unless it is longer than the field may be. All endpoints have the same limit."""
    text = _value(call, name)
    longest = CHAT[name].max_length or 0
    return text if isinstance(text, str) and 0 < len(text) <= longest else None


def _value(call: Call, name: str) -> Any:
    if call.is_form:
        return dict(call.form).get(name)
    return call.json.get(name) if isinstance(call.json, dict) else None


def _has_image(body: Any) -> bool:
    return any(isinstance(part, dict) and part.get("type") in _IMAGE_PARTS for part in _parts(body))


def _parts(body: Any) -> Iterator[Any]:
    """The parts of all messages of a chat call, or of all items of a call of the Responses API."""
    messages = body.get("messages") or body.get("input") if isinstance(body, dict) else None
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        yield from content if isinstance(content, list) else ()
