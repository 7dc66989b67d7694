"""fal with its catalogue on loopback: any endpoint of the stored schemas, which refuses what its schema refuses."""

import json
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema_rs

from tests import sounds
from tests.any_model.catalogue import entries, openapi
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.fal import Fal
from tests.fake_providers.scripted import mp4, png
from tests.fake_providers.server import Job, route

STORED = json.loads((Path(__file__).parent.parent / "any_model" / "fal.json").read_text())


@cache
def _kept() -> dict[str, str]:
    """Input, output and category of each endpoint that fal's own catalogue described, as JSON."""
    return {
        entry["endpoint_id"]: json.dumps(
            {
                "input": entry["openapi"]["components"]["schemas"]["TheInput"],
                "output": entry["openapi"]["components"]["schemas"]["TheOutput"],
                "category": entry["metadata"]["category"],
            }
        )
        for entry in entries()
        if "openapi" in entry
    }


def _category(described: dict[str, Any]) -> str:
    made = described["output"].get("properties", {})
    if {"audio", "audio_file", "audio_url"} & made.keys():
        return "text-to-audio"
    return "text-to-video" if "video" in made else "text-to-image" if {"image", "images"} & made.keys() else "other"


class FalWithCatalogue(Fal):
    """The queue under `/`, the catalogue under `/v1`. `schemas`, `described` and `prices` may be changed.

    The endpoints in `kept` are described as fal's own catalogue does, all others by the types in its client library.
    """

    def __init__(self, *kept: str) -> None:
        super().__init__()
        self.schemas: dict[str, Any] = dict(STORED["schemas"])
        self.described: dict[str, Any] = {
            name: {**each, "category": _category(each)}
            for name, each in json.loads(json.dumps(STORED["endpoints"])).items()
        }
        self.described |= {name: json.loads(_kept()[name]) for name in kept}
        self.prices: dict[str, tuple[float, str]] = {}
        self.billed: dict[str, str] = {}  # what the result of an endpoint says that it costs, in units

    @route("GET /v1/models/pricing")
    def price(self, call: Exchange) -> FakeResponse:
        endpoint = self._asked(call, "endpoint_id")
        price = self.prices.get(endpoint)
        if price is None:
            return FakeResponse({"error": {"type": "not_found", "message": "No price."}}, 404)
        row = {"endpoint_id": endpoint, "unit_price": price[0], "unit": price[1], "currency": "USD"}
        return FakeResponse({"prices": [row], "has_more": False, "next_cursor": None})

    @route("GET /v1/models")
    def catalogue(self, call: Exchange) -> FakeResponse:
        endpoint, words = self._asked(call, "endpoint_id"), self._asked(call, "q")
        if endpoint:
            found = [endpoint] if endpoint in self.described else []
        else:
            found = [name for name in self.described if words in name]
        listed = [self._listed(name, is_whole=bool(endpoint)) for name in found]
        return FakeResponse({"models": listed, "has_more": False, "next_cursor": None})

    def _listed(self, name: str, *, is_whole: bool) -> dict[str, Any]:
        described = self.described[name]
        metadata = {"display_name": name.upper(), "category": described.get("category", "other")}
        entry = {"endpoint_id": name, "metadata": metadata}
        document = openapi(name, described["input"], described["output"], self.schemas)
        return {**entry, "openapi": document} if is_whole else entry

    @staticmethod
    def _asked(call: Exchange, name: str) -> str:
        return parse_qs(urlsplit(call.request.path).query).get(name, [""])[0]

    @route("POST /{model*}")
    def submit(self, call: Exchange) -> FakeResponse:
        endpoint = call.params["model"]
        schema = {
            "components": {"schemas": self.schemas},
            **self.described[endpoint]["input"],
            "additionalProperties": False,
        }
        errors = list(jsonschema_rs.iter_errors(schema, call.request.fields))
        if errors:
            detail = [{"loc": ["body", *error.instance_path], "msg": error.message, "type": "x"} for error in errors]
            return FakeResponse({"detail": detail}, 422)
        return super().submit(call)

    @route("GET /{owner}/{app}/requests/{id}")
    def result(self, call: Exchange) -> FakeResponse:
        response = super().result(call)
        units = self.billed.get(self.jobs[call.params["id"]].fields["model"])
        return FakeResponse(response.json, response.status, headers={"x-fal-billable-units": units} if units else {})

    def _made(self, job: Job) -> dict[str, Any]:
        described = self.described[job.fields["model"]]
        fields = described["output"].get("properties") or {"images": {}}
        if "video" in fields or described.get("category", "").endswith("-to-video"):
            return {"video": {"url": self.put(mp4(), "video/mp4"), "content_type": "video/mp4"}}
        if name := next((name for name in ("audio", "audio_file", "audio_url") if name in fields), None):
            seconds = job.fields.get("music_length_ms", 3000) / 1000
            url = self.put(sounds.encoded("mp3", job.fields.get("seconds_total", seconds)), "audio/mpeg")
            return {name: {"url": url, "content_type": "audio/mpeg", "file_name": "out.mp3"}}
        size = job.fields.get("image_size")
        sides = size if isinstance(size, dict) else {"width": 96, "height": 64}
        image = {"url": self.put(png(sides["width"], sides["height"]), "image/png"), "content_type": "image/png"}
        return {"images": [image]} if "images" in fields else {"image": image}
