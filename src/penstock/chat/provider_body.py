"""Build the body of a chat call for a provider, and check that the model supports it."""

from collections.abc import Mapping
from typing import Any

from penstock.chat.request import ChatRequest
from penstock.chat.sounds import check_sound_prices
from penstock.errors import InvalidRequest
from penstock.fields import CHAT
from penstock.long_bodies.json_encoding import exceeds
from penstock.providers.spec import Model
from penstock.upstream import checks
from penstock.upstream.extra_fields import check_extras

NOT_FORWARDED = ("session_id", "labels")


def check_supported(chat: ChatRequest, model: Model) -> None:
    """Raise InvalidRequest for a value that the model does not support; defaults of the interface always pass."""
    most = model.op.max_body_bytes
    if most is not None and exceeds(provider_body(chat, model, None), most, chat.size_bytes):
        raise InvalidRequest(f"A call of {model.id} may have at most {most} bytes of JSON.")
    if chat.extras:
        check_extras(model, chat.extras)
    if chat.sounds or chat.speaks:
        check_sound_prices(chat, model)
    if chat.responses and chat.responses.not_in_chat and not passes_through(chat, model):
        field = chat.responses.not_in_chat
        raise InvalidRequest(
            f"`{field}` needs a model whose provider has the Responses API itself; {model.id} has not.", param=field
        )
    for row in model.op.params:
        value = chat.body.get(row.name)
        if value is not None and value != (CHAT[row.name].default if row.name in CHAT else None):
            checks.check_row(model, row, value)


def passes_through(chat: ChatRequest, model: Model) -> bool:
    """Whether the provider gets the call of the Responses API as it is, instead of its translation."""
    return model.op.responses is not None and chat.responses is not None and chat.responses.may_pass_through


def token_limit(chat: ChatRequest, model: Model, default_output_tokens: int | None) -> int | None:
    """The limit of output tokens that money is reserved for: the caller's or, where output costs something, the
    default.
    """
    if chat.token_limit is not None:
        return chat.token_limit
    for price in model.prices:
        if price.usd != "0":
            return default_output_tokens
    return None


def provider_body(chat: ChatRequest, model: Model, default_output_tokens: int | None) -> dict[str, Any]:
    """Return the body for the provider: the caller's, changed where the model's table differs from OpenAI's API.

    It always has the limit of output tokens that money was reserved for. A stream always asks for usage, because the
    cost depends on it, unless the table has a row for `stream_options`.
    """
    fields = chat.body.copy()
    for name in NOT_FORWARDED:
        fields.pop(name, None)
    limit = token_limit(chat, model, default_output_tokens)
    if limit is not None:
        _put_token_limit(fields, limit)
    if model.op.params:
        apply_rows(model, fields)
    if chat.stream and model.op.param("stream_options") is None:
        fields["stream_options"] = {**(chat.body.get("stream_options") or {}), "include_usage": True}
    fields["model"] = model.upstream
    return fields


def apply_rows(model: Model, fields: dict[str, Any]) -> None:
    """Change the fields of a body where the model's table differs from OpenAI's API."""
    for row in model.op.params:
        value = fields.pop(row.name, None) if row.handling != "fixed" else row.value
        if value is not None and row.convert:
            value = row.convert(value)
        if value is not None and row.to:
            name, _, inner = row.to[0].partition(".")
            fields[name] = {**_as_mapping(fields.get(name)), inner: value} if inner else value


def _put_token_limit(fields: dict[str, Any], limit: int) -> None:
    """Set the limit under one name: the caller's, or `max_tokens`, which rows of the table may rename."""
    older = fields.pop("max_tokens", None)
    newer = fields.pop("max_completion_tokens", None)
    fields["max_completion_tokens" if newer and not older else "max_tokens"] = limit


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
