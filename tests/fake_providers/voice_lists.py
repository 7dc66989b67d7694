"""Vendors that list the voices of an account, on loopback: each takes the parameters that its own client can send, and
shows an account what that account has.

The shapes are those of the clients that the vendors publish: elevenlabs 2.78, cartesia 4.2, mistralai 3.7, deepgram-sdk
7.16 and together 3.1; of MiniMax those of minimax-mcp 0.0.19.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests import sounds
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.server import FakeProvider, route


class VoiceVendors(FakeProvider):
    """All of them at once: their paths differ. Voices are named after the credential of their account."""

    def __init__(self) -> None:
        super().__init__()
        self.more = 0  # voices that an account has besides

    def _query(self, call: Exchange, known: str) -> Mapping[str, str] | None:
        """The parameters of the URL; None if the vendor does not know one of them."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(call.request.path).query).items()}
        return query if set(query) <= set(known.split()) else None

    def _names(self, account: str) -> list[str]:
        return [account, *(f"{account}-{number}" for number in range(self.more))]

    @route("GET /v2/voices")
    def elevenlabs(self, call: Exchange) -> FakeResponse:
        account = call.request.headers.get("xi-api-key", "")
        query = self._query(call, "next_page_token page_size")
        if query is None or not 0 < int(query["page_size"]) <= 100:
            return FakeResponse({"detail": [{"loc": ["query"], "msg": "bad", "type": "enum"}]}, 422)
        at, size = int(query.get("next_page_token", 0)), int(query["page_size"])
        names = self._names(account)
        voices = [
            {
                "voice_id": f"id-{name}",
                "name": name,
                "category": "cloned",
                "description": "Warm.",
                "labels": {"gender": "female"},
                "verified_languages": [{"language": "pt", "model_id": "eleven_v3"}],
                "preview_url": f"{self.url}/public/{name}.mp3",
            }
            for name in names[at : at + size]
        ]
        has_more = at + size < len(names)
        token = str(at + size) if has_more else None
        return FakeResponse({"voices": voices, "has_more": has_more, "total_count": 1, "next_page_token": token})

    @route("GET /voices")
    def cartesia(self, call: Exchange) -> FakeResponse:
        account = call.request.headers.get("authorization", "").removeprefix("Bearer ")
        query = self._query(call, "limit starting_after expand[]")
        if query is None or call.request.headers.get("cartesia-version") != "2026-08-14":
            return FakeResponse({"title": "Bad", "message": "No such parameter.", "status_code": 400}, 400)
        names = self._names(account)
        start = names.index(query["starting_after"]) + 1 if "starting_after" in query else 0
        shown = [
            {
                "id": name,
                "access": "private",
                "created_at": "2026-01-01T00:00:00Z",
                "description": "A long description.",
                "is_owner": True,
                "language": "en",
                "locales": [{"locale": "en-US", "is_native": True}],
                "name": name.title(),
                "tagline": "Warm",
                "visibility": "owner",
                "gender": "feminine",
                "preview_file_url": f"{self.url}/private/{name}.wav",
            }
            for name in names[start : start + int(query["limit"])]
        ]
        return FakeResponse({"data": shown, "has_more": False, "next_page": None})

    @route("GET /audio/voices")
    def mistral(self, call: Exchange) -> FakeResponse:
        account = call.request.headers.get("authorization", "").removeprefix("Bearer ")
        query = self._query(call, "limit offset type")
        if query is None:
            return FakeResponse({"detail": [{"loc": ["query"], "msg": "bad", "type": "enum"}]}, 422)
        names, size = self._names(account), int(query["limit"])
        page = int(query.get("offset", 0)) // size
        times: dict[str, Any] = {"created_at": "2026-01-01T00:00:00Z", "user_id": None}
        items = [
            {"id": f"id-{name}", "name": name, "type": "custom", "languages": ["fr"], "gender": "male", **times}
            for name in names[page * size : (page + 1) * size]
        ]
        if page == 0:
            preset = {"id": "p-1", "slug": "en_paul_neutral", "name": "Paul", "type": "preset", "languages": ["en"]}
            items.append({**preset, **times})
        pages = -(-len(names) // size)
        return FakeResponse(
            {"items": items, "total": len(names), "page": page + 1, "page_size": size, "total_pages": pages}
        )

    @route("POST /v1/get_voice")
    def minimax(self, call: Exchange) -> FakeResponse:
        account = call.request.headers.get("authorization", "").removeprefix("Bearer ")
        if call.request.fields != {"voice_type": "all"}:
            return FakeResponse({"base_resp": {"status_code": 2013, "status_msg": "invalid params"}})
        return FakeResponse(
            {
                "system_voice": [{"voice_id": "Wise_Woman", "voice_name": "Wise woman", "description": ["Wise."]}],
                "voice_cloning": [{"voice_id": name, "description": []} for name in self._names(account)],
                "voice_generation": None,
                "base_resp": {"status_code": 0, "status_msg": "success"},
            }
        )

    @route("GET /models")
    def deepgram(self, call: Exchange) -> FakeResponse:
        if self._query(call, "include_outdated") is None:
            return FakeResponse({"err_code": "INVALID_QUERY_PARAMETER", "err_msg": "No."}, 400)
        tags = {"accent": "American", "tags": ["feminine", "Clear"], "sample": f"{self.url}/public/thalia.wav"}
        voice = {"name": "thalia", "canonical_name": "aura-2-thalia-en", "languages": ["en", "en-US"], "metadata": tags}
        older = {**voice, "name": "asteria", "canonical_name": "aura-asteria-en"}
        return FakeResponse({"stt": [], "tts": [voice, older]})

    @route("GET /v1/voices")
    def together(self, call: Exchange) -> FakeResponse:
        voices: Sequence[Mapping[str, Any]] = [{"id": "v-1", "name": "tara"}, {"id": "v-2", "name": "leo"}]
        return FakeResponse({"data": [{"model": "canopylabs/orpheus-3b-0.1-ft", "voices": voices}]})

    # ------------------------------------------------------------------------------------------------------- samples

    @route("GET /public/{name}")
    def public_sample(self, call: Exchange) -> FakeResponse:
        """What anybody may hear; a credential has no business there."""
        if {"authorization", "xi-api-key"} & set(call.request.headers):
            return self.refused("a credential at a public address")
        return self._sample(call.params["name"])

    @route("GET /private/{name}")
    def private_sample(self, call: Exchange) -> FakeResponse:
        account = call.request.headers.get("authorization", "").removeprefix("Bearer ")
        return self._sample(call.params["name"]) if call.params["name"].startswith(account) else self.missing()

    @route("GET /audio/voices/{id}/sample")
    def mistral_sample(self, call: Exchange) -> FakeResponse:
        account = call.request.headers.get("authorization", "").removeprefix("Bearer ")
        return self._sample("sample.wav") if call.params["id"] == f"id-{account}" else self.missing()

    def _sample(self, name: str) -> FakeResponse:
        if name.startswith("page"):
            return FakeResponse(file=b"<html>moved</html>", content_type="text/html")
        kind = "mp3" if name.endswith(".mp3") else "wav"
        return FakeResponse(file=sounds.encoded(kind, 0.4), content_type=f"audio/{kind}")
