"""Every error a caller can see: tree, status, type, code."""

import re
from collections.abc import Mapping
from typing import ClassVar


class Problem(Exception):
    """Base of everything that becomes an error response; the class name is the code."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "api_error"
    code: ClassVar[str] = "INTERNAL_ERROR"

    def __init_subclass__(cls) -> None:
        cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).upper()

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        should_retry: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.headers = dict(headers or {})
        # OpenAI's clients repeat 408, 409, 429 and 5xx by themselves unless told; None leaves them to their defaults.
        self.should_retry = should_retry
        # Set once the request that failed has a record of its own; the rest are recorded as rejected.
        self.recorded = False

    def body(self) -> dict[str, dict[str, str]]:
        error = {"message": self.message, "type": self.type, "code": self.code}
        if self.param:
            error["param"] = self.param
        return {"error": error}


class InternalError(Problem):
    """Our own fault. The message never carries details; the log does."""

    def __init__(self, message: str = "The gateway failed to handle this request.") -> None:
        super().__init__(message, should_retry=False)


# ------------------------------------------------------------------------------------------------------------- callers


class AuthenticationFailed(Problem):
    """Key missing, malformed, unknown or revoked: always the same words, so that nothing can be learned from them."""

    status = 401
    type = "authentication_error"

    def __init__(self) -> None:
        super().__init__("A valid API key is required.", headers={"www-authenticate": "Bearer"}, should_retry=False)


class PermissionDenied(Problem):
    status = 403
    type = "permission_error"


class InsufficientBalance(Problem):
    status = 402
    type = "insufficient_quota"


class RateLimited(Problem):
    status = 429
    type = "rate_limit_error"


class InvalidRequest(Problem):
    status = 400
    type = "invalid_request_error"


class ContentPolicyViolation(InvalidRequest):
    """A provider refused the prompt, the input or the output."""


class RequestTimeout(InvalidRequest):
    """The caller sent its request too slowly."""

    status = 408


class NotFound(InvalidRequest):
    status = 404


class ModelNotFound(NotFound):
    pass


class ModelDisabled(NotFound):
    pass


class RecordingNotFound(NotFound):
    pass


class MethodNotAllowed(InvalidRequest):
    status = 405


class Conflict(InvalidRequest):
    status = 409


class PayloadTooLarge(InvalidRequest):
    status = 413


class UnsupportedMediaType(InvalidRequest):
    status = 415


class HeadersTooLarge(InvalidRequest):
    status = 431


# ----------------------------------------------------------------------------------------------------------- upstream


class UpstreamProblem(Problem):
    """Base of what went wrong at or on the way to a provider."""

    status = 502


class AllProvidersExhausted(UpstreamProblem):
    pass


class UpstreamError(UpstreamProblem):
    pass


class UpstreamOutcomeUnknown(UpstreamProblem):
    """Something was sent and nobody knows what became of it; never sent again."""


class UpstreamTimeout(UpstreamProblem):
    status = 504


class StorageUnavailable(Problem):
    """Nowhere durable to keep a promise or a result; nothing is charged."""

    status = 503


class Unavailable(Problem):
    """This process takes no more calls: it is stopping, or it holds as many connections as it may."""

    status = 503

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"retry-after": "1"}, should_retry=True)


class Cancelled(Problem):
    """Not an HTTP error: the code that a cancelled video shows."""

    status = 409
