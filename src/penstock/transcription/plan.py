"""Decide what a model is asked for: how exact its times must be, and with which fields."""

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.errors import InvalidRequest
from penstock.providers.spec import Model, Transcription, Upload
from penstock.providers.transcription import DETAILS, Detail
from penstock.transcription.request import ListenRequest
from penstock.upstream import checks, translate
from penstock.upstream.extra_fields import check_extras

_FILE = "file"


class NoTimes(InvalidRequest, same_code=True):
    """The model cannot say when something was said, and the form of the transcript needs it."""


class ListenPlan(msgspec.Struct, frozen=True):
    """What one model is asked for."""

    model: Model
    detail: Detail  # that the caller needs
    asked: Mapping[str, Any]  # of the provider's body: what the transcript must have
    fields: Mapping[str, Any]  # the caller's, for the model's table

    def body(self, file: Upload, prompt: str | None, *, is_streamed: bool = False) -> dict[str, Any]:
        """The provider's fields for one part of the sound; `prompt` is what was said before it."""
        values = {**self.fields, _FILE: file}
        if prompt is not None:
            values["prompt"] = prompt
        body = translate.provider_body(self.model, values, {})
        streamed = transcription_of(self.model).streamed if is_streamed else None
        for name, value in {**self.asked, **(streamed or {})}.items():
            translate.put_field(body, name, value)
        return body


def make_plan(model: Model, request: ListenRequest, *, is_recorded: bool = False) -> ListenPlan:
    """What the model is asked for. Raises InvalidRequest if it does not support the call.

    A transcript that `is_recorded` has the finest times, so that every form can be made of it.
    """
    checks.check_libraries(model)
    values = {**request.extras, **request.values}
    if request.extras:
        check_extras(model, request.extras)
    for row in model.op.params:
        if row.name in values or (row.required and row.name != _FILE):
            checks.check_row(model, row, values.get(row.name))
    return ListenPlan(model, request.detail, _asked(model, request, is_recorded=is_recorded), values)


def _asked(model: Model, request: ListenRequest, *, is_recorded: bool) -> dict[str, Any]:
    spec = transcription_of(model)
    if request.speakers and spec.speakers is None:
        param = "diarize" if request.form != "diarized_json" else "response_format"
        raise InvalidRequest(f"{model.id} does not say who speaks.", param=param)
    if request.logprobs and spec.logprobs is None:
        raise InvalidRequest(f"{model.id} has no `logprobs`.", param="include")
    if request.original and any(price.unit != "token" for price in model.prices):
        message = f"{model.id} is not priced by the token: its price depends on a sound that the gateway has measured."
        raise InvalidRequest(message, param="original")
    detail = detail_of(model, request)
    if is_recorded:
        detail = next(each for each in reversed(DETAILS) if each in spec.details)
    fields = dict(spec.details[detail])
    if request.speakers:
        fields |= spec.speakers or {}
    if request.logprobs:
        fields |= spec.logprobs or {}
    return fields


def detail_of(model: Model, request: ListenRequest) -> Detail:
    """What the model is asked to tell of times. Raises NoTimes if that is not enough for the caller."""
    detail = transcription_of(model).asked(request.detail)
    if detail is None:
        what = "of words" if request.words else f"for `{request.form}`"
        param = "timestamp_granularities" if request.words else "response_format"
        raise NoTimes(f"{model.id} gives no times {what}.", param=param)
    return detail


def transcription_of(model: Model) -> Transcription:
    """How a model listens; only models of the tasks `transcription` and `translation` do."""
    assert model.op.transcription is not None, "only models that listen are asked to"
    return model.op.transcription
