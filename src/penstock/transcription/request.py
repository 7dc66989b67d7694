"""Check a call of transcription or translation: where its sound is, and the form of the transcript."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from penstock.errors import InvalidRequest, quoted
from penstock.fields import TABLES, TRANSCRIPT_FORMS, UploadedFile, check_field
from penstock.generations import forms
from penstock.guards.texts import joined
from penstock.long_bodies.base64_pieces import Base64Text
from penstock.models.preferences import FIELD
from penstock.net import checked_urls
from penstock.net.checked_urls import EgressRules
from penstock.providers.transcription import Detail
from penstock.schema import Call, Request
from penstock.transcription.speakers import NAMES, REFERENCES, digests, speaker_sounds
from penstock.upstream.extra_fields import check_extras_size

ListenTask = Literal["transcription", "translation"]
Source = UploadedFile | Base64Text | str  # a file, base64, or a URL

_SOURCES = ("file", "input_audio", "file_url")
_TIMED = ("srt", "vtt", "verbose_json", "diarized_json")
_STREAMED = ("json", "text", "diarized_json")
_GRANULARITIES = ("word", "segment")
# What the gateway does itself, whatever the model can.
_OWN = (
    *_SOURCES, "model", "response_format", "timestamp_granularities", "stream", "original", "include", "diarize",
    "session_id", "labels", "idempotency_key", "webhook_url", "media_retention", "deliver_to", "deliver_required",
    "metadata", FIELD,
)  # fmt: skip
_MAX_ITEMS = 1000
_MAX_ITEM_LENGTH = 256


class ListenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A checked call of transcription or translation."""

    task: ListenTask
    model: str
    source: Source
    param: str  # the field that has the source
    form: str
    words: bool  # whether the times of words are wanted
    speakers: bool
    logprobs: bool
    stream: bool
    original: bool  # whether the provider is sent the file as it came
    values: Mapping[str, Any]  # the other fields of the interface, for the model's table
    extras: Mapping[str, Any]  # fields that the interface does not name
    preferences: Mapping[str, Any] | None
    records: dict[str, Any]  # what the record of the call keeps of it
    written: Mapping[str, Any]  # all fields but the sounds, as the caller wrote them
    speaker_sounds: tuple[str | Base64Text, ...] = ()  # of the speakers who are named

    @property
    def detail(self) -> Detail:
        """How exactly the transcript must say when something was said."""
        if self.words:
            return "word"
        return "segment" if self.form in _TIMED else "text"

    @property
    def written_text(self) -> str:
        """What the caller wrote beside the sound."""
        return joined(self.written.get("prompt"), self.written.get("keywords"), self.written.get(NAMES), self.extras)


def read_request(call: Call, task: ListenTask, egress: EgressRules) -> ListenRequest:
    """Check the fields of a call; raise InvalidRequest for the first fault."""
    table = TABLES[task]
    body = forms.read(call.form, table) if call.is_form else call.json
    body = {name: value for name, value in body.items() if value is not None}
    param, source = _source(body, egress)
    sounds = speaker_sounds(body) if task == "transcription" else ()
    if sounds:
        body[REFERENCES] = digests(sounds)
    if "model" not in body:
        raise InvalidRequest("`model` is required.", param="model")
    written = {name: value for name, value in body.items() if name not in _SOURCES}
    fields = {name: check_field(table[name], value) for name, value in written.items() if name in table}
    extras = {name: value for name, value in written.items() if name not in table}
    if extras:
        check_extras_size(extras, call.size_bytes)
    request = _listen_request(task, fields, extras, source, param, written)
    return msgspec.structs.replace(request, speaker_sounds=sounds) if sounds else request


def stored_request(request: Request) -> ListenRequest:
    """The call that a stored request is of, without its sound; it was checked when it was accepted."""
    task: ListenTask = "translation" if request.task == "translation" else "transcription"
    fields = {**request.values, "model": request.model}
    return _listen_request(task, fields, request.extras, "", _SOURCES[0], {**fields, **request.extras})


def _listen_request(
    task: ListenTask,
    fields: Mapping[str, Any],
    extras: Mapping[str, Any],
    source: Source,
    param: str,
    written: Mapping[str, Any],
) -> ListenRequest:
    form = fields.get("response_format", TRANSCRIPT_FORMS[0])
    stream = fields.get("stream", False)
    if stream and form not in _STREAMED:
        raise InvalidRequest(f"`stream` needs a `response_format` of {quoted(_STREAMED)}.", param="stream")
    granularities = _items(fields, "timestamp_granularities", _GRANULARITIES)
    return ListenRequest(
        task=task,
        model=fields["model"],
        source=source,
        param=param,
        form=form,
        words=form == "verbose_json" and "word" in granularities,
        speakers=bool(fields.get("diarize")) or form == "diarized_json",
        logprobs="logprobs" in _items(fields, "include", ("logprobs",)),
        stream=stream,
        original=fields.get("original", False),
        values=_values(fields),
        extras=extras,
        preferences=fields.get(FIELD),
        records={name: fields[name] for name in ("user", "session_id") if fields.get(name)},
        written=written,
    )


def _values(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields for the model's table, without those that are empty."""
    for name in ("languages", "keywords", NAMES):
        _items(fields, name)
    return {name: value for name, value in fields.items() if name not in _OWN and value not in ("", [])}


def _items(fields: Mapping[str, Any], name: str, allowed: Sequence[str] = ()) -> list[str]:
    """The texts of a list. Raises InvalidRequest for anything else in it."""
    items: list[Any] = fields.get(name, [])
    if len(items) > _MAX_ITEMS or not all(isinstance(item, str) and len(item) <= _MAX_ITEM_LENGTH for item in items):
        raise InvalidRequest(
            f"`{name}` must be a list of at most {_MAX_ITEMS} texts of at most {_MAX_ITEM_LENGTH} characters.",
            param=name,
        )
    if allowed and not set(items) <= set(allowed):
        raise InvalidRequest(f"`{name}` takes {quoted(allowed)}.", param=name)
    return items


# --------------------------------------------------------------------------------------------------------- the sound


def _source(body: Mapping[str, Any], egress: EgressRules) -> tuple[str, Source]:
    """The field with the sound, and where that is. Raises InvalidRequest."""
    named = [name for name in _SOURCES if body.get(name)]
    if not named:
        raise InvalidRequest("`file` is required: the sound, as a file of a multipart form.", param="file")
    if len(named) > 1:
        raise InvalidRequest(f"The call has both `{named[0]}` and `{named[1]}`; send one of them.", param=named[1])
    (name,) = named
    value = body[name]
    if name == "file":
        files = value if isinstance(value, list) else [value]
        if len(files) != 1 or not isinstance(files[0], UploadedFile):
            raise InvalidRequest("`file` must be one file of a multipart form.", param="file")
        return name, files[0]
    if name == "input_audio":
        if not isinstance(value, dict):
            raise InvalidRequest("`input_audio` must be an object with `data` or `url`.", param=name)
        data = value.get("data")
        if isinstance(data, str | Base64Text):
            return name, data if isinstance(data, Base64Text) else _in_base64(data)
        value = value.get("url")
    if not isinstance(value, str):
        raise InvalidRequest("`input_audio` must have `data`, in base64, or `url`.", param=name)
    return name, checked_urls.check_media_url(value, name, egress)


def _in_base64(text: str) -> Base64Text:
    """A short text as a long one, which is decoded later."""
    return Base64Text(memoryview(bytearray(text.encode("ascii", "replace"))))
