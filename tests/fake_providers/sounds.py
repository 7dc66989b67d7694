"""Vendors of effects and music, on loopback: each refuses what the vendor's own client could not send, and answers with
a tone.

The shapes and the lists of values are those of elevenlabs 2.78 and runwayml 5.24; of Stability, MiniMax and Lyria those
of programs that call them.
"""

import base64
from typing import Any
from urllib.parse import parse_qs, urlsplit

from penstock.sound.formats import SoundFormat, content_type
from tests import sounds
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.server import FakeProvider, route

USUAL_SECONDS = 4.0  # where the caller does not choose


class SoundVendors(FakeProvider):
    """All of them at once: their paths differ."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[tuple[str, Any]] = []  # the path and the fields of each call that was accepted
        self.made = ""  # the URL of what the last task made

    def sound(self, output_format: SoundFormat, seconds: float | None) -> bytes:
        return sounds.encoded(output_format, seconds or USUAL_SECONDS)

    def wrong(self, fields: Any, needed: str, known: str) -> FakeResponse | None:
        missing = [name for name in needed.split() if not fields.get(name)]
        unknown = [name for name in fields if name not in (*needed.split(), *known.split())]
        return self.refused(f"missing {missing}, unknown {unknown}") if missing or unknown else None

    def accept(self, call: Exchange) -> None:
        self.bodies.append((urlsplit(call.request.path).path, call.request.fields))

    # ----------------------------------------------------------------------------------------------------- ElevenLabs

    @route("POST /sound-generation")
    def effects(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if wrong := self.wrong(fields, "text model_id", "duration_seconds prompt_influence loop"):
            return wrong
        if not 0.5 <= fields.get("duration_seconds", 1) <= 30 or not call.request.headers.get("xi-api-key"):
            return FakeResponse({"detail": [{"loc": ["body", "duration_seconds"], "msg": "bad", "type": "x"}]}, 422)
        return self._elevenlabs(call, fields.get("duration_seconds"))

    @route("POST /music")
    def music(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if wrong := self.wrong(fields, "prompt model_id", "music_length_ms force_instrumental"):
            return wrong
        length = fields.get("music_length_ms", 3000)
        if not (isinstance(length, int) and 3000 <= length <= 600_000):
            return FakeResponse({"detail": {"status": "bad_length", "message": "music_length_ms"}}, 422)
        return self._elevenlabs(call, fields.get("music_length_ms", USUAL_SECONDS * 1000) / 1000)

    def _elevenlabs(self, call: Exchange, seconds: float | None) -> FakeResponse:
        query = parse_qs(urlsplit(call.request.path).query)
        formats: dict[str, SoundFormat] = {"mp3_44100_128": "mp3", "opus_48000_128": "opus"}
        (asked,) = query["output_format"]
        if asked not in formats:
            return FakeResponse({"detail": "output_format"}, 422)
        self.accept(call)
        return FakeResponse(file=self.sound(formats[asked], seconds), content_type=content_type(formats[asked]))

    # ------------------------------------------------------------------------------------------------------ Stability

    @route("POST /v2beta/audio/stable-audio-2/text-to-audio")
    def stability(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if wrong := self.wrong(fields, "prompt model", "duration seed steps cfg_scale output_format"):
            return wrong
        is_form = call.request.headers.get("content-type", "").startswith("multipart/form-data")
        length = float(fields.get("duration", 20))
        if not is_form or not 1 <= length <= 190 or fields["output_format"] not in ("mp3", "wav"):
            return FakeResponse({"id": "e1", "name": "bad_request", "errors": ["duration or output_format"]}, 400)
        self.accept(call)
        data = self.sound(fields["output_format"], length)
        return FakeResponse({"audio": base64.b64encode(data).decode(), "finish_reason": "SUCCESS", "seed": 1})

    # -------------------------------------------------------------------------------------------------------- MiniMax

    @route("POST /v1/music_generation")
    def minimax(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        known = "prompt lyrics is_instrumental stream output_format audio_setting"
        bad = self.wrong(fields, "model", known) or fields.get("output_format") != "url"
        if bad or not (fields.get("lyrics") or fields.get("is_instrumental")):
            return FakeResponse(
                {"base_resp": {"status_code": 2013, "status_msg": "invalid params, lyrics is required"}}
            )
        self.accept(call)
        output_format = fields["audio_setting"]["format"]
        url = self.put(self.sound(output_format, None), content_type(output_format))
        return FakeResponse(
            {"data": {"audio": url, "status": 2}, "base_resp": {"status_code": 0, "status_msg": "success"}}
        )

    # --------------------------------------------------------------------------------------------------------- Google

    @route("POST /models/{model}:generateContent")
    def lyria(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if wrong := self.wrong(fields, "contents generationConfig", ""):
            return wrong
        self.accept(call)
        text = " ".join(part["text"] for content in fields["contents"] for part in content["parts"])
        if "forbidden" in text:
            return FakeResponse({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})
        data = base64.b64encode(self.sound("mp3", None)).decode()
        parts = [{"text": "[Verse]\nLa la"}, {"inlineData": {"mimeType": "audio/mpeg", "data": data}}]
        return FakeResponse({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "responseId": "r1"})

    @route("POST /publishers/google/models/lyria-002:predict")
    def lyria_2(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        (instance,) = fields.get("instances", [{}])
        wrong = self.wrong(fields, "instances", "parameters") or self.wrong(instance, "prompt", "negative_prompt seed")
        if wrong or fields["parameters"] or not call.request.headers.get("authorization", "").startswith("Bearer "):
            return wrong or self.unauthorized()
        self.accept(call)
        if "forbidden" in instance["prompt"]:
            message = "Audio generation failed: All responses were blocked by recitation checks."
            return FakeResponse({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}, 400)
        data = base64.b64encode(self.sound("wav", None)).decode()
        return FakeResponse({"predictions": [{"bytesBase64Encoded": data, "mimeType": "audio/wav"}], "model": "lyria"})

    # --------------------------------------------------------------------------------------------------------- Runway

    @route("POST /sound_effect")
    def runway(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        known = {
            "eleven_text_to_sound_v2": "duration loop",
            "mirelo_sfx_2_0": "duration format negativePrompt seed",
            "seed_audio": "outputFormat",
        }
        if wrong := self.wrong(fields, "model promptText", known[fields["model"]]):
            return wrong
        if fields["model"] == "mirelo_sfx_2_0" and "duration" not in fields:
            return FakeResponse({"error": "duration is required"}, 400)
        self.accept(call)
        formats: dict[str | None, SoundFormat] = {"wav": "wav", "mp3": "mp3", "flac": "flac", "ogg_opus": "opus"}
        output_format = formats.get(fields.get("format") or fields.get("outputFormat"), "mp3")
        data = self.sound(output_format, fields.get("duration"))
        self.made = self.put(data, content_type(output_format))
        return FakeResponse({"id": f"17160fb8-3e52-4b9c-9d1a-{len(self.bodies):012}"})

    @route("GET /tasks/{id}")
    def runway_task(self, call: Exchange) -> FakeResponse:
        return FakeResponse({"id": call.params["id"], "status": "SUCCEEDED", "output": [self.made]})
