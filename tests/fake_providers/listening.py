"""Vendors that listen, on loopback: each refuses what the vendor's own client could not send, and answers in its shape.

The shapes and the lists of values are those of the clients that the vendors publish: openai 3.51, groq 1.7, mistralai
3.7, elevenlabs 2.78, deepgram-sdk 7.16, cartesia 4.2 and together 3.1; of xAI and Gemini those that litellm 1.109.1
sends and reads.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests import sounds
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.server import FakeProvider, route

WORDS = ("The", "quick", "brown", "fox", "jumps.", "It", "runs.")
TEXT = " ".join(WORDS)
GPT = ("gpt-transcribe", "gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-4o-transcribe-diarize")


def times(seconds: float) -> list[tuple[str, float, float]]:
    """The words, each in its share of the sound."""
    step = seconds / len(WORDS)
    return [(word, round(at * step, 3), round((at + 0.9) * step, 3)) for at, word in enumerate(WORDS)]


class ListeningVendors(FakeProvider):
    """All of them at once: their paths differ, and the names of their models."""

    def __init__(self) -> None:
        super().__init__()
        self.takes_any_file = False
        self.invoice: list[tuple[str, float]] = []  # the vendor's unit, and how many

    def heard(self, file: bytes) -> float:
        """How long the sound is; every vendor takes FLAC and Opus."""
        assert self.takes_any_file or sounds.container_of(file) in ("flac", "opus")
        seconds = round(sounds.seconds_of(file), 3)
        self.invoice.append(("second", seconds))
        return seconds

    def wrong(self, fields: Mapping[str, Any], needed: str, known: str) -> FakeResponse | None:
        """The refusal of fields that the vendor does not know, or that are missing."""
        missing = [name for name in needed.split() if not fields.get(name)]
        unknown = [name for name in fields if name not in (*needed.split(), *known.split())]
        return self.refused(f"missing {missing}, unknown {unknown}") if missing or unknown else None

    # ----------------------------------------------------------------- OpenAI's shape: OpenAI, Groq, DeepInfra, Mistral

    @route("POST /audio/transcriptions")
    def transcribe(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        model = fields.get("model", "")
        if model in GPT:
            return self._gpt(fields, model)
        if model.startswith("voxtral"):
            return self._voxtral(fields)
        known = "language prompt response_format temperature timestamp_granularities"
        if wrong := self.wrong(fields, "model file", known):
            return wrong
        return self._whisper(fields)

    @route("POST /audio/translations")
    def translate(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if wrong := self.wrong(fields, "model file", "prompt response_format temperature"):
            return wrong
        if fields["model"] not in ("whisper-1", "whisper-large-v3", "openai/whisper-large-v3"):
            return self.refused("a model that does not translate")
        return self._whisper(fields)

    def _whisper(self, fields: Mapping[str, Any]) -> FakeResponse:
        wanted = fields.get("response_format", "json")
        asked = fields.get("timestamp_granularities", [])
        if wanted not in ("json", "text", "verbose_json") or (asked and wanted != "verbose_json"):
            return self.refused("response_format")
        seconds = self.heard(fields["file"])
        if wanted == "json":
            return FakeResponse({"text": TEXT})
        words = times(seconds)
        numbers = {"seek": 0, "tokens": [1], "temperature": 0.0, "avg_logprob": -0.3, "compression_ratio": 1.0}
        segments = [
            {"id": at, "text": " " + text, "start": start, "end": end, **numbers, "no_speech_prob": 0.1}
            for at, (text, start, end) in enumerate(_sentences(words))
        ]
        shown = {"task": "transcribe", "language": "English", "duration": seconds, "text": TEXT, "segments": segments}
        if "word" in asked:
            shown["words"] = [{"word": word, "start": start, "end": end} for word, start, end in words]
        return FakeResponse(shown)

    def _gpt(self, fields: Mapping[str, Any], model: str) -> FakeResponse:
        known = "language temperature response_format chunking_strategy stream"
        formats: Sequence[str] = ("json",)
        if model == "gpt-4o-transcribe-diarize":
            formats = ("json", "text", "diarized_json")
            known += " known_speaker_names known_speaker_references"
            if not _are_known(fields):
                return self.refused("known_speaker_references")
            if fields.get("chunking_strategy") != "auto":
                return self.refused("chunking_strategy is required above 30 seconds")
        else:
            known += " prompt include" + (" keywords languages" if model == "gpt-transcribe" else "")
        if wrong := self.wrong(fields, "model file", known):
            return wrong
        if fields.get("response_format") not in formats:
            return self.refused("response_format")
        seconds = self.heard(fields["file"])
        shown = self._gpt_answer(fields, model, seconds)
        return _gpt_events(shown) if fields.get("stream") == "true" else FakeResponse(shown)

    def _gpt_answer(self, fields: Mapping[str, Any], model: str, seconds: float) -> dict[str, Any]:
        if model == "gpt-transcribe":
            return {"text": TEXT, "usage": {"type": "duration", "seconds": round(seconds)}}
        tokens = {"input_tokens": int(seconds * 10), "output_tokens": len(WORDS)}
        self.invoice += [("input_token", tokens["input_tokens"]), ("token", tokens["output_tokens"])]
        usage = {"type": "tokens", **tokens, "total_tokens": sum(tokens.values())}
        shown: dict[str, Any] = {"text": TEXT, "usage": usage}
        if fields.get("include"):
            shown["logprobs"] = [{"token": word, "bytes": list(word.encode()), "logprob": -0.1} for word in WORDS]
        if fields["response_format"] == "diarized_json":
            shown["segments"] = [
                {"type": "transcript.text.segment", "id": f"seg_{at}", "text": text}
                | {"speaker": [*fields.get("known_speaker_names", []), "A", "B"][at]}
                | {"start": start, "end": end}
                for at, (text, start, end) in enumerate(_sentences(times(seconds)))
            ]
        return shown

    def _voxtral(self, fields: Mapping[str, Any]) -> FakeResponse:
        known = "language temperature diarize context_bias timestamp_granularities stream"
        if wrong := self.wrong(fields, "model file", known):
            return wrong
        seconds = self.heard(fields["file"])
        timed = fields.get("timestamp_granularities")
        if timed not in (None, "segment", ["segment"]):
            return self.refused("timestamp_granularities")
        segments = [
            {"type": "transcription_segment", "text": text, "start": start, "end": end}
            | ({"speaker_id": f"speaker_{at + 1}"} if fields.get("diarize") == "true" else {})
            for at, (text, start, end) in enumerate(_sentences(times(seconds)))
        ]
        usage = {"prompt_tokens": 4, "completion_tokens": 9, "total_tokens": 13, "prompt_audio_seconds": round(seconds)}
        shown = {"model": fields["model"], "text": TEXT, "language": None, "usage": usage}
        shown["segments"] = segments if timed else []
        return _voxtral_events(shown) if fields.get("stream") == "true" else FakeResponse(shown)

    @route("POST /v1/audio/transcriptions")
    def together(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        known = "language prompt response_format temperature timestamp_granularities diarize max_speakers min_speakers"
        if wrong := self.wrong(fields, "model file", known):
            return wrong
        if fields.get("response_format") not in ("json", "verbose_json"):
            return self.refused("response_format")
        response = self._whisper({name: value for name, value in fields.items() if name != "diarize"})
        if fields.get("diarize") == "true":
            spoken = _sentences(times(response.json["duration"]))
            response.json["speaker_segments"] = [
                {"id": at, "speaker_id": f"SPEAKER_0{at}", "text": text, "start": start, "end": end, "words": []}
                for at, (text, start, end) in enumerate(spoken)
            ]
        return response

    # --------------------------------------------------------------------------------------------------------- others

    @route("POST /listen")
    def deepgram(self, call: Exchange) -> FakeResponse:
        query = parse_qs(urlsplit(call.request.path).query)
        if set(query) - {"model", "language", "smart_format"} or query.get("model") != ["nova-3"]:
            return FakeResponse({"err_code": "INVALID_QUERY_PARAMETER", "err_msg": "No such model."}, 400)
        if not call.request.headers["content-type"].startswith("audio/"):
            return FakeResponse({"err_code": "Bad Request", "err_msg": "no sound"}, 400)
        seconds = self.heard(call.request.body)
        words = [
            {"word": word.lower().strip("."), "punctuated_word": word, "start": start, "end": end, "confidence": 0.9}
            for word, start, end in times(seconds)
        ]
        alternative = {"transcript": TEXT, "confidence": 0.9, "words": words}
        return FakeResponse(
            {
                "metadata": {"duration": seconds, "channels": 1, "request_id": "r-1"},
                "results": {"channels": [{"alternatives": [alternative]}]},
            }
        )

    @route("POST /speech-to-text")
    def elevenlabs(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        known = "language_code num_speakers temperature tag_audio_events timestamps_granularity diarize"
        wrong = self.wrong(fields, "model_id file", known)
        if wrong or fields["model_id"] not in ("scribe_v1", "scribe_v2") or fields["tag_audio_events"] != "false":
            return FakeResponse({"detail": [{"loc": ["body", "model_id"], "msg": "bad", "type": "enum"}]}, 422)
        seconds = self.heard(fields["file"])
        words: list[dict[str, Any]] = []
        for at, (word, start, end) in enumerate(times(seconds)):
            speaker = {"speaker_id": f"speaker_{at // 5}"} if fields.get("diarize") == "true" else {}
            spoken = {"text": word, "type": "word", "logprob": -0.1, "start": start, "end": end, **speaker}
            words += [spoken, {"text": " ", "type": "spacing", "logprob": 0.0, "start": end, "end": end}]
        timed = fields.get("timestamps_granularity") == "word"
        return FakeResponse(
            {
                "language_code": "eng",
                "language_probability": 0.99,
                "text": TEXT,
                "words": words if timed else [],
                "audio_duration_secs": seconds,
            }
        )

    @route("POST /stt")
    def xai(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if "cartesia-version" in call.request.headers:
            return self._cartesia(fields)
        if wrong := self.wrong(fields, "model file", "language format"):
            return wrong
        seconds = self.heard(fields["file"])
        words = [{"text": word, "start": start, "end": end} for word, start, end in times(seconds)]
        return FakeResponse({"text": TEXT, "language": "en", "duration": seconds, "words": words})

    def _cartesia(self, fields: Mapping[str, Any]) -> FakeResponse:
        known = "language timestamp_granularities encoding sample_rate"
        if (wrong := self.wrong(fields, "model file", known)) or fields["model"] != "ink-whisper":
            return wrong or self.refused("model")
        asked = fields.get("timestamp_granularities", [])
        if asked not in ([], "word", ["word"]):
            return self.refused("timestamp_granularities")
        seconds = self.heard(fields["file"])
        words = [{"word": word, "start": start, "end": end} for word, start, end in times(seconds)]
        shown = {"type": "transcript", "text": TEXT, "duration": seconds, "language": fields.get("language")}
        return FakeResponse({**shown, "words": words} if asked else shown)

    @route("POST /interactions")
    def gemini(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if wrong := self.wrong(fields, "model input", "generation_config"):
            return wrong
        (sound,) = fields["input"]
        config = fields.get("generation_config", {}).get("transcription_config", {})
        mode = config.get("mode", {})
        is_known = set(config) <= {"language_codes", "mode"} and set(sound) == {"type", "data", "mime_type"}
        if not is_known or call.request.headers.get("api-revision") != "2026-05-20":
            return self.refused("input or revision")
        seconds = self.heard(base64.b64decode(sound["data"]))
        tokens = {"total_input_tokens": int(seconds * 25), "total_output_tokens": len(WORDS)}
        self.invoice += [("input_token", tokens["total_input_tokens"]), ("token", tokens["total_output_tokens"])]
        speaker = {"speaker": "1"} if mode.get("diarization_mode") == "speaker" else {}
        annotations = [
            {"type": "word_info", "text": word, "start_offset": f"{start}s", "end_offset": f"{end}s", **speaker}
            for word, start, end in times(seconds)
        ]
        content = {"type": "text", "text": TEXT, "annotations": annotations if mode else []}
        usage = {**tokens, "total_tokens": sum(tokens.values()), "input_tokens_by_modality": []}
        return FakeResponse({"id": "i-1", "status": "completed", "steps": [{"content": [content]}], "usage": usage})


def _are_known(fields: Mapping[str, Any]) -> bool:
    """Whether each known speaker has a sound of 2 to 10 seconds in a data URI."""
    names, references = fields.get("known_speaker_names", []), fields.get("known_speaker_references", [])
    files = [base64.b64decode(uri.removeprefix("data:audio/wav;base64,"), validate=True) for uri in references]
    return len(names) == len(files) <= 4 and all(2 <= sounds.seconds_of(file) <= 10 for file in files)


def _gpt_events(shown: Mapping[str, Any]) -> FakeResponse:
    """As OpenAI streams: the words, each segment when it is complete, and the whole text."""
    probabilities = shown.get("logprobs", [])
    events: list[dict[str, Any]] = [
        {"type": "transcript.text.delta", "delta": text} | ({"logprobs": [probabilities[at]]} if probabilities else {})
        for at, text in enumerate(_deltas())
    ]
    events += shown.get("segments", [])
    done = {name: value for name, value in shown.items() if name in ("text", "usage", "logprobs")}
    return _streamed([*events, {"type": "transcript.text.done", **done}])


def _voxtral_events(shown: Mapping[str, Any]) -> FakeResponse:
    """As Mistral streams: a segment is an event of its own, and the last event has none where it says so."""
    said: list[dict[str, Any]] = [{"type": "transcription.text.delta", "text": text} for text in _deltas()]
    segments = [{**segment, "type": "transcription.segment"} for segment in shown["segments"]]
    language = {"type": "transcription.language", "audio_language": "en"}
    return _streamed([language, *(segments or said), {**shown, "segments": [], "type": "transcription.done"}])


def _deltas() -> list[str]:
    return [word if not at else f" {word}" for at, word in enumerate(WORDS)]


def _streamed(events: Sequence[Mapping[str, Any]]) -> FakeResponse:
    return FakeResponse(events=[json.dumps(event).encode() for event in events])


def _sentences(words: Sequence[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    return [(" ".join(word for word, _, _ in part), part[0][1], part[-1][2]) for part in (words[:5], words[5:])]
