"""Vendors that speak, on loopback: each refuses what the vendor's own client could not send, and answers with a tone.

The shapes and the lists of values are those of the clients that the vendors publish: openai 3.51, groq 1.7, mistralai
3.7, elevenlabs 2.78, deepgram-sdk 7.16, cartesia 4.2, together 3.0 and google-genai 3.3; of MiniMax those of
minimax-mcp 0.0.19, of xAI those of pipecat-ai 1.14, and of DeepInfra those of its OpenAPI document.
"""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from penstock.providers.speech import OPENAI_VOICES
from penstock.sound.formats import SoundFormat, content_type
from tests import sounds
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.server import FakeProvider, route

CHARACTERS_PER_SECOND = 15
FORMATS = ("mp3", "opus", "aac", "flac", "wav", "pcm")
_EVENT_BYTES = 4000
# Voices that the vendors' documentation lists.
KOKORO = (
    "af_alloy af_bella af_heart af_nova af_sarah af_sky am_echo am_fenrir am_michael am_onyx am_puck bm_fable bm_george"
)
ORPHEUS = "tara leah jess leo dan mia zac zoe"


def seconds(text: str, speed: float = 1) -> float:
    return max(0.4, len(text) / CHARACTERS_PER_SECOND / speed)


def tokens(text: str) -> dict[str, int]:
    return {"input_tokens": len(text), "output_tokens": math.ceil(seconds(text) * 20)}


class SpeechVendors(FakeProvider):
    """All of them at once: their paths differ."""

    def __init__(self) -> None:
        super().__init__()
        self.invoice: list[tuple[str, int]] = []  # the vendor's unit, and how many

    def tone(self, text: str, output_format: SoundFormat, speed: float = 1) -> bytes:
        return sounds.encoded(output_format, seconds(text, speed))

    def sound(self, text: str, output_format: SoundFormat, speed: float = 1) -> FakeResponse:
        self.invoice.append(("character", len(text)))
        return FakeResponse(file=self.tone(text, output_format, speed), content_type=content_type(output_format))

    def wrong(self, fields: Mapping[str, Any], needed: str, known: Sequence[str]) -> FakeResponse | None:
        """The refusal of fields that the vendor does not know, or that are missing."""
        missing = [name for name in needed.split() if not fields.get(name)]
        unknown = [name for name in fields if name not in (*needed.split(), *known)]
        return self.refused(f"missing {missing}, unknown {unknown}") if missing or unknown else None

    # ----------------------------------------------------------------------------------------- OpenAI, Groq, Mistral

    @route("POST /audio/speech")
    def openai(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if fields.get("model", "").startswith("voxtral"):
            return self._mistral(fields)
        if fields.get("model", "").startswith("canopylabs"):
            return self._groq(fields)
        if fields.get("model", "").startswith("hexgrad"):
            return self._deepinfra(fields)
        optional = ("instructions", "response_format", "speed", "stream_format")
        if wrong := self.wrong(fields, "input model voice", optional):
            return wrong
        is_mini = fields["model"] == "gpt-4o-mini-tts"
        voices = OPENAI_VOICES if is_mini else set(OPENAI_VOICES) - {"ballad", "verse", "marin", "cedar"}
        if fields["voice"] not in voices or fields.get("response_format") not in FORMATS or len(fields["input"]) > 4096:
            return self.refused("voice, format or length")
        if not is_mini and ("stream_format" in fields or "instructions" in fields):
            return self.refused("not with tts-1")
        if fields.get("stream_format") == "sse":
            return self._events(fields["input"], fields["response_format"], "audio")
        return self.sound(fields["input"], fields["response_format"], fields.get("speed", 1))

    def _events(self, text: str, output_format: SoundFormat, name: str) -> FakeResponse:
        counted = tokens(text)
        self.invoice.append(("output_token", counted["output_tokens"]))
        sound = self.tone(text, output_format)
        pieces = [sound[at : at + _EVENT_BYTES] for at in range(0, len(sound), _EVENT_BYTES)]
        deltas = [{"type": "speech.audio.delta", name: base64.b64encode(piece).decode()} for piece in pieces]
        done = {"type": "speech.audio.done", "usage": {**counted, "total_tokens": sum(counted.values())}}
        return FakeResponse(events=[json.dumps(event).encode() for event in (*deltas, done)])

    def _groq(self, fields: Mapping[str, Any]) -> FakeResponse:
        if wrong := self.wrong(fields, "input model voice", ("response_format", "sample_rate", "speed")):
            return wrong
        names = "autumn diana hannah austin daniel troy".split()
        if fields["voice"] not in names or fields.get("response_format") != "wav" or len(fields["input"]) > 200:
            return self.refused("voice, format or length")
        return self.sound(fields["input"], "wav")

    def _deepinfra(self, fields: Mapping[str, Any]) -> FakeResponse:
        """It knows the names of its voices, and says what is wrong as FastAPI does."""
        known = ("voice", "response_format", "speed")
        is_wrong = self.wrong(fields, "model input", known) or fields["voice"] not in KOKORO.split()
        if is_wrong or fields.get("response_format") not in ("mp3", "opus", "flac", "wav", "pcm"):
            return FakeResponse({"detail": [{"loc": ["body", "voice"], "msg": "Input should be a voice"}]}, 422)
        if fields["model"] != "hexgrad/Kokoro-82M" or not 0.25 <= fields.get("speed", 1) <= 4:
            return FakeResponse({"detail": {"error": "Model or speed is not available"}}, 404)
        return self.sound(fields["input"], fields["response_format"], fields.get("speed", 1))

    @route("POST /v1/audio/speech")
    def together(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        voices = {"hexgrad/Kokoro-82M": KOKORO.split(), "canopylabs/orpheus-3b-0.1-ft": ORPHEUS.split()}
        known = ("response_format", "response_encoding", "sample_rate", "language")
        if wrong := self.wrong(fields, "model input voice", known):
            return wrong
        if fields["voice"] not in voices.get(fields["model"], ()) or fields.get("sample_rate", 24000) != 24000:
            return self.refused("model, voice or sample_rate")
        asked = (fields.get("response_format", "wav"), fields.get("response_encoding"))
        forms: Mapping[tuple[str, str | None], SoundFormat] = {
            ("raw", "pcm_s16le"): "pcm",
            ("wav", None): "wav",
            ("mp3", None): "mp3",
        }
        if asked not in forms or fields.get("language", "en") != fields.get("language", "en").lower():
            return self.refused("format or language")
        return self.sound(fields["input"], forms[asked])

    def _mistral(self, fields: Mapping[str, Any]) -> FakeResponse:
        who = "ref_audio" if "ref_audio" in fields else "voice_id"
        if wrong := self.wrong(fields, f"input model {who}", ("response_format", "stream", "metadata")):
            return wrong
        if fields.get("stream") is not True or fields.get("response_format") not in (
            "pcm",
            "wav",
            "mp3",
            "flac",
            "opus",
        ):
            return self.refused("format")
        self.invoice.append(("character", len(fields["input"])))
        return self._events(fields["input"], fields["response_format"], "audio_data")

    # --------------------------------------------------------------------------------------------------------- others

    @route("POST /text-to-speech/{voice}/stream")
    def elevenlabs(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        query = parse_qs(urlsplit(call.request.path).query)
        if wrong := self.wrong(fields, "text model_id", ("language_code", "voice_settings", "seed")):
            return wrong
        formats: Mapping[str, SoundFormat] = {"pcm_24000": "pcm", "mp3_44100_128": "mp3", "opus_48000_64": "opus"}
        (asked,) = query["output_format"]
        speed = fields.get("voice_settings", {}).get("speed", 1)
        if asked not in formats or not 0.7 <= speed <= 1.2 or call.request.headers.get("xi-api-key") is None:
            return FakeResponse({"detail": [{"loc": ["query", "output_format"], "msg": "bad", "type": "enum"}]}, 422)
        return self.sound(fields["text"], formats[asked], speed)

    @route("POST /speak")
    def deepgram(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        query = {name: values[0] for name, values in parse_qs(urlsplit(call.request.path).query).items()}
        formats: Mapping[tuple[str, str], SoundFormat] = {
            ("linear16", "none"): "pcm",
            ("linear16", "wav"): "wav",
            ("flac", ""): "flac",
            ("mp3", ""): "mp3",
            ("opus", "ogg"): "opus",
            ("aac", ""): "aac",
        }
        kind = (query.get("encoding", ""), query.get("container", ""))
        is_known = query.get("model", "").startswith("aura-2-") and set(query) <= {
            "model",
            "encoding",
            "container",
            "sample_rate",
        }
        if list(fields) != ["text"] or kind not in formats or not is_known or len(fields["text"]) > 2000:
            return FakeResponse({"err_code": "INVALID_QUERY_PARAMETER", "err_msg": "No such model."}, 400)
        return self.sound(fields["text"], formats[kind])

    @route("POST /models/{rest*}")
    def gemini(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        config = fields.get("generationConfig", {})
        (content,) = fields.get("contents", [{}])
        (part,) = content.get("parts", [{}])
        voice = config.get("speechConfig", {}).get("voiceConfig", {}).get("prebuiltVoiceConfig", {}).get("voiceName")
        is_known = set(fields) == {"contents", "generationConfig"} and set(part) <= {"text", "speechMetadata"}
        if not is_known or config.get("responseModalities") != ["AUDIO"] or not str(voice)[:1].isupper():
            return self.refused("contents or config")
        if "alt=sse" not in call.request.path or not call.params["rest"].endswith(":streamGenerateContent"):
            return self.missing()
        counted = tokens(part["text"])
        self.invoice.append(("output_token", counted["output_tokens"]))
        sound = self.tone(part["text"], "pcm")
        half = len(sound) // 4 * 2
        return FakeResponse(
            events=[
                json.dumps(
                    {
                        "candidates": [{"content": {"parts": [{"inlineData": _inline(piece)}]}}],
                        "usageMetadata": {"promptTokenCount": counted["input_tokens"], "candidatesTokenCount": count},
                    }
                ).encode()
                for piece, count in ((sound[:half], 1), (sound[half:], counted["output_tokens"]))
            ]
        )

    @route("POST /publishers/google/models/{rest*}")
    def vertex(self, call: Exchange) -> FakeResponse:
        if not call.request.headers.get("authorization", "").startswith("Bearer "):
            return self.unauthorized()
        return self.gemini(call)

    @route("POST /v1/t2a_v2")
    def minimax(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        audio, voice = fields.get("audio_setting", {}), fields.get("voice_setting", {})
        known = ("stream", "output_format", "language_boost", "audio_setting", "voice_setting")
        speed = voice.get("speed", 1)
        if self.wrong(fields, "model text", known) or audio.get("format") not in ("mp3", "pcm", "wav", "flac"):
            return FakeResponse({"base_resp": {"status_code": 2013, "status_msg": "invalid params"}})
        if not 0.5 <= speed <= 2 or not voice.get("voice_id"):
            return FakeResponse({"base_resp": {"status_code": 2013, "status_msg": "invalid params"}})
        counted = sum(2 if ord(sign) > 0x2E80 else 1 for sign in fields["text"])
        self.invoice.append(("character", counted))
        return FakeResponse(
            {
                "data": {"audio": self.tone(fields["text"], audio["format"], speed).hex(), "status": 2},
                "extra_info": {"usage_characters": counted},
                "base_resp": {"status_code": 0, "status_msg": "success"},
            }
        )

    @route("POST /tts/bytes")
    def cartesia(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        known = ("language", "locale", "generation_config")
        asked = dict(fields.get("output_format", {}))
        forms: Mapping[tuple[str, str], SoundFormat] = {
            ("raw", "pcm_s16le"): "pcm",
            ("wav", "pcm_s16le"): "wav",
            ("mp3", ""): "mp3",
        }
        form = forms.get((asked.pop("container", ""), asked.pop("encoding", "")))
        speed = fields.get("generation_config", {}).get("speed", 1)
        is_known = asked in ({"sample_rate": 24000}, {"sample_rate": 24000, "bit_rate": 128000})
        wrong = self.wrong(fields, "model_id transcript voice output_format", known)
        if wrong or form is None or not is_known or not 0.6 <= speed <= 1.5 or list(fields["voice"]) != ["id"]:
            problem = {
                "title": "Bad request",
                "message": "A field is wrong.",
                "error_code": "invalid",
                "status_code": 400,
            }
            return FakeResponse(problem, 400)
        return self.sound(fields["transcript"], form, speed)

    @route("POST /tts")
    def xai(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if wrong := self.wrong(fields, "text voice_id language output_format", ("speed",)):
            return wrong
        codec = fields["output_format"].get("codec")
        if codec not in ("pcm", "mp3", "wav") or fields["voice_id"] not in ("eve", "ara", "rex", "sal", "leo"):
            return self.refused("codec or voice")
        return self.sound(fields["text"], codec)


def _inline(sound: bytes) -> dict[str, str]:
    return {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": base64.b64encode(sound).decode()}
