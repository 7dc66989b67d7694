"""Write a transcript in the form that the caller asked for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.errors import Problem
from penstock.providers.transcription import Segment, Transcript, TranscriptEvent
from penstock.transcription.request import ListenRequest

_TASKS = {"transcription": "transcribe", "translation": "translate"}
# What Whisper says of each segment. Clients read them strictly, so what a provider does not say is zero.
_NUMBERS: Mapping[str, Any] = {
    "seek": 0,
    "tokens": [],
    "temperature": 0.0,
    "avg_logprob": 0.0,
    "compression_ratio": 0.0,
    "no_speech_prob": 0.0,
}
_TEXT_TYPES = {
    "text": "text/plain; charset=utf-8",
    "srt": "text/plain; charset=utf-8",
    "vtt": "text/vtt; charset=utf-8",
}
_FILE_TYPES = {**_TEXT_TYPES, "srt": "application/x-subrip"}
EVENTS = "text/event-stream"


def media_type(form: str, *, stream: bool) -> str:
    """The content type of a transcript in this form."""
    return EVENTS if stream else _TEXT_TYPES.get(form, "application/json")


def file_type(form: str) -> str:
    """The content type of a file with a transcript in this form: one that says how the file is called."""
    return _FILE_TYPES.get(form, "application/json")


def body(request: ListenRequest, transcript: Transcript, seconds: float, usage: Mapping[str, Any]) -> bytes:
    """The body of a response that is complete: in the caller's form, or as events."""
    return events(request, transcript, usage) if request.stream else whole(request, transcript, seconds, usage)


def whole(request: ListenRequest, transcript: Transcript, seconds: float, usage: Mapping[str, Any]) -> bytes:
    """The body of a response that is not streamed; the transcript has the segments that the form needs."""
    if request.form == "text":
        return transcript.text.encode() + b"\n"
    if request.form in ("srt", "vtt"):
        return _subtitles(transcript.segments, request.form).encode()
    return msgspec.json.encode(_object(request, transcript, seconds, usage))


def _object(request: ListenRequest, transcript: Transcript, seconds: float, usage: Mapping[str, Any]) -> dict[str, Any]:
    if request.form == "json":
        fields: dict[str, Any] = {"text": transcript.text, "usage": usage}
        return {**fields, "logprobs": transcript.logprobs} if request.logprobs else fields
    shown: dict[str, Any] = {
        "task": _TASKS[request.task],
        "language": transcript.language or request.values.get("language") or "",
        "duration": seconds,
        "text": transcript.text,
    }
    if request.form == "diarized_json":
        del shown["language"]
        segments = [_spoken(number, segment) for number, segment in enumerate(transcript.segments)]
        return {**shown, "segments": segments, "usage": usage}
    shown["segments"] = [_numbered(number, segment) for number, segment in enumerate(transcript.segments)]
    if request.words:
        shown["words"] = [{"word": word.text, "start": word.start, "end": word.end} for word in transcript.words]
    return {**shown, "usage": usage}


def _numbered(number: int, segment: Segment) -> dict[str, Any]:
    shown = {"id": number, "start": segment.start, "end": segment.end, "text": segment.text}
    speaker = {"speaker": segment.speaker} if segment.speaker else {}
    return {**shown, **_NUMBERS, **segment.numbers, **speaker}


def _spoken(number: int, segment: Segment) -> dict[str, Any]:
    return {
        "type": "transcript.text.segment",
        "id": f"seg_{number}",
        "start": segment.start,
        "end": segment.end,
        "text": segment.text,
        "speaker": segment.speaker or "",
    }


def events(request: ListenRequest, transcript: Transcript, usage: Mapping[str, Any]) -> bytes:
    """The whole transcript as OpenAI's server-sent events."""
    form = EventForm(request)
    if request.form == "diarized_json":
        parts = [form.part(TranscriptEvent(segment=segment)) for segment in transcript.segments]
    else:
        parts = [form.part(TranscriptEvent(transcript.text, transcript.logprobs))]
    return b"".join([*parts, form.end(transcript, usage)])


class EventForm:
    """OpenAI's server-sent events."""

    def __init__(self, request: ListenRequest) -> None:
        self._with_segments = request.form == "diarized_json"
        self._with_logprobs = request.logprobs
        self._segments = 0

    def part(self, piece: TranscriptEvent) -> bytes:
        """More of the text, or a segment where the form has any; nothing for what the caller is not told."""
        found = b""
        if piece.delta:
            found = _event({"type": "transcript.text.delta", "delta": piece.delta, **self._shown(piece.logprobs)})
        if piece.segment and self._with_segments:
            found += _event(_spoken(self._segments, piece.segment))
            self._segments += 1
        return found

    def end(self, transcript: Transcript, usage: Mapping[str, Any]) -> bytes:
        """The last event."""
        logprobs = self._shown(transcript.logprobs)
        return _event({"type": "transcript.text.done", "text": transcript.text, **logprobs, "usage": usage})

    def fail(self, problem: Problem) -> bytes:
        return _event({"type": "error", **problem.body()})

    def _shown(self, logprobs: Sequence[Any]) -> dict[str, Any]:
        return {"logprobs": logprobs} if self._with_logprobs else {}


def _event(fields: Mapping[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(fields) + b"\n\n"


# ----------------------------------------------------------------------------------------------------------- subtitles


def _subtitles(segments: Sequence[Segment], form: str) -> str:
    """SubRip or WebVTT: when each segment is said, and its text."""
    is_vtt = form == "vtt"
    clean: Callable[[str], str] = _vtt_text if is_vtt else _line
    mark = "." if is_vtt else ","
    cues = ["WEBVTT\n"] if is_vtt else []
    for number, segment in enumerate(segments, 1):
        times = f"{_time(segment.start, mark)} --> {_time(segment.end, mark)}\n{clean(segment.text)}\n"
        cues.append(times if is_vtt else f"{number}\n{times}")
    return "\n".join(cues)


def _line(text: str) -> str:
    """A text that does not end its cue, nor looks like the times of the next one."""
    return " ".join(text.split()).replace("-->", "->")


def _vtt_text(text: str) -> str:
    return _line(text.replace("&", "&amp;").replace("<", "&lt;"))


def _time(seconds: float, mark: str) -> str:
    whole_ms = max(0, round(seconds * 1000))
    minutes, rest_ms = divmod(whole_ms, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest_ms // 1000:02}{mark}{rest_ms % 1000:03}"


def usage_object(tokens: Mapping[str, int], seconds: float) -> dict[str, Any]:
    """What was charged: tokens, or seconds."""
    if not tokens:
        return {"type": "duration", "seconds": seconds}
    counted = {f"{name}_tokens": tokens.get(name, 0) for name in ("input", "output")}
    return {"type": "tokens", **counted, "total_tokens": sum(counted.values())}
