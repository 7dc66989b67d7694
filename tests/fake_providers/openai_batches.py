"""OpenAI's files and batches on loopback: what it refuses, how a batch ends, and which of its calls are billed."""

import json
from collections.abc import Sequence
from typing import Any

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.openai import OpenAI, refusal
from tests.fake_providers.server import Job, route

ENDPOINTS = ("/v1/chat/completions", "/v1/responses", "/v1/images/generations", "/v1/images/edits", "/v1/videos")
LINE_FIELDS = {"custom_id", "method", "url", "body"}
BATCH_FIELDS = {"input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after"}
ENDED = ("failed", "completed", "expired", "cancelled")
PAIRS_MAX, NAME_MAX, VALUE_MAX = 16, 64, 512


class OpenAIBatches(OpenAI):
    """A batch goes through the `usual` states, one with each look at it."""

    usual: Sequence[Any] = ("validating", "in_progress", "finalizing", "completed")

    def __init__(self) -> None:
        super().__init__()
        self.inputs: dict[str, bytes] = {}
        self.outputs: dict[str, bytes] = {}
        self.faulty: dict[str, tuple[int, dict[str, Any]]] = {}  # by text of a prompt: status and body of the response
        self.answered = 1000  # how many calls of a batch that does not complete are answered
        self.billed: list[str] = []  # the prompts that were answered in batches

    @route("POST /v1/files")
    def upload(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if fields.get("purpose") != "batch":
            return refusal("'purpose' is not one of those that are allowed.", "invalid_value")
        if not isinstance(fields.get("file"), bytes):
            return refusal("'file' is a required property.", "missing_required_parameter")
        file_id = self.new_id("file-")
        self.inputs[file_id] = fields["file"]
        shown = {"object": "file", "bytes": len(fields["file"]), "created_at": 1_767_225_600, "purpose": "batch"}
        return FakeResponse({"id": file_id, **shown, "filename": "batch.jsonl", "status": "processed"})

    @route("GET /v1/files/{id}/content")
    def content(self, call: Exchange) -> FakeResponse:
        file = self.outputs.get(call.params["id"])
        if file is None:
            return refusal("No such File object.", "invalid_request_error", 404)
        return FakeResponse(file=file, content_type="application/octet-stream")

    @route("POST /v1/batches")
    def create_batch(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        if problem := self._problem(fields):
            return refusal(problem, "invalid_value")
        job = self.begin(fields, "batch_")
        if errors := _faults(self.inputs[fields["input_file_id"]], fields["endpoint"]):
            job.fields["errors"] = {"object": "list", "data": errors}
            job.cancel("failed")
        return FakeResponse(self._shown(job, "validating"))

    def _problem(self, fields: dict[str, Any]) -> str | None:
        if unknown := sorted(fields.keys() - BATCH_FIELDS):
            return f"Unknown parameter: '{unknown[0]}'."
        if fields.get("completion_window") != "24h":
            return "Invalid value for 'completion_window': expected '24h'."
        if fields.get("endpoint") not in ENDPOINTS:
            return "Invalid value for 'endpoint'."
        if fields.get("input_file_id") not in self.inputs:
            return "No such input file."
        pairs = fields.get("metadata") or {}
        if len(pairs) > PAIRS_MAX or any(
            len(name) > NAME_MAX or not isinstance(value, str) or len(value) > VALUE_MAX
            for name, value in pairs.items()
        ):
            return "Invalid 'metadata'."
        return None

    @route("GET /v1/batches")
    def list_batches(self, call: Exchange) -> FakeResponse:
        jobs = [self._shown(job, job.states[0]) for job in reversed(self.jobs.values())]
        return FakeResponse({"object": "list", "data": jobs, "has_more": False})

    @route("GET /v1/batches/{id}")
    def get_batch(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        return FakeResponse(self._shown(job, job.next_state())) if job else refusal("No such batch.", "not_found", 404)

    @route("POST /v1/batches/{id}/cancel")
    def cancel_batch(self, call: Exchange) -> FakeResponse:
        job = self.jobs[call.params["id"]]
        if job.states[0] in ENDED:
            return refusal("Cannot cancel a batch that has ended.", "invalid_request_error", 409)
        job.cancelled = True
        job.states.clear()
        job.states.extend(("cancelling", "cancelled"))
        return FakeResponse(self._shown(job, job.next_state()))

    # ----------------------------------------------------------------------------------------------------- what is made

    def _shown(self, job: Job, state: str) -> dict[str, Any]:
        if state in ENDED and state != "failed" and "made" not in job.fields:
            job.fields["made"] = self._make(job, state)
        names = ("input_file_id", "endpoint", "completion_window", "metadata", "errors")
        shown = {name: job.fields.get(name) for name in names}
        output_id, error_id = job.fields.get("made", (None, None))
        files = {"output_file_id": output_id, "error_file_id": error_id}
        return {"id": job.id, "object": "batch", "status": state, "created_at": 1_767_225_600, **shown, **files}

    def _make(self, job: Job, state: str) -> tuple[str | None, str | None]:
        """Answer the calls of a batch; return the ids of the files with the answers and the errors."""
        lines = [json.loads(text) for text in self.inputs[job.fields["input_file_id"]].splitlines()]
        count = len(lines) if state == "completed" else self.answered
        outputs: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        for line in lines[:count]:
            status, body = self._answer(line["body"])
            response = {"status_code": status, "request_id": self.new_id("req_"), "body": body}
            whole = {"id": self.new_id("batch_req_"), "custom_id": line["custom_id"], "response": response}
            (outputs if status == 200 else errors).append({**whole, "error": None})
        if state == "expired":
            message = "This request could not be executed before the completion window expired."
            errors += [
                {
                    "custom_id": line["custom_id"],
                    "response": None,
                    "error": {"code": "batch_expired", "message": message},
                }
                for line in lines[count:]
            ]
        # The order of answers is not that of the calls.
        return self._put(outputs[::-1], "file-out-"), self._put(errors, "file-err-")

    def _answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        prompt = str(body["messages"][-1]["content"])
        if prompt in self.faulty:
            return self.faulty[prompt]
        self.billed.append(prompt)
        return 200, chat.completion(body, self.new_id("chatcmpl-"))[0].json

    def _put(self, lines: list[dict[str, Any]], prefix: str) -> str | None:
        if not lines:
            return None
        file_id = self.new_id(prefix)
        self.outputs[file_id] = "".join(json.dumps(line) + "\n" for line in lines).encode()
        return file_id


def _faults(file: bytes, endpoint: str) -> list[dict[str, Any]]:
    """What OpenAI finds wrong with the lines of a file."""
    faults: list[dict[str, Any]] = []
    seen: set[str] = set()
    models: set[str] = set()
    for number, text in enumerate(file.splitlines(), 1):
        line = json.loads(text)
        body = line.get("body", {})
        models.add(body.get("model"))
        checks = {
            "invalid_json_line": line.keys() != LINE_FIELDS,
            "duplicate_custom_id": line.get("custom_id") in seen,
            "invalid_url": line.get("url") != endpoint,
            "invalid_method": line.get("method") != "POST",
            "invalid_request": bool(body.get("stream")) or "max_tokens" in body,
            "mismatched_model": len(models) > 1,
        }
        seen.add(line.get("custom_id"))
        faults += [{"code": code, "message": code, "line": number} for code, is_wrong in checks.items() if is_wrong]
    return faults
