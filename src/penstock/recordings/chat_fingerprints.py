"""Compute what a chat call, or one of the Responses API, is recognised by when a recording of it is looked for."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.fields import CHAT, RESPONSES
from penstock.long_bodies.base64_pieces import is_data_uri
from penstock.recordings.fingerprints import IGNORED_FIELDS, compared_by, input_digest
from penstock.recordings.recordings import SHOWN_REQUEST_BYTES
from penstock.schema import Fingerprint

_CONVERSATION = ("messages", "input", "instructions")
# Fields that change neither what a model answers nor in which form.
_IGNORED = IGNORED_FIELDS | {"model", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "service_tier",
                             "store", "prediction", "provider"}  # fmt: skip
# What the match `standard` leaves out of a conversation: its wording, and ids that differ each time.
_TEXTS = frozenset({"text", "content", "arguments", "output", "refusal", "encrypted_content", "summary"})
_IDS = frozenset({"id", "call_id", "tool_call_id", "status"})


def chat_fingerprint(kind: str, model: str, body: Mapping[str, Any], strict: bytes, match: str) -> Fingerprint:
    """What a chat call is compared by. `standard` compares the parameters, the order of roles, and the images and tools
    that are named in the conversation, but not its words; `exact` compares these too. A field at its default counts
    the same as a field left out.

    `model` is the id under which it is listed, `strict` are the bytes of the call.
    """
    given = {name: _with_digests(value) for name, value in body.items() if value is not None}
    fields = RESPONSES if kind == "response" else CHAT
    parameters = {
        name: value
        for name, value in given.items()
        if name not in _IGNORED
        and name not in _CONVERSATION
        and not (name in fields and type(value) is type(fields[name].default) and value == fields[name].default)
    }
    spoken = {name: given[name] for name in _CONVERSATION if name in given}
    standard = [kind, model, parameters, {name: _without_words(value) for name, value in spoken.items()}]
    return Fingerprint(
        kind,
        model,
        _shown({**given, "model": model}),
        _digest(standard),
        hashlib.sha256(strict).digest(),
        compared_by(match),
        _digest([kind, model, parameters, spoken]),
    )


def _digest(value: Any) -> bytes:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).digest()


def _with_digests(value: Any) -> Any:
    """The value with the digests of files in place of their data URIs."""
    if isinstance(value, str):
        return f"sha256:{input_digest(value)}" if is_data_uri(value) else value
    if isinstance(value, list):
        return [_with_digests(item) for item in value]
    return {name: _with_digests(item) for name, item in value.items()} if isinstance(value, dict) else value


def _without_words(value: Any) -> Any:
    """A conversation without what is said in it."""
    if isinstance(value, str):
        return ""
    if isinstance(value, list):
        return [_without_words(item) if isinstance(item, list | str) else _item_without_words(item) for item in value]
    return value


def _item_without_words(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    kept = {name: value for name, value in item.items() if name not in _IDS and value is not None}
    return {name: _said(value) if name in _TEXTS else _inner(value) for name, value in kept.items()}


def _said(value: Any) -> Any:
    return _without_words(value) if isinstance(value, list) else ""


def _inner(value: Any) -> Any:
    if isinstance(value, list):
        return _without_words(value)
    return _item_without_words(value) if isinstance(value, dict) else value


def _shown(values: dict[str, Any]) -> dict[str, Any]:
    """The call as a recording shows it: of a very long conversation its digest."""
    if len(msgspec.json.encode(values)) <= SHOWN_REQUEST_BYTES:
        return values
    return {
        name: value if len(msgspec.json.encode(value)) < _LONG_BYTES else f"sha256:{_digest(value).hex()}"
        for name, value in values.items()
    }


_LONG_BYTES = 1024
