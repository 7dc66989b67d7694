"""What can become of a call beside its result."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client.results import Generation


class CallFailed(RuntimeError):
    """The gateway refused a call, or there is no gateway; the message says why."""


class NotConnected(CallFailed):
    """No gateway answered, or the connection broke before the end of the response."""


class Refused(CallFailed):
    """The gateway answered with an error. `code` is one of those in docs/errors.md."""

    def __init__(
        self, status: int, code: str, message: str, param: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(f"{message} ({code})" if code else message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.headers = dict(headers or {})

    @property
    def request_id(self) -> str:
        """The id of the request's record."""
        return self.headers.get("x-request-id", "")


class GenerationFailed(CallFailed):
    """What was waited for has failed, and costs nothing unless its provider bills machine time."""

    def __init__(self, generation: "Generation") -> None:
        super().__init__(f"{generation.error_message} ({generation.error_code})")
        self.generation = generation


class NotFinished(CallFailed):
    """What was waited for is not finished in time, and goes on; `wait` can be called again."""

    def __init__(self, generation: "Generation") -> None:
        super().__init__(f"{generation.id} is not finished yet, and goes on")
        self.generation = generation


class WebhookRefused(ValueError):
    """A webhook was not signed with this secret, or too long ago."""


def refusal(status: int, content: bytes, headers: Mapping[str, str]) -> Refused:
    """The error that a response with an error status stands for."""
    try:
        error = json.loads(content)["error"]
        return Refused(status, error["code"], error["message"], error.get("param"), headers)
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"the gateway answered with status {status}, and not as a Penstock gateway does"
        return Refused(status, "", message, None, headers)
