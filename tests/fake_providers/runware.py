"""Runware on loopback: a list of tasks to one URL; ids of tasks must be new, and fields must be known."""

import json
import uuid
from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse, ReceivedRequest
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route

FIELDS = set(
    """taskType taskUUID model positivePrompt negativePrompt numberResults width height outputType outputFormat
    includeCost seed""".split()
)


class Runware(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

    @route("POST /v1")
    def run(self, call: Exchange) -> FakeResponse:
        (task,) = tasks_of(call.request)
        if task["taskType"] != "imageInference" or task.keys() - FIELDS or task["width"] % 64 or task["height"] % 64:
            return problem("invalidParameter", "Invalid parameter.")
        used = [earlier["taskUUID"] for request in self.received("run")[:-1] for earlier in tasks_of(request)]
        if uuid.UUID(task["taskUUID"]).version != 4 or task["taskUUID"] in used:
            return problem("conflictTaskUUID", "The taskUUID must be unique.")
        if "nude" in task["positivePrompt"]:
            return problem("contentModeration", "The prompt was flagged.")
        images = [
            {
                "taskType": "imageInference",
                "taskUUID": task["taskUUID"],
                "imageUUID": str(uuid.uuid4()),
                "imageURL": self.put(png(task["width"], task["height"]), "image/png"),
                "cost": 0.0013,
            }
            for _ in range(task.get("numberResults", 1))
        ]
        return FakeResponse({"data": images})

    def unauthorized(self) -> FakeResponse:
        return problem("invalidApiKey", "Invalid API key.", 401)


def tasks_of(request: ReceivedRequest) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = json.loads(request.body)
    return tasks


def problem(code: str, message: str, status: int = 400) -> FakeResponse:
    return FakeResponse({"errors": [{"code": code, "message": message, "taskType": "imageInference"}]}, status)
