"""Replicate with its catalogue on loopback: any of the stored models, which refuses what its schema refuses."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs

from tests import sounds
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.replicate import Replicate
from tests.fake_providers.server import Job, route

STORED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "any_model" / "replicate.json").read_text()
)["models"]


class ReplicateWithCatalogue(Replicate):
    """`official` are called by their names, all others by their version."""

    def __init__(self, *official: str) -> None:
        super().__init__()
        self.official = official

    @route("GET /v1/models/{owner}/{name}")
    def model(self, call: Exchange) -> FakeResponse:
        name = f"{call.params['owner']}/{call.params['name']}"
        if name not in STORED:
            return self.missing()
        return FakeResponse({**STORED[name], "is_official": name in self.official})

    @route("GET /v1/models/{owner}/{name}/versions/{version}")
    def version(self, call: Exchange) -> FakeResponse:
        known = STORED[f"{call.params['owner']}/{call.params['name']}"]["latest_version"]
        return FakeResponse({**known, "id": call.params["version"]})

    @route("GET /v1/search")
    def search(self, call: Exchange) -> FakeResponse:
        words = call.request.path.partition("query=")[2]
        found = [model for name, model in STORED.items() if words in name]
        return FakeResponse({"query": words, "models": [{"model": model, "metadata": {}} for model in found]})

    @route("POST /v1/predictions")
    def create_by_version(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        for name, model in STORED.items():
            if model["latest_version"]["id"] == fields["version"] or fields["version"] == "f" * 64:
                return self._checked(name, fields["input"])
        return FakeResponse({"title": "Invalid version", "detail": "There is no such version.", "status": 422}, 422)

    @route("POST /v1/models/{owner}/{name}/predictions")
    def create(self, call: Exchange) -> FakeResponse:
        name = f"{call.params['owner']}/{call.params['name']}"
        if name not in self.official:
            return self.missing()
        return self._checked(name, call.request.fields["input"])

    def _checked(self, name: str, given: dict[str, Any]) -> FakeResponse:
        openapi = STORED[name]["latest_version"]["openapi_schema"]
        schema = {**openapi, **openapi["components"]["schemas"]["Input"], "additionalProperties": False}
        if errors := list(jsonschema_rs.iter_errors(schema, given)):
            return FakeResponse({"title": "Input validation failed", "detail": errors[0].message, "status": 422}, 422)
        job = self.begin({**given, "model": name}, prefix="q7r0w3")
        return FakeResponse(self._job_fields(job, job.next_state()), 201)

    def _made(self, job: Job) -> str | list[str]:
        if job.fields["model"] == "meta/musicgen":
            return self.put(sounds.encoded("wav", job.fields.get("duration", 8)), "audio/wav")
        return super()._made(job)
