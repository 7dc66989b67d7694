"""Calls of transcription that the built-in model answers in place of the one that was asked for."""

from dataclasses import replace

import msgspec

from penstock.gateway import Gateway
from penstock.models.routing import Route
from penstock.schema import Request
from penstock.transcription.request import ListenRequest
from penstock.transcription.speakers import NAMES, REFERENCES

_OF_OTHER_MODELS = ("diarize", "include", "original")


def for_mock(gateway: Gateway, request: ListenRequest) -> tuple[ListenRequest, Route]:
    """The call for the built-in model, at no cost."""
    mock = gateway.catalog.mock(request.task)
    return plain(request), Route((replace(mock, model=replace(mock.model, prices=())),))


def plain(request: ListenRequest) -> ListenRequest:
    """The call without what only other models know."""
    values = {name: value for name, value in request.values.items() if name not in (NAMES, REFERENCES)}
    return msgspec.structs.replace(
        request,
        values=values,
        extras={},
        preferences=None,
        speakers=False,
        logprobs=False,
        original=False,
        speaker_sounds=(),
    )


def plain_request(request: Request) -> Request:
    """The stored form of such a call, likewise."""
    values = {name: value for name, value in request.values.items() if name not in _OF_OTHER_MODELS}
    return msgspec.structs.replace(request, values=values, extras={})
